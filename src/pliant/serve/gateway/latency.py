"""Quantiles of what happened in the last so many seconds, in bounded memory and time; see `pliant.core.time_counts`.

Every second has counts of its own, which leave the sum when they are too old.
"""

from collections import deque
from collections.abc import Sequence

from pliant.core.time_counts import NUM_TIME_BUCKETS, quantiles_of, time_bucket


class RecentTimes:
    """Counts times of the last seconds.

    Args:
        window_s: so long a time counts, give or take a second.
    """

    def __init__(self, window_s: int = 30) -> None:
        self._window_s = window_s
        self._total = [0] * NUM_TIME_BUCKETS
        self._num = 0
        self._seconds: deque[tuple[int, dict[int, int]]] = deque()

    def add(self, now: float, seconds: float) -> None:
        """Count a time."""
        at = int(now)
        if not self._seconds or self._seconds[-1][0] != at:
            self._forget(at)
            self._seconds.append((at, {}))
        bucket = time_bucket(seconds)
        counts = self._seconds[-1][1]
        counts[bucket] = counts.get(bucket, 0) + 1
        self._total[bucket] += 1
        self._num += 1

    def quantiles(self, now: float, shares: Sequence[float]) -> tuple[float, ...]:
        """Return the times that such shares of all are not above; nothing if there is none.

        Args:
            now: as for `add`.
            shares: ascending, such as 0.5 and 0.99.
        """
        self._forget(int(now))
        return quantiles_of(enumerate(self._total), self._num, shares)

    def counts(self, now: float) -> dict[int, int]:
        """Return how many times each bucket has counted, without those that have none."""
        self._forget(int(now))
        return {bucket: num for bucket, num in enumerate(self._total) if num}

    def _forget(self, at: int) -> None:
        while self._seconds and self._seconds[0][0] <= at - self._window_s:
            for bucket, num in self._seconds.popleft()[1].items():
                self._total[bucket] -= num
                self._num -= num
