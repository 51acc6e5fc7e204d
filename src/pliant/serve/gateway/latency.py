"""Quantiles of what happened in the last so many seconds, in bounded memory and time, to within 2.5 %.

Values are counted in buckets, each 5 % wider than the one before, from 10 µs to a day; every second has counts of its
own, which leave the sum when they are too old.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

_LEAST_S: Final = 1e-5
_RATIO: Final = 1.05
_LOG_RATIO: Final = math.log(_RATIO)
_NUM_BUCKETS: Final = math.ceil(math.log(86_400 / _LEAST_S) / _LOG_RATIO) + 1


class RecentTimes:
    """Counts times of the last seconds.

    Args:
        window_s: so long a time counts, give or take a second.
    """

    def __init__(self, window_s: int = 30) -> None:
        self._window_s = window_s
        self._total = [0] * _NUM_BUCKETS
        self._num = 0
        self._seconds: deque[tuple[int, dict[int, int]]] = deque()

    def add(self, now: float, seconds: float) -> None:
        """Count a time."""
        at = int(now)
        if not self._seconds or self._seconds[-1][0] != at:
            self._forget(at)
            self._seconds.append((at, {}))
        bucket = 0 if seconds <= _LEAST_S else min(_NUM_BUCKETS - 1, int(math.log(seconds / _LEAST_S) / _LOG_RATIO))
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
        if not self._num:
            return ()
        found: list[float] = []
        passed, ranks = 0, [max(1, math.ceil(share * self._num)) for share in shares]
        for bucket, num in enumerate(self._total):
            passed += num
            while len(found) < len(ranks) and passed >= ranks[len(found)]:
                found.append(_LEAST_S * _RATIO ** (bucket + 0.5))
        return tuple(found)

    def _forget(self, at: int) -> None:
        while self._seconds and self._seconds[0][0] <= at - self._window_s:
            for bucket, num in self._seconds.popleft()[1].items():
                self._total[bucket] -= num
                self._num -= num
