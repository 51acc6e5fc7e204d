"""Axes of charts: where a value lies between their ends, and which values are written beside them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Final

_MAX_DECADES: Final = 6
_FAR: Final = 1e250
"""What is further from 0 is drawn here."""
_EQUAL: Final = 1e-9
"""Values that differ by a smaller part of themselves are equal to a reader."""
_FEW_DECADES: Final = 1.2
"""Fewer orders of magnitude get values between them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis from a low to a high value."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high one; what is beyond an end is there."""
        low, high, at = (
            (log10(one) for one in (self.low, self.high, max(value, self.low)))
            if self.log
            else (
                self.low,
                self.high,
                value,
            )
        )
        return min(1.0, max(0.0, (at - low) / (high - low)))

    def ticks(self, most: int = 7) -> list[float]:
        """Return the round values that are written, so many at most, but for a few."""
        found = list(self._decades(most) if self.log else self._steps(most))
        return [value for value in found if self.low <= value <= self.high]

    def _steps(self, most: int) -> Iterator[float]:
        raw = (self.high - self.low) / most
        size = 10.0 ** floor(log10(raw))
        step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
        for number in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1):
            yield float(f"{number * step:.12g}")

    def _decades(self, most: int) -> Iterator[float]:
        first, last = floor(log10(self.low)), ceil(log10(self.high))
        factors: Sequence[int] = (
            (1, 2, 5) if last - first <= 2 or log10(self.high) - log10(self.low) <= _FEW_DECADES else (1,)
        )
        every = max(1, ceil((last - first + 1) / max(most, _MAX_DECADES)))
        for power in range(first, last + 1, every):
            for factor in factors:
                yield factor * 10.0**power


def axis_of(values: Sequence[float], *, log: bool = False, margin: float = 0.05) -> Axis:
    """Return an axis that has room for finite values; of none it is 0 to 1, and equal ones get room on both sides."""
    finite = [min(_FAR, max(-_FAR, value)) for value in values if isfinite(value) and (value > 0 or not log)]
    if not finite:
        return Axis(low=0.0, high=1.0)
    low, high = min(finite), max(finite)
    if log:
        low, high = max(low, 1 / _FAR), max(high, 1 / _FAR)
        stretch = 10 ** (margin * (log10(high) - log10(low))) if high > low * (1 + _EQUAL) else 2.0
        return Axis(low=low / stretch, high=high * stretch, log=True)
    if high - low > max(_EQUAL * max(abs(low), abs(high)), 1 / _FAR):
        return Axis(low=low - (high - low) * margin, high=high + (high - low) * margin)
    room = abs(high) / 2 if abs(high) > 1 / _FAR else 1.0
    return Axis(low=low - room, high=high + room)


def spans_orders(values: Sequence[float]) -> bool:
    """Tell whether values are better shown by orders of magnitude: all above 0, the largest 100 times the least."""
    finite = [value for value in values if isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) >= 100 * min(finite)


def short(value: float) -> str:
    """Return a number as it is written beside an axis."""
    if value == int(value) and abs(value) < 1_000_000:
        return str(int(value))
    return f"{value:.4g}".replace("e-0", "e-").replace("e+0", "e")
