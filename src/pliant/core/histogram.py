"""Counts of values by size, and the bounds that are used; as Prometheus has them, a value belongs to the first bound
that it is not above.

Example: of the batch sizes 1, 3 and 300, by `BATCH_BOUNDS`, `counts` is (1, 0, 1, 0, 0, 0, 0, 0, 1) and `total` 304.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LATENCY_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Of requests."""
BATCH_BOUNDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Requests in a batch."""
DURATION_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Of what the server does by itself."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values there were of which size, since somebody began to count."""

    counts: tuple[int, ...] = ()
    """For each bound, values that are not above it and above the one before; last, those above all. Empty: none yet."""
    total: float = 0.0
    """Sum of the values."""

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)


class BucketCounts:
    """Counts values.

    Args:
        bounds: ascending.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def histogram(self) -> Histogram:
        """Return what was counted so far."""
        return Histogram(tuple(self._counts), self._total)
