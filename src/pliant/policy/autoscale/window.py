"""What a version had to do in the last seconds: reports, kept as sums (`LoadSample`), that are added up for a window.

Invariants: no more than `MAX_SAMPLES` are kept, however often reports come; none is older than `WINDOW_S`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 6.0
"""Load is averaged over so long where noise matters more than haste; also, so long a queue may stay."""
_SHORTEST_S: Final = 0.2
"""Reports that come faster are put together."""
MAX_SAMPLES: Final = int(WINDOW_S / _SHORTEST_S) + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSample:
    """What was done in some time; samples that follow each other can be added."""

    until: float = 0.0
    """When this time ended."""
    seconds: float = 0.0
    load_s: float = 0.0
    """Requests that were there at once, times the seconds that they were."""
    arrived: float = 0.0
    completed: float = 0.0
    busy_s: float = 0.0
    """Seconds that kernels computed, all together."""
    ready_s: float = 0.0
    """Seconds that kernels were ready, all together."""

    def __add__(self, later: "LoadSample") -> "LoadSample":
        return LoadSample(
            until=later.until,
            seconds=self.seconds + later.seconds,
            load_s=self.load_s + later.load_s,
            arrived=self.arrived + later.arrived,
            completed=self.completed + later.completed,
            busy_s=self.busy_s + later.busy_s,
            ready_s=self.ready_s + later.ready_s,
        )

    @property
    def mean_load(self) -> float:
        """Return how many requests were there at once; 0 if the sample covers no time."""
        return self.load_s / self.seconds if self.seconds > 0 else 0.0

    @property
    def rate(self) -> float:
        """Return how many requests arrived per second. What covers less than a second counts as a whole one."""
        return self.arrived / max(self.seconds, 1.0)

    @property
    def is_idle(self) -> bool:
        """Whether nothing was there, came or was answered."""
        return self.load_s <= 0 and self.arrived <= 0 and self.completed <= 0


def append(samples: tuple[LoadSample, ...], sample: LoadSample) -> tuple[LoadSample, ...]:
    """Return the samples with one more, without those that are too old."""
    if sample.seconds <= 0 and sample.arrived <= 0:
        return samples
    if samples and samples[-1].seconds < _SHORTEST_S:
        sample, samples = samples[-1] + sample, samples[:-1]
    recent = (old for old in samples if sample.until - WINDOW_S < old.until <= sample.until)
    return (*recent, sample)[-MAX_SAMPLES:]


def total(samples: Iterable[LoadSample], now: float, seconds: float) -> LoadSample:
    """Return the sum over the last seconds."""
    return sum((sample for sample in samples if sample.until > now - seconds), LoadSample())
