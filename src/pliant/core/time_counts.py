"""Counts of times by size, for quantiles to within 2.5 %: each bucket is 5 % wider than the one before, from 10 µs to
a day.

Quantiles of several processes cannot be made one, but their counts can be added: this is why counts travel.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_LEAST_S: Final = 1e-5
_RATIO: Final = 1.05
_LOG_RATIO: Final = math.log(_RATIO)
NUM_TIME_BUCKETS: Final = math.ceil(math.log(86_400 / _LEAST_S) / _LOG_RATIO) + 1
_MOST: Final = 1 << 53
"""No bucket counts as many."""


def time_bucket(seconds: float) -> int:
    """Return the number of the bucket that a time belongs to; the first and the last take what is beyond them."""
    if seconds <= _LEAST_S:
        return 0
    return min(NUM_TIME_BUCKETS - 1, int(math.log(seconds / _LEAST_S) / _LOG_RATIO))


def quantiles_of(counts: Iterable[tuple[int, int]], num: int, shares: Sequence[float]) -> tuple[float, ...]:
    """Return the times that such shares of all are not above; nothing if there is none.

    Args:
        counts: buckets, ascending, and how many times each has counted.
        num: how many times they are in all.
        shares: ascending, such as 0.5 and 0.99.
    """
    if not num:
        return ()
    found: list[float] = []
    passed, ranks = 0, [max(1, math.ceil(share * num)) for share in shares]
    for bucket, count in counts:
        passed += count
        while len(found) < len(ranks) and passed >= ranks[len(found)]:
            found.append(_LEAST_S * _RATIO ** (bucket + 0.5))
    return tuple(found)


def add_counts(several: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the counts of all together, by bucket in ascending order."""
    total: dict[int, int] = {}
    for counts in several:
        for bucket, num in counts.items():
            total[bucket] = total.get(bucket, 0) + num
    return dict(sorted(total.items()))


def are_counts(counts: Mapping[int, int]) -> bool:
    """Tell whether these can be counts by bucket: the buckets exist, and nothing is negative or beyond all measure."""
    return all(0 <= bucket < NUM_TIME_BUCKETS and 0 <= num < _MOST for bucket, num in counts.items())
