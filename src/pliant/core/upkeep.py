"""What old jobs leave behind, how long it is kept, and what a clean-up removes."""

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from pliant.core.job import JobId
from pliant.core.registry import AuditEntry


class Material(StrEnum):
    """A kind of thing that is kept for a time: what a job leaves behind, and the audit log."""

    LOGS = "logs"
    METRICS = "metrics"
    CHECKPOINTS = "checkpoints"
    RESULTS = "results"
    """The trained model and whatever else the script wrote to RESULT_DIR."""
    AUDIT = "audit"
    """The entries of the audit log, which belong to no job; limited by age only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How long one kind of thing is kept. None sets no limit."""

    material: Material
    max_age_s: float | None = None
    """Seconds since the end of the job, or since the entry was written."""
    max_bytes: int | None = None
    """Of all jobs together; the things of the jobs that ended first go first. But the logs of a job that alone hold
    more than half of it go before others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The rules of this server; there is one. Without rules everything is kept."""

    KIND: ClassVar[str] = "retention"

    name: str = "retention"
    owner: str = ""
    rules: tuple[Rule, ...] = ()
    """One for each kind of thing at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a job that has ended holds of one kind of thing."""

    job_id: JobId
    material: Material
    num_bytes: int
    ended_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One thing that a clean-up removes."""

    job_id: JobId | None
    """None: the audit log's."""
    material: Material
    num_bytes: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A clean-up, or what one would do."""

    at: float
    dry_run: bool
    removals: tuple[Removal, ...]
    num_bytes: int
    """Of all removals together; points of a series count as 100 bytes each, entries of the audit log as 200."""
    failed: tuple[str, ...] = ()
    """What could not be removed, and why."""


class Dumps(Protocol):
    """Writes all that the store holds as text."""

    @property
    def revision(self) -> str:
        """The revision of the tables."""
        ...

    def dump(self) -> Generator[tuple[str, Iterator[bytes]], None, None]:
        """Yield every table's name with its lines, all as they are at one instant; read each before the next.

        Who stops in the middle closes it.
        """
        ...


class Records(Protocol):
    """What the store can do for upkeep, beside its daily work."""

    def num_points(self) -> Mapping[JobId, int]:
        """Return how many points each job has, of those that have any."""
        ...

    def forget_points(self, job_ids: Collection[JobId]) -> None:
        """Remove all points and histograms of these jobs, and what charts show of them."""
        ...

    def num_entries(self, *, before: float) -> int:
        """Return how many entries of the audit log are older than this instant."""
        ...

    def forget_entries(self, *, before: float, entry: AuditEntry) -> None:
        """Remove these entries and write the one that tells so, both or neither."""
        ...
