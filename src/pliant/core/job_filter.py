"""Which jobs somebody asks for, and in which order. Whom it lets see which is not its business."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from pliant.core.job import Job, JobKind
from pliant.core.lifecycle import JobState

SortField = Literal["submitted", "ended", "name", "state", "owner", "queue", "priority", "slots"]
SORT_FIELDS: Final[tuple[SortField, ...]] = get_args(SortField)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """In which order jobs are listed: of equal ones the newest first; those that have no value come last."""

    by: SortField = "submitted"
    """Texts are compared character by character, capital letters first."""
    descending: bool = True

    def sort(self, newest_first: Sequence[Job]) -> list[Job]:
        """Return these jobs in this order."""
        if self.by == "submitted":
            return list(newest_first) if self.descending else list(reversed(newest_first))
        there = [job for job in newest_first if self._value(job) is not None]
        there.sort(key=self._value, reverse=self.descending)
        return [*there, *(job for job in newest_first if self._value(job) is None)]

    def _value(self, job: Job) -> Any:
        match self.by:
            case "ended":
                return job.ended_at
            case "name":
                return job.spec.name
            case "slots":
                return job.num_slots
            case _:
                return getattr(job, self.by)


NEWEST_FIRST: Final = JobOrder()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Jobs in one of some states, of one of some owners, in one of some queues, with all of some tags.

    Or of a search, or of an endpoint. What is empty asks for nothing.
    """

    states: tuple[JobState, ...] = ()
    owners: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    """Those that jobs are in now, or were at their end."""
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By name: the tag has one of these values, or any if there are none."""
    searches: tuple[str, ...] = ()
    """Trials of one of these."""
    endpoints: tuple[str, ...] = ()
    """Versions of one of these."""
    without_trials: bool = False
    """No trials of any search."""
    kinds: tuple[JobKind, ...] = ()
    text: str = ""
    """It stands somewhere in its id, name, owner, or a tag as people write it; capital letters do not matter."""

    def fits(self, job: Job) -> bool:
        """Tell whether a job is one of them."""
        return (
            (not self.states or job.state in self.states)
            and (not self.owners or job.owner in self.owners)
            and (not self.queues or job.queue in self.queues)
            and (not self.searches or (job.spec.trial is not None and job.spec.trial.search in self.searches))
            and (not self.endpoints or (job.spec.endpoint is not None and job.spec.endpoint.name in self.endpoints))
            and not (self.without_trials and job.spec.trial is not None)
            and (not self.kinds or job.spec.kind in self.kinds)
            and (not self.text or self.text.casefold() in text_of(job))
            and all(name in job.tags and (not of or job.tags[name] in of) for name, of in self.tags.items())
        )


def text_of(job: Job) -> str:
    """Return what a job is found by, as `JobFilter.text` is compared with it: one line each."""
    tags = (f"{name}={value}" if value else name for name, value in job.tags.items())
    return "\n".join((job.id, job.spec.name, job.owner, *tags)).casefold()


EVERY_JOB: Final = JobFilter()
