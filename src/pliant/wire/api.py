"""The REST bodies. Answers are the frozen dataclasses of `pliant.core` themselves, turned into JSON field by field.

Requests refuse unknown fields and report every error at once.
"""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pliant.core.event import Event, Usage
from pliant.core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, MAX_PRIORITY, Generation, Job, JobSpec, Metric, Task
from pliant.core.plan import NodeView, PolicyName

MAX_VIRTUAL_WORKERS = 4096
MIN_DEFAULT_VIRTUAL_WORKERS = 8

Priority = Annotated[int, Field(ge=1, le=MAX_PRIORITY, strict=True)]
NumTasks = Annotated[int, Field(ge=1, le=MAX_VIRTUAL_WORKERS, strict=True)]


class Request(BaseModel):
    """Base of all request bodies."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class JobRequest(Request):
    """A training to run; travels beside its packed code."""

    name: Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f/]+$")] | None = None
    """For people; the script's name if left out."""
    script: Annotated[str, Field(min_length=1, max_length=400)]
    """The Python file to run, relative to the code folder."""
    args: Annotated[tuple[str, ...], Field(max_length=1000)] = ()
    """Passed to the script as they are."""
    min_tasks: NumTasks = 1
    """Start with this many tasks; pause rather than run with fewer."""
    max_tasks: NumTasks = 1
    """Grow up to this many tasks."""
    slots_per_task: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    """GPUs, or CPU shares, that every task holds."""
    priority: Priority = DEFAULT_PRIORITY
    """1 to 10000; a job of twice the priority gets twice the slots."""
    queue: Annotated[str, Field(min_length=1, max_length=60)] = DEFAULT_QUEUE
    virtual_workers: NumTasks | None = None
    """V: the global batch is cut into V parts whatever the size. If left out: 8, or the maximum if that is larger."""
    python: Annotated[str, Field(min_length=1)] | None = None
    """Another Python interpreter, with Pliant installed in its environment."""
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = Field(default_factory=dict)
    """Extra environment variables of every task."""
    data_dir: str | None = None
    """Given to the script as DATA_DIR."""
    checkpoint_freq: Annotated[int, Field(ge=0, strict=True)] = 1
    """Epochs between checkpoints; 0 saves only when the job leaves all its slots."""
    start_timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """Fail the job when a task runs this long without starting to train."""
    audit: Annotated[bool, Field(strict=True)] = False
    """Keep, beside the results, which samples every step used."""

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min_tasks > self.max_tasks:
            raise ValueError(
                f"min_tasks {self.min_tasks} is above max_tasks {self.max_tasks}; lower the one or raise the other"
            )
        if self.virtual_workers is not None and self.max_tasks > self.virtual_workers:
            raise ValueError(
                f"max_tasks {self.max_tasks} is above virtual_workers {self.virtual_workers}: the global batch "
                f"cannot be cut finer than that; lower max_tasks or raise virtual_workers"
            )
        return self

    def spec(self) -> JobSpec:
        """Return the noun that this body asks for, defaults filled in."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        fields["name"] = self.name or self.script
        fields["virtual_workers"] = self.virtual_workers or max(MIN_DEFAULT_VIRTUAL_WORKERS, self.max_tasks)
        return JobSpec(**fields)


class JobPatch(Request):
    """What can be changed while a job waits or runs; what is left out stays as it is."""

    priority: Priority | None = None
    min_tasks: NumTasks | None = None
    max_tasks: NumTasks | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change: give priority, min_tasks or max_tasks")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Jobs, newest first; ask again with `before=next` for older ones."""

    jobs: tuple[Job, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """A job with its tasks and its generations, oldest first."""

    job: Job
    tasks: tuple[Task, ...]
    generations: tuple[Generation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Events in order; ask again with `after=last`."""

    events: tuple[Event, ...]
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPage:
    """Points in order of step; ask again with `after_step=` the last step seen."""

    points: tuple[Metric, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """Steps of the function slots(job, time)."""

    points: tuple[Usage, ...]
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """Who holds a slot; `job_id` and `task_id` are None if it is free."""

    node_id: str
    slot: int
    job_id: str | None
    task_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The pool: its nodes, every slot, and the policy that shares them."""

    policy: PolicyName
    nodes: tuple[NodeView, ...]
    slots: tuple[SlotView, ...]
    version: str
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a job has the slots it has: the newest decision, and the ones before it, newest first."""

    job_id: str
    state: str
    num_tasks: int
    target_tasks: int
    sentence: str
    history: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One stream of one task."""

    task_id: str
    stream: str
    num_bytes: int


class ProblemItem(BaseModel):
    """One wrong field."""

    field: str
    message: str


class ProblemDetails(BaseModel):
    """An error, in the form of RFC 9457 (`application/problem+json`)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    problems: list[ProblemItem] = Field(default_factory=list)
