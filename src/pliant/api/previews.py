"""What would come of a change if it was made now: who would have how many slots, and why. Nothing is changed.

A preview is a decision of the scheduler that nobody carries out. It is true of the instant `at`: somebody else may
change something before the change is made.
"""

from dataclasses import dataclass

from pliant.api.job_rows import WaitingView
from pliant.api.queues import HostsRequest, HostView
from pliant.api.request import Changes
from pliant.core.job import JobKind
from pliant.core.queue import DEFAULT_GROUP, GroupSettings, ResourceGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """One wrong field."""

    field: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPreview:
    """A job, or a version of an endpoint, before a change and after it; in slots."""

    id: str
    """Empty: the one that would be submitted."""
    name: str
    kind: JobKind
    queue: str
    held: int
    """What it holds now."""
    target: int
    """What the newest decision gives it: it comes there as slots fall idle and are left."""
    would_get: int
    """What the decision after the change would give it."""
    reason: str
    """Why, in the sentence of that decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersPreview:
    """Jobs that the caller does not see, together; in slots."""

    num_workloads: int
    held: int
    target: int
    would_get: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePreview:
    """What a queue is entitled to, before a change and after it; in slots."""

    name: str
    num_deserved: int
    would_deserve: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePreview:
    """Who would have how many slots."""

    at: float
    refused: str
    """Why the change would be refused; empty: it would not be. What follows is then as it is without it."""
    problems: tuple[FieldProblem, ...]
    """What is wrong with it, field by field."""
    notes: tuple[str, ...]
    """What who makes it should know, in sentences."""
    num_slots: int
    """Of the pool."""
    num_free: int
    would_be_free: int
    """Of all slots those that the decision gives to nobody."""
    workloads: tuple[WorkloadPreview, ...]
    """Those that the caller sees and that hold slots or would get some, and those that wait; a thousand at most."""
    others: OthersPreview
    queues: tuple[QueuePreview, ...]
    """Those that compete for slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsTaken:
    """So many slots less for a job."""

    id: str
    name: str
    num_slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionPreview(SharePreview):
    """What would become of a job that was submitted now."""

    starts: bool
    """It would hold slots at once; else it would wait."""
    starts_with: int
    """Slots that it starts with."""
    would_get: int
    """Slots that it would have once others have left theirs."""
    sentence: str
    """Why so many; or what it would wait for."""
    waiting: WaitingView | None
    """Where it would stand among those that wait."""
    takes: tuple[SlotsTaken, ...]
    """From whom, of the jobs that the caller sees."""
    num_taken_from_others: int


class GroupPreviewRequest(Changes, of=GroupSettings, but=("name", "description")):
    """Which slots a resource group would have: so many of each of these hosts."""

    hosts: HostsRequest

    def noun(self) -> ResourceGroup:
        """Return the noun."""
        return ResourceGroup(
            name=DEFAULT_GROUP, slots_per_host=self.changes().get("slots_per_host"), hosts=self.hosts.noun()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPreview:
    """The slots that a resource group would have now."""

    problems: tuple[FieldProblem, ...]
    """What is wrong; of a formula with the position of it."""
    num_slots: int
    hosts: tuple[HostView, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPreview:
    """What is to be said of a search before it begins. Its code is not looked at."""

    problems: tuple[FieldProblem, ...]
    """What is wrong with it; of no problem at all it can begin."""
    notes: tuple[str, ...]
    """What its owner should know."""
    sentence: str
    """What would become of its first trial now; empty if something is wrong."""
