"""What REST answers about jobs, beside the nouns of `pliant.core` themselves.

Frozen dataclasses, like those, turned into JSON field by field.
"""

from dataclasses import dataclass
from typing import Literal

from pliant.core.chart import Series
from pliant.core.event import Event
from pliant.core.job import Generation, Job, Metric, Task


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
