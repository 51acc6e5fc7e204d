"""What a part has found, and what is computed of it."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from bench._report import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows of a part, and its claims."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    claims: tuple[Claim, ...]
    notes: str = ""


def at_most(text: str, found: float, limit: float, unit: str, digits: int = 1) -> Claim:
    """Return the claim that something is no more than a limit."""
    return Claim(text=text, found=f"{found:,.{digits}f} {unit}", holds=found <= limit)


def at_least(text: str, found: float, limit: float, unit: str) -> Claim:
    """Return the claim that something is no less than a limit."""
    return Claim(text=text, found=f"{found:,.1f} {unit}", holds=found >= limit)


@dataclass(frozen=True, slots=True)
class Slope:
    """How fast something grows, by least squares, and how sure that is."""

    per_s: float
    error_per_s: float
    """Standard error of it; infinite for fewer than three points."""

    def rise(self, seconds: float) -> tuple[float, float]:
        """Return how much it grows in a while, and twice the standard error of that."""
        return self.per_s * seconds, 2 * self.error_per_s * seconds


def slope(at_s: Sequence[float], values: Sequence[float]) -> Slope:
    """Return the slope of a line through points.

    >>> slope([0, 1, 2, 3], [5, 7, 9, 11])
    Slope(per_s=2.0, error_per_s=0.0)
    """
    fitted = statistics.linear_regression(at_s, values)
    if len(at_s) < 3:
        return Slope(fitted.slope, float("inf"))
    residuals = [y - fitted.intercept - fitted.slope * x for x, y in zip(at_s, values, strict=True)]
    middle = statistics.fmean(at_s)
    spread = sum((x - middle) ** 2 for x in at_s)
    return Slope(fitted.slope, sqrt(sum(r * r for r in residuals) / (len(at_s) - 2) / spread))


def frames_per_s(times_ms: Sequence[float]) -> float:
    """Return how many frames a second there were between the first and the last.

    >>> frames_per_s([0, 20, 40, 100])
    30.0
    """
    return (len(times_ms) - 1) * 1000 / (times_ms[-1] - times_ms[0])
