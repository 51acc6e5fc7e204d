"""Whether the memory of a process grows for ever: judged by the rise over time, not by one threshold. Pure.

What a process takes at first (caches, arenas, the first of everything) is warm-up, which goes on more and more slowly:
in a soak the server took 7 MB in its first 14 minutes, and 0.3 MB in five minutes after that, no leak among it. So the
first 12 minutes are left out. The rest is cut into windows of equal length, of which the medians are compared:

*Steadily.* A leak rises in every window; noise, a cache that fills, an arena that is taken once do not. So the smallest
of the rises from window to window counts. Example, in MB of windows of a minute: 80 80.5 81 81.5 82 82.5 rises by 30 MB
an hour; 80 82 82 82 82 82 rises by none. That is all that a few minutes can tell.

*Mostly.* One window that falls would hide a slow leak from that. Where there are twenty minutes, the median of these
rises counts as well: 80 81 82 81.5 83 84 of ten minutes each rises by 6 MB an hour mostly, and by nothing steadily;
what is taken once or twice changes neither.
"""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NUM_WINDOWS: Final = 6
WARM_UP_S: Final = 720.0
MIN_SPAN_S: Final = 240.0
"""With less after the warm-up nothing can be said."""
LONG_SPAN_S: Final = 1200.0
"""From here on noise is small against `MAX_RISE`."""
MAX_RISE: Final = 10e6
"""Bytes an hour; what a process may rise by."""

Sample = tuple[float, float]
"""When, in seconds, and how much, in bytes."""


@dataclass(frozen=True, slots=True)
class Rise:
    """By how many bytes an hour a process has grown."""

    steadily: float
    """In every window at least."""
    mostly: float | None
    """From most windows to the next; None if the time is too short to tell."""

    @property
    def is_leak(self) -> bool:
        return max(self.steadily, self.mostly or 0.0) > MAX_RISE


def find_rise(samples: Sequence[Sample]) -> Rise | None:
    """Return how a process has grown; None if that cannot be told."""
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
    rises = [(after - before) * 3600 / window_s for before, after in itertools.pairwise(medians)]
    return Rise(min(rises), statistics.median(rises) if last - since >= LONG_SPAN_S else None)
