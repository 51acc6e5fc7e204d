"""The REST bodies. Answers are the frozen dataclasses of `pliant.core` themselves, turned into JSON field by field.

Requests refuse unknown fields and report every error at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, Field, model_validator

from pliant.api.request import Patch, Request, refuse
from pliant.core.access import SharedWith
from pliant.core.chart import Series
from pliant.core.event import Event, Usage
from pliant.core.input import values_of
from pliant.core.job import (
    DEFAULT_MAX_RESTARTS,
    Awaited,
    Generation,
    Job,
    JobSettings,
    JobSpec,
    Metric,
    NumTasks,
    Priority,
    QueueName,
    Task,
)
from pliant.core.notice import NoticeSettings
from pliant.core.plan import NodeView, PolicyName
from pliant.core.secret_names import hide_secrets
from pliant.core.tag import TagName, TagValue, tags_of

ELASTIC_ONLY = (
    "virtual_workers",
    "balance",
    "checkpoint_freq",
    "checkpoint_every_s",
    "resume_from",
    "mode",
    "audit",
    "stall_after_s",
    "on_stall",
    "metrics_every",
    "histograms_every",
    "tracking",
)


class JobRequest(Request, JobSettings, NoticeSettings):
    """A training to run, and who is sent a message at its end; travels beside its packed code."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return refuse(self, (*self._clashes(), *self._against_its_kind()))

    def _clashes(self) -> Iterator[str]:
        if self.min_tasks > self.max_tasks:
            yield f"min_tasks {self.min_tasks} is above max_tasks {self.max_tasks}; lower the one or raise the other"
        if self.virtual_workers is not None and self.max_tasks > self.virtual_workers:
            yield (
                f"max_tasks {self.max_tasks} is above virtual_workers {self.virtual_workers}: the global batch "
                f"cannot be cut finer than that; lower max_tasks or raise virtual_workers"
            )
        if self.balance == "speed" and self.mode == "fast":
            yield "balance 'speed' divides virtual workers, and mode 'fast' has none; leave one of the two out"
        if self.weights is not None and self.resume_from is not None:
            yield "weights and resume_from both say where the training starts; give one of them"
        if self.data_dir is not None and self.dataset is not None:
            yield "data_dir and dataset both say where the data are; give one of them"
        if self.python is not None and self.environment is not None:
            yield "python and environment both say what the tasks run in; give one of them"
        if self.webhook_secret is not None and self.webhook is None:
            yield "webhook_secret signs what a webhook gets; give webhook as well"
        if self.notify_on != "end" and self.webhook is None and self.mail is None:
            yield "notify_on says when a message is sent, and nothing says to whom; give webhook or mail as well"

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
        if wrong := [name for name in ELASTIC_ONLY if getattr(self, name) != type(self).model_fields[name].default]:
            yield f"{', '.join(wrong)}: for elastic jobs only; a fixed job's script does that by itself"

    def spec(self) -> JobSpec:
        """Return the noun that this body asks for, defaults filled in."""
        filled = {
            "name": self.name or self.script,
            "virtual_workers": self.max_tasks if self.fixed else self.virtual_workers,
            "tags": tags_of(self.tags),
        }
        return JobSpec(**{**values_of(JobSettings, self), **filled})

    def notices(self) -> NoticeSettings:
        """Return who is sent a message at its end; that is no part of the job, which others may see."""
        return NoticeSettings(**values_of(NoticeSettings, self))


J = TypeVar("J", bound=Job)


def without_secrets(job: J) -> J:
    """Return a job as it may be shown: a variable that is called like a secret has no value."""
    return replace(job, spec=replace(job.spec, env=hide_secrets(job.spec.env)))


class JobPatch(Patch):
    """What can be changed while a job waits or runs, tags also when it has ended; what is left out stays as it is."""

    priority: Priority | None = None
    min_tasks: NumTasks | None = None
    max_tasks: NumTasks | None = None
    queue: QueueName | None = None
    """Move the job to this queue; it leaves slots that the queue does not have at a step boundary."""
    tags: Mapping[TagName, TagValue | None] | None = None
    """Give the job these tags, values by name; null takes one away, and those that are not named stay."""
    after: Awaited | None = None
    """Let a job that has not started wait for these to complete, instead of what it waits for; none: it starts."""
    after_any: Awaited | None = None
    """The same for what it waits for to end."""


class ShareRequest(Request):
    """With whom something is shared from now on, and with nobody else."""

    shared_with: SharedWith
    """Names of users; `*` stands for everybody who can log on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareView:
    """With whom something is shared."""

    name: str
    """Such as a job's id."""
    owner: str
    shared_with: tuple[str, ...]
    revision: int
    """Its `ETag`; 0 if it never was shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedJob(Job):
    """A job that was just submitted or changed, with what its owner should know of it."""

    notes: tuple[str, ...] = ()
    """Sentences; each is an event of the job, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Jobs, newest first or in the order that was asked for; ask again with `before=next` for older ones."""

    jobs: tuple[Job, ...]
    next: str | None
    """Null: there are no older ones, or the order is another one."""
    total: int
    """So many jobs fit what was asked for, on all pages together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """A job with its tasks and its generations, oldest first."""

    job: Job
    tasks: tuple[Task, ...]
    generations: tuple[Generation, ...]
    remark: str = ""
    """What is to be known of how it goes, in sentences; empty if there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksAsked:
    """Who was asked where its threads are, and where the answers will be."""

    task_ids: tuple[str, ...]
    after: int
    """Answers in events are among those after this number, of kind `task.stacks`."""
    answer: Literal["events", "stderr"]
    """In events of the job; or at the end of each task's stderr, if its program is a Python script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Events in order; ask again with `after=last`. Or the newest first; then ask again with `before=next`."""

    events: tuple[Event, ...]
    last: int
    """How far was looked: no event up to this one is to come in this order."""
    next: int | None = None
    """Of the newest first: where older ones begin; null if there are none."""


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
    """A slot and who holds it; `job_id` and `task_id` are None if it is free, or somebody else's job holds it.

    If several tasks hold a part of it each, they name the one that has been there longest.
    """

    node_id: str
    slot: int
    taken: bool
    job_id: str | None
    task_id: str | None
    sharers: tuple[str, ...] = ()
    """The tasks that hold a part of it each, as far as they may be seen; empty if one task has all of it."""


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
    remark: str = ""
    """What is to be known of how it goes, in sentences; empty if there is nothing."""
    search: str = ""
    """Which search it is a trial of; empty: of none."""
    trial: int | None = None
    """Which trial of it; null: it is none."""
    history: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One stream of one task."""

    task_id: str
    stream: str
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """A file of a job's results."""

    path: str
    """Its name in the archive of the results; below `work/` lies what the job wrote into its code folder."""
    num_bytes: int
    changed_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFiles:
    """What a job's results are now."""

    files: tuple[ResultFile, ...]
    left_out: tuple[str, ...]
    """What is there and is not sent, and why; the first hundred."""


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
