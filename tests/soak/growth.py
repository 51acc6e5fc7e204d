"""Whether the memory of a process grows for ever: judged by the rise over time, not by one threshold. Pure.

What a process takes at first (caches, arenas, the first of everything) is warm-up, which goes on more and more slowly:
in a soak the server took 7 MB in its first 14 minutes, and 0.3 MB in five minutes after that, no leak among it. So the
first 12 minutes are left out. The rest is cut into windows of equal length, and the median of every window is compared
with that of the one before. A leak rises in every window; noise, a cache that fills, an arena that is taken once do
not. So the smallest of these rises is what counts. Example, in MB of windows of a minute: 80 80.5 81 81.5 82 82.5 rises
by 30 MB an hour; 80 82 82 82 82 82 rises by none.
"""

import itertools
import statistics
from collections.abc import Sequence
from typing import Final

NUM_WINDOWS: Final = 6
WARM_UP_S: Final = 720.0
MIN_SPAN_S: Final = 240.0
"""With less after the warm-up nothing can be said."""
MAX_RISE: Final = 10e6
"""Bytes an hour; what a process may rise by in every window."""

Sample = tuple[float, float]
"""When, in seconds, and how much, in bytes."""


def steady_rise(samples: Sequence[Sample]) -> float | None:
    """Return by how many bytes an hour a process has grown in every window at least; None if that cannot be told."""
    if not samples:
        return None
    first, last = samples[0][0], samples[-1][0]
    since = first + WARM_UP_S
    window_s = (last - since) / NUM_WINDOWS
    if last - since < MIN_SPAN_S:
        return None
    windows: list[list[float]] = [[] for _ in range(NUM_WINDOWS)]
    for at, value in samples:
        if at >= since:
            windows[min(NUM_WINDOWS - 1, int((at - since) / window_s))].append(value)
    if not all(windows):
        return None
    medians = [statistics.median(window) for window in windows]
    return min(after - before for before, after in itertools.pairwise(medians)) / window_s * 3600
