"""What searches need of the other rooms, as protocols; `server` has the adapters."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pliant.core.access import VisibleJobs
from pliant.core.algorithm import Algorithm
from pliant.core.errors import Problem
from pliant.core.job import JobId, JobSpec
from pliant.core.search import Constraint, Objective, Search, SearchSettings
from pliant.core.search_store import Searches
from pliant.policy.tuning.intake import JobNews, SeriesPoint
from pliant.tune.advice import Adviser, AdviserInput


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTrial:
    """The job of a trial that has not ended."""

    job_id: JobId
    search: str
    number: int
    held: bool


class TrialJobs(Protocol):
    """The jobs of trials. Every call may be repeated."""

    def reserve(self) -> JobId:
        """Return the id of a job to come, which is never given again."""
        ...

    def check(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> Sequence[str]:
        """Return what an owner should know of such a job.

        Raises:
            InvalidInput, TooLarge: it could not be run; with everything that is wrong with it.
            Unavailable: the disk cannot take it, or the server is going down.
        """
        ...

    def submit(self, job_id: JobId, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> None:
        """Queue a job under a reserved id, unless it was queued before.

        Raises:
            InvalidInput, TooLarge, Unavailable: as for `check`.
        """
        ...

    def live(self) -> Sequence[LiveTrial]:
        """Return the jobs of all trials that have not ended."""
        ...

    def news(self, job_id: JobId, read: Sequence[Objective | Constraint], after_step: int) -> JobNews:
        """Return what a job has come to.

        Args:
            read: what is read of it, the first objective first.
            after_step: values of the first objective up to this step are known; of a job that has ended all are told.
        """
        ...

    def values_at_rung(
        self, job_id: JobId, settings: SearchSettings, rung: int
    ) -> Mapping[str, Sequence[SeriesPoint]] | None:
        """Return what a job had reported of what constraints bound, by metric, when it came to a rung.

        Args:
            rung: in epochs or steps.

        Returns:
            None: it may still report something there.
        """
        ...

    def hold(self, job_id: JobId, why: str) -> None:
        """Let a job leave its slots at its next step boundary, with its state saved; it takes none until `release`.

        Raises:
            Conflict: it runs and cannot be paused.
        """
        ...

    def release(self, job_id: JobId, why: str) -> None:
        """Let a job go on that was held."""
        ...

    def stop(self, job_id: JobId, why: str) -> None:
        """End a job at its next step boundary; `why` becomes its reason."""
        ...

    def num_places(self, spec: JobSpec) -> int:
        """Return how many such jobs the slots of its queue can hold at once, each with its minimum; one at least."""
        ...

    def slot_hours(self, job_ids: Collection[JobId]) -> float:
        """Return what some jobs have used so far, slots times hours."""
        ...


class InstalledAlgorithms(Protocol):
    """What people have installed to choose values, as searches see it."""

    def find(self, name: str, person: str) -> Algorithm | None:
        """Return an algorithm of this name that a person may use; None if there is none."""
        ...

    def names(self, person: str) -> Sequence[str]:
        """Return the names of all that a person may use."""
        ...

    def log(self, search: str) -> str:
        """Return the newest of what the algorithm of a search has printed."""
        ...

    def forget_log(self, search: str) -> None:
        """Forget what the algorithm of a search has printed."""
        ...


class NoAlgorithms:
    """Where nobody can install any."""

    def find(self, _name: str, _person: str) -> Algorithm | None:
        return None

    def names(self, _person: str) -> Sequence[str]:
        return ()

    def log(self, _search: str) -> str:
        return ""

    def forget_log(self, _search: str) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviserSource:
    """Where what chooses values comes from."""

    open: Callable[[AdviserInput], Adviser]
    """Raises `AdviserFailure` or `AdviserLost` if there is none."""
    algorithms: InstalledAlgorithms = field(default_factory=NoAlgorithms)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPorts:
    """What searches need of the other rooms."""

    searches: Searches
    jobs: TrialJobs
    open_adviser: Callable[[AdviserInput], Adviser]
    problems_of: Callable[[SearchSettings], tuple[Problem, ...]]
    """Returns what is wrong with settings."""
    unknown_users: Callable[[Collection[str]], Collection[str]]
    now: Callable[[], float]
    changed: Callable[[Search], None]
    """Called after a search was changed by somebody or by itself."""
    algorithms: InstalledAlgorithms = field(default_factory=NoAlgorithms)
    colour_of: Callable[[str], int | None] = lambda _name: None
    """Returns the colour that the trials of a search have in charts; None before there is one."""
