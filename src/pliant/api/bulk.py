"""The REST bodies about several jobs at once: each is taken by itself, and one that is refused keeps no other back."""

from dataclasses import dataclass
from typing import Annotated, Self

from annotated_types import Len
from pydantic import model_validator

from pliant.api.jobs import JobPatch
from pliant.api.request import Patch, Request
from pliant.core.input import Input
from pliant.core.job import NumTasks, Priority, QueueName

JobIds = Annotated[tuple[Annotated[str, Input(Len(1, 64))], ...], Input(Len(1, 1000))]


class StopJobs(Request):
    """Jobs to stop."""

    ids: JobIds
    """A thousand at most."""
    now: bool = False
    """Do not wait for step boundaries; what was not saved is lost."""


class JobsPatch(Patch):
    """What to change of several jobs; what is left out stays as it is."""

    ids: JobIds
    """A thousand at most."""
    priority: Priority | None = None
    min_tasks: NumTasks | None = None
    max_tasks: NumTasks | None = None
    queue: QueueName | None = None

    @model_validator(mode="after")
    def _some_change(self) -> Self:
        if self.model_fields_set <= {"ids"}:
            raise ValueError("nothing to change: give one of priority, min_tasks, max_tasks, queue")
        return self

    def patch(self) -> JobPatch:
        """Return the change of each of them."""
        return JobPatch(**{name: getattr(self, name) for name in self.model_fields_set - {"ids"}})


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOutcome:
    """What became of what was asked of one of several jobs."""

    id: str
    ok: bool
    status: int
    """As the answer would have had for this job alone."""
    problem: str
    """Why it was refused; empty if it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOutcomes:
    """What became of what was asked of several jobs, in the order of the request, each once."""

    outcomes: tuple[BulkOutcome, ...]
    num_refused: int
