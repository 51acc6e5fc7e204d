"""A series as a chart shows it: few buckets that keep count, mean and extremes of the many points in them."""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_BUCKETS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Some neighbouring points of a series as one. NaN counts as a point, not as a value."""

    num_points: int
    num_values: int
    lowest: float | None
    """None if no point has a value."""
    highest: float | None
    total: float
    """Sum of the values."""
    first_step: int
    last_step: int
    epoch: int
    """Of the newest point."""
    at: float
    """Of the newest point, seconds since the epoch (UTC)."""

    @property
    def mean(self) -> float | None:
        return self.total / self.num_values if self.num_values else None


def merge(buckets: Iterable[Bucket], max_buckets: int) -> tuple[Bucket, ...]:
    """Merge neighbours until there are at most so many, each over the same number of steps.

    Args:
        buckets: in the order of their steps, not overlapping.
        max_buckets: at least 1.
    """
    given = list(buckets)
    if len(given) <= max_buckets:
        return tuple(given)
    first = given[0].first_step
    width = -(-(given[-1].first_step - first + 1) // max_buckets)
    out: list[Bucket] = []
    for bucket in given:
        if out and (bucket.first_step - first) // width == (out[-1].first_step - first) // width:
            out[-1] = _join(out[-1], bucket)
        else:
            out.append(bucket)
    return tuple(out)


def _join(one: Bucket, other: Bucket) -> Bucket:
    lows = [low for low in (one.lowest, other.lowest) if low is not None]
    highs = [high for high in (one.highest, other.highest) if high is not None]
    return Bucket(
        num_points=one.num_points + other.num_points,
        num_values=one.num_values + other.num_values,
        lowest=min(lows, default=None),
        highest=max(highs, default=None),
        total=one.total + other.total,
        first_step=one.first_step,
        last_step=max(one.last_step, other.last_step),
        epoch=max(one.epoch, other.epoch),
        at=max(one.at, other.at),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of a job, downsampled."""

    name: str
    buckets: tuple[Bucket, ...]
    """In the order of their steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEnd:
    """Which series a job has, and how it ends."""

    name: str
    num_points: int
    first_step: int
    last_step: int
    at: float
    """Of the newest point."""
    value: float | None
    """Of the point at the last step; None: it is NaN."""
