"""What a job has on the disk, and how its series end, as REST shows it."""

from dataclasses import dataclass

from pliant.core.chart import SeriesEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """A checkpoint on the disk."""

    step: int
    """Optimizer steps committed when it was made."""
    num_bytes: int
    at: float
    """When it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """The checkpoints that a job has on the disk, newest first. Those in shared memory are not among them."""

    checkpoints: tuple[CheckpointFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEnds:
    """Series in the order of their names; ask again with `after=next`."""

    series: tuple[SeriesEnd, ...]
    next: str | None
