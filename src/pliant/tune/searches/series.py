"""Series of a job, in bounded memory however much a script reports: what decisions need of them is kept.

That is the first value of each epoch, the lowest, the highest and the last value, and all of the first few thousand.
"""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import Final

from pliant.policy.tuning.intake import SeriesPoint

MAX_POINTS: Final = 20_000
_MAX_FIRST: Final = 5_000


def thin(points: Iterable[SeriesPoint]) -> list[SeriesPoint]:
    """Return a series in its order, without points that nothing depends on if there are very many."""
    kept: list[SeriesPoint] = []
    for point in points:
        kept.append(point)
        if len(kept) > MAX_POINTS:
            kept = _thinned(kept)
    return kept


def _thinned(points: Sequence[SeriesPoint]) -> list[SeriesPoint]:
    numbers = [place for place, point in enumerate(points) if not isnan(point.value)]
    wanted = {0, len(points) - 1, *range(min(_MAX_FIRST, len(points)))}
    if numbers:
        wanted |= {min(numbers, key=lambda place: points[place].value), max(numbers, key=lambda p: points[p].value)}
    epochs = [place for place in range(1, len(points)) if points[place].epoch != points[place - 1].epoch]
    wanted |= {*epochs[: MAX_POINTS // 2]}
    return [points[place] for place in sorted(wanted)]
