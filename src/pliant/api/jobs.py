"""The REST bodies. Answers are the frozen dataclasses of `pliant.core` themselves, turned into JSON field by field.

Requests refuse unknown fields and report every error at once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pliant.core.chart import Series
from pliant.core.event import Event, Usage
from pliant.core.job import (
    DEFAULT_CHECKPOINT_EVERY_S,
    DEFAULT_MAX_RESTARTS,
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    MAX_PRIORITY,
    Generation,
    Job,
    JobSpec,
    Metric,
    Mode,
    Task,
)
from pliant.core.plan import NodeView, PolicyName

MAX_VIRTUAL_WORKERS = 4096
MIN_DEFAULT_VIRTUAL_WORKERS = 8
MIN_MEMORY_BYTES = 64 << 20

Priority = Annotated[int, Field(ge=1, le=MAX_PRIORITY, strict=True)]
NumTasks = Annotated[int, Field(ge=1, le=MAX_VIRTUAL_WORKERS, strict=True)]

_ELASTIC_ONLY = ("virtual_workers", "checkpoint_freq", "checkpoint_every_s", "resume_from", "mode", "audit")


def default_virtual_workers(max_tasks: int) -> int:
    """Return the V of a job that asks for none."""
    return max(MIN_DEFAULT_VIRTUAL_WORKERS, max_tasks)


R = TypeVar("R")


def told_at_once(request: R, faults: Iterable[str]) -> R:
    """Return a body whose fields fit each other.

    Raises:
        ValueError: with all of the faults.
    """
    if said := "; ".join(faults):
        raise ValueError(said)
    return request


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
    environment: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x1f]+$")] | None = None
    """A registered environment's name, the whole path of a virtual environment, `conda:NAME` or `conda:/path`, or
    `requirements:FILE` (in the code folder; built once). The job takes no slot before it is ready."""
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = Field(default_factory=dict)
    """Extra environment variables of every task."""
    data_dir: str | None = None
    """Given to the script as DATA_DIR."""
    dataset: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """A data set; DATA_DIR, TRAIN_DATA_DIR and kin tell every task where it lies."""
    checkpoint_freq: Annotated[int, Field(ge=0, strict=True)] = 1
    """Epochs between checkpoints; 0 saves only when the job leaves all its slots."""
    checkpoint_every_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = DEFAULT_CHECKPOINT_EVERY_S
    """Seconds between checkpoints in the middle of an epoch; 0 makes none."""
    weights: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    """A `state_dict` to start from: a job (`job-3`: its trained model) or a whole path on the server's machine."""
    resume_from: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    """A job (`job-3`), or the whole path of a folder of checkpoints; the first tasks start from the newest one."""
    mode: Mode = "exact"
    """`exact`: results bitwise the same for any number of workers. `fast`: one micro-batch per worker, stock sums."""
    fixed: Annotated[bool, Field(strict=True)] = False
    """An ordinary `torch.distributed` script of exactly `max_tasks` processes, all or none; `min_tasks` is the same."""
    max_restarts: Annotated[int, Field(ge=0, le=1000, strict=True)] = DEFAULT_MAX_RESTARTS
    """Start a fixed job again so many times after one of its processes failed or was lost."""
    memory_bytes: Annotated[int, Field(ge=MIN_MEMORY_BYTES, le=2**50, strict=True)] | None = None
    """End a task that uses more memory than this, with all that it has started; about 300 MB go to torch itself."""
    start_timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """Fail the job when a task runs this long without starting to train."""
    audit: Annotated[bool, Field(strict=True)] = False
    """Keep, beside the results, which samples every step used."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return told_at_once(self, (*self._clashes(), *self._against_its_kind()))

    def _clashes(self) -> Iterator[str]:
        if self.min_tasks > self.max_tasks:
            yield f"min_tasks {self.min_tasks} is above max_tasks {self.max_tasks}; lower the one or raise the other"
        if self.virtual_workers is not None and self.max_tasks > self.virtual_workers:
            yield (
                f"max_tasks {self.max_tasks} is above virtual_workers {self.virtual_workers}: the global batch "
                f"cannot be cut finer than that; lower max_tasks or raise virtual_workers"
            )
        if self.weights is not None and self.resume_from is not None:
            yield "weights and resume_from both say where the training starts; give one of them"
        if self.data_dir is not None and self.dataset is not None:
            yield "data_dir and dataset both say where the data are; give one of them"
        if self.python is not None and self.environment is not None:
            yield "python and environment both say what the tasks run in; give one of them"

    def _against_its_kind(self) -> Iterator[str]:
        if not self.fixed:
            if self.max_restarts != DEFAULT_MAX_RESTARTS:
                yield "max_restarts is for fixed jobs; an elastic one goes on without starting again"
            return
        if self.min_tasks < self.max_tasks:
            yield (
                f"a fixed job has one size, but min_tasks is {self.min_tasks} and max_tasks {self.max_tasks}; "
                f"give both the same"
            )
        if wrong := [name for name in _ELASTIC_ONLY if getattr(self, name) != type(self).model_fields[name].default]:
            yield f"{', '.join(wrong)}: for elastic jobs only; a fixed job's script does that by itself"

    def spec(self) -> JobSpec:
        """Return the noun that this body asks for, defaults filled in."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        fields["name"] = self.name or self.script
        default = self.max_tasks if self.fixed else default_virtual_workers(self.max_tasks)
        fields["virtual_workers"] = self.virtual_workers or default
        return JobSpec(**fields)


class JobPatch(Request):
    """What can be changed while a job waits or runs; what is left out stays as it is."""

    priority: Priority | None = None
    min_tasks: NumTasks | None = None
    max_tasks: NumTasks | None = None
    queue: Annotated[str, Field(min_length=1, max_length=60)] | None = None
    """Move the job to this queue; it leaves slots that the queue does not have at a step boundary."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change: give priority, min_tasks, max_tasks or queue")
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
class ChartPage:
    """Series as a chart shows them: in buckets, each with count, mean and extremes of its points."""

    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """Steps of the function slots(job, time)."""

    points: tuple[Usage, ...]
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """A slot and who holds it; `job_id` and `task_id` are None if it is free, or somebody else's job holds it."""

    node_id: str
    slot: int
    taken: bool
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
