"""Shares traffic between versions by weight, evenly and without chance: at 9 to 1, one of every ten goes over.

Smooth weighted round robin: every version gains its weight with each request, the highest one is taken and pays the sum
of all. With weights 3 and 1 the turns are 1 1 2 1, 1 1 2 1, …
"""

from collections.abc import Mapping


class WeightedTurns:
    """Whose turn it is."""

    def __init__(self) -> None:
        self._weights: dict[int, int] = {}
        self._credit: dict[int, int] = {}

    def set(self, weights: Mapping[int, int]) -> None:
        """Share by these weights from now on; 0 gets nothing."""
        weights = {number: weight for number, weight in weights.items() if weight > 0}
        if weights != self._weights:
            self._weights = weights
            self._credit = dict.fromkeys(weights, 0)

    @property
    def has_any(self) -> bool:
        """Somebody has weight."""
        return bool(self._weights)

    def next(self) -> int | None:
        """Return whose turn it is; None if nobody has any weight."""
        if len(self._weights) == 1:
            return next(iter(self._weights))
        best: int | None = None
        for number, weight in self._weights.items():
            self._credit[number] += weight
            if best is None or self._credit[number] > self._credit[best]:
                best = number
        if best is not None:
            self._credit[best] -= sum(self._weights.values())
        return best
