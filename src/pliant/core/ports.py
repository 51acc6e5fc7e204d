"""What the control room needs from the world, as protocols; `entry` hands in the adapters.

Every port has two implementations at least, and a contract suite in `tests.contracts` that all of them pass.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pliant.core.access import VisibleJobs
from pliant.core.chart import Series, SeriesEnd
from pliant.core.confinement import Confinement
from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import DeletedJob, Generation, Job, JobId, Metric, NodeId, Task, TaskId
from pliant.core.job_filter import EVERY_JOB, NEWEST_FIRST, JobFilter, JobOrder
from pliant.core.lifecycle import JobState
from pliant.core.link import ToTask
from pliant.core.machine import MeasuredMachine
from pliant.core.plan import NodeView
from pliant.core.registry import Registry
from pliant.core.slot import WHOLE_SLOT
from pliant.core.slot_history import CapacitySpan, JobLayer, SlotRecords
from pliant.core.slot_time import SlotTime
from pliant.core.tensor_histogram import HistogramSeries, JobHistograms, TensorHistogram

MAX_STDERR_BYTES = 8192
"""So much of the end of a dead task's stderr comes with its exit."""
UNSENT_FILE = ".unsent"
"""In a task's LOG_DIR: what it could not tell its server, as `pliant.api.unsent` writes it."""
MAX_UNSENT_BYTES = 2 << 20
"""So much of what a dead task could not tell its server comes with its exit."""


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Return seconds since the epoch, UTC."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOrder:
    """Start one process on these slots of this node."""

    task_id: TaskId
    node_id: NodeId
    slots: tuple[int, ...]
    argv: tuple[str, ...]
    """Arguments of the task's program (not of the interpreter)."""
    env: Mapping[str, str]
    """Added to the agent's own environment; holds secrets, so it is neither logged nor put on a command line."""
    cwd: str
    log_dir: str
    """Folder on the node that gets `stdout` and `stderr`; made if missing."""
    result_dir: str | None = None
    """Folder on the node that the task may write to and that holds `log_dir`; what a dead task left behind is read from
    inside it and nowhere else. None: the folder above `log_dir`."""
    model: str | None = None
    """File in `result_dir` that is there once a trained model is saved, whole."""
    python: str | None = None
    """Another interpreter; started cold."""
    memory_bytes: int | None = None
    """It is ended when it and all that it has started use more; None for no limit."""
    slot_share: int = WHOLE_SLOT
    """Thousandths of its slot that it holds; less than all of it only with one slot."""
    sees: tuple[int, ...] = ()
    """Slots whose devices the process can see, in this order; its own if empty."""
    confinement: Confinement = field(default_factory=Confinement)
    """What it may reach of the node; the agent adds what is the node's own: scratch space and devices."""
    later: tuple[str, ...] = ()
    """Folders in those that it writes to which it asks for when it needs them, where files must be brought first."""
    ticket: str = ""
    """By which a machine that does not see the state folder gets what the order names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a process listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTask:
    """A process that holds slots, as the cluster sees it."""

    task_id: TaskId
    node_id: NodeId
    slots: tuple[int, ...]
    slot_share: int = WHOLE_SLOT
    pid: int | None
    """None until the process exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The cluster at one instant."""

    nodes: tuple[NodeView, ...]
    tasks: tuple[LiveTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitFacts:
    """What a task left behind on its node, read by the agent there when the process was gone."""

    step: int | None = None
    """Optimizer steps committed, as the task noted after each; None if it noted none."""
    stderr: str = ""
    """The end of what it wrote to stderr, `MAX_STDERR_BYTES` at most."""
    stderr_at: float = 0.0
    """When it last wrote to stderr, seconds since the epoch; 0 if it never did."""
    unsent: str = ""
    """The messages that it could not tell the server, as `pliant.api.unsent` reads them; `MAX_UNSENT_BYTES` at most."""
    unread: str = ""
    """Why they were not read, though something lies in their place."""
    saved_model: bool = False
    """The job's trained model is there, whole."""
    out_of_memory: bool = False
    """It was ended because it used more memory than it, or its machine, has."""
    over_disk: bool = False
    """It was ended because its job's files hold more than a job may have on the node's disk. They stay, so whatever of
    the job is started next would be ended, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExit:
    """A task's process is gone and its slots are free."""

    task_id: TaskId
    exit_code: int | None
    """Minus the signal's number if a signal killed it; None if nobody could see it."""
    error: str = ""
    """Why it could not be started, if it never ran."""
    is_unfit: bool = False
    """That is a reason of its machine's: on another one it may be started."""
    cause: str = ""
    """Why the cluster ended it by itself, if it did, in words that follow its name."""
    facts: ExitFacts = ExitFacts()

    @property
    def went_with_its_machine(self) -> bool:
        """The machine was lost, or was left without a server: neither the process nor its job is to blame."""
        return self.exit_code is None and bool(self.cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNote:
    """Something that the owner of a task is to know of it."""

    task_id: TaskId
    words: str
    """They follow the task's name."""


class Cluster(Protocol):
    """Starts and stops processes on slots; knows no gradients.

    Laws: `start` of a task id that lives, or lived, does nothing. `drain`, `kill` and `show_stacks` of one that does
    not live do nothing. Every started task produces exactly one `TaskExit`, also if it could not be started. After its
    exit was reported a task is not observed, and its sidecars have ended. The exit tells what the task left behind
    (`ExitFacts`), also if it ended while nobody watched. No call blocks longer than it takes to write to a socket.
    """

    def observe(self) -> Observation: ...

    def measured(self) -> Mapping[NodeId, MeasuredMachine]:
        """Return the newest facts of the machines; those that have told none yet are left out."""
        ...

    def silent_nodes(self) -> Collection[NodeId]:
        """Return the nodes that nothing is heard of just now: whoever is silent there may be cut off, and not hang."""
        ...

    def unsteady_nodes(self) -> Mapping[NodeId, float]:
        """Return the nodes that are silent, or heard again, since a moment only: who is there may be heard yet.

        Each with the seconds that it stays so if nothing more is heard of it.
        """
        ...

    def free_address(self, node_id: NodeId) -> Address:
        """Return where a process of this node can listen and others reach it: on a port that nobody listens on now.

        The same port is not given out again soon, so that two who ask at the same time do not get in each other's way.

        Raises:
            ValueError: there is no such node.
        """
        ...

    def refuses_user(self, user: str) -> str:
        """Return why no process can run as this user of the operating system, in words; empty if they can."""
        ...

    def start(self, order: StartOrder) -> None:
        """Start a process.

        Raises:
            ValueError: the node or a slot does not exist, or a slot is held by another task.
        """
        ...

    def drain(self, task_id: TaskId) -> None:
        """Ask the process to leave at its next step boundary (SIGTERM)."""
        ...

    def kill(self, task_id: TaskId) -> None:
        """End the process and everything in its session at once (SIGKILL)."""
        ...

    def show_stacks(self, task_id: TaskId) -> None:
        """Make the process write the stacks of its threads to its stderr, if it is made for that; else do nothing."""
        ...

    def start_sidecar(self, order: StartOrder, beside: TaskId, ended: Callable[[str], None]) -> None:
        """Start a program of ours beside a task: within its walls and its limits, on no slot, and no longer than it.

        Args:
            order: its task id is the sidecar's own, and its slots are ignored.
            beside: the task.
            ended: called once, from a thread of the cluster's own, when nothing of it lives any more: with why it could
                not run or was ended, in words, or with nothing if it ended by itself.

        Raises:
            Unavailable: this cluster is closed.
        """
        ...

    def end_sidecar(self, sidecar_id: TaskId) -> None:
        """End a sidecar at once, with all that it has started; do nothing if it does not live."""
        ...

    def watch(
        self, listener: Callable[[TaskExit], None], note: Callable[[TaskNote], None] = lambda _note: None
    ) -> None:
        """Call `listener` once for every exit, and `note` for every note, from a thread of the cluster's own.

        An exit that nobody has acknowledged is told to whoever watches after this server has died.
        """
        ...

    def acknowledge(self, task_id: TaskId) -> None:
        """Take note that all that follows from a task's exit is written; do nothing if none was told."""
        ...

    def retain(self, job_ids: Collection[JobId]) -> None:
        """Remove what the tasks of all other jobs have left in shared memory; no task of those runs any more."""
        ...

    def close(self) -> None:
        """Let go of the cluster; processes that run go on."""
        ...


class Links(Protocol):
    """The server's ends of the control links."""

    def send(self, task_id: TaskId, message: ToTask) -> None:
        """Queue a message from any thread; dropped if the task is not connected (it will say `Hello` again)."""
        ...

    def close(self, task_id: TaskId) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Everything that one decision changes; written in one transaction."""

    jobs: tuple[Job, ...] = ()
    """Inserted or replaced."""
    tasks: tuple[Task, ...] = ()
    """Inserted or replaced."""
    generations: tuple[Generation, ...] = ()
    """Inserted or replaced, by (job_id, number)."""
    events: tuple[Event, ...] = ()
    """Appended; the store gives the numbers."""
    metrics: tuple[Metric, ...] = ()
    """Appended; a point whose (job, name, step) exists replaces it."""
    histograms: tuple[JobHistograms, ...] = ()
    """Appended; one whose (job, name, step) exists replaces it. Of too many names only the first are kept, of too many
    of one name those that `core.tensor_histogram.thin` leaves."""
    usage: tuple[Usage, ...] = ()
    """Appended."""
    capacity: tuple[CapacitySpan, ...] = ()
    """Inserted or replaced, by number."""
    deleted: tuple[DeletedJob, ...] = ()
    """Inserted or replaced. Of a job that is there all that was written before is removed, also its events, and the
    nouns that are about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to read, in order of `seq`."""

    after: int = 0
    before: int | None = None
    """Only those with a smaller number."""
    since: float | None = None
    """Only those that happened at this instant or later."""
    until: float | None = None
    """Only those that happened before this instant."""
    newest: bool = False
    """The newest first, and of too many these."""
    job_id: JobId | None = None
    kinds: tuple[EventKind, ...] = field(default=())
    states: tuple[JobState, ...] = field(default=())
    """Of the changes of a job's state only those to one of these; none: all."""
    limit: int = 1000
    visible: VisibleJobs | None = None
    """Leave out events of jobs and other nouns that somebody may not see; those of no noun are everybody's. None: leave
    out only what is said to one other user (`pliant.core.noun_event`)."""
    reader: str = ""
    """Who reads, if they see all: return what is said to them alone, too."""
    hidden: frozenset[EventKind] = frozenset()
    """Leave out these kinds."""
    other_slots: bool = False
    """Return changes of slots of jobs that somebody may not see, too; whoever asks takes out whose they are."""

    def fits(self, event: Event) -> bool:
        """Tell whether an event is asked for, but for whether it is visible."""
        return (
            event.seq > self.after
            and (self.before is None or event.seq < self.before)
            and (self.since is None or event.at >= self.since)
            and (self.until is None or event.at < self.until)
            and self.job_id in (None, event.job_id)
            and (not self.kinds or event.kind in self.kinds)
            and event.kind not in self.hidden
            and (not self.states or event.kind is not EventKind.JOB_STATE or event.data.get("to") in self.states)
        )


class Store(Protocol):
    """Remembers. Safe to call from any thread; what a call has written, every later call sees."""

    @property
    def registry(self) -> Registry:
        """What keeps named nouns, in the same place."""
        ...

    def write(self, writes: Writes) -> tuple[Event, ...]:
        """Write all or nothing; return the events with their numbers."""
        ...

    def job(self, job_id: JobId) -> Job | None: ...

    def jobs(
        self,
        which: JobFilter = EVERY_JOB,
        *,
        before: JobId | None = None,
        order: JobOrder = NEWEST_FIRST,
        offset: int = 0,
        limit: int = 1000,
        visible: VisibleJobs | None = None,
    ) -> tuple[Job, ...]:
        """Return jobs in an order, those that somebody may see or all, without the first `offset`.

        `before`, only for the newest first, is the last id of the page before, also if that job was deleted meanwhile.
        """
        ...

    def num_jobs(self, which: JobFilter = EVERY_JOB, *, visible: VisibleJobs | None = None) -> int:
        """Return how many jobs fit, of those that somebody may see or of all."""
        ...

    def find_jobs(self, text: str, *, limit: int, visible: VisibleJobs | None = None) -> tuple[Job, ...]:
        """Return jobs that hold a text in id or name, whatever its capitals, trials of searches apart.

        Those come first that are called so, then those that begin so; of equal ones the newest. Where very many hold
        it, only the newest are compared.
        """
        ...

    def num_by_state(
        self, which: JobFilter = EVERY_JOB, *, visible: VisibleJobs | None = None
    ) -> Mapping[JobState, int]:
        """Return how many of these jobs are in each state; states that none is in are left out."""
        ...

    def deleted_job(self, job_id: JobId) -> DeletedJob | None:
        """Return what is left of a job that was deleted."""
        ...

    def deleted_jobs(self) -> tuple[DeletedJob, ...]:
        """Return those whose files are not removed yet, in the order in which they were submitted."""
        ...

    def array_jobs(self, array_id: str) -> tuple[Job, ...]:
        """Return the jobs of an array in their order; none if there is no such array."""
        ...

    def tasks(self, job_id: JobId | None = None, *, live: bool = False) -> tuple[Task, ...]:
        """Return tasks oldest first."""
        ...

    def generations(self, job_id: JobId) -> tuple[Generation, ...]: ...

    def events(self, which: EventFilter) -> tuple[Event, ...]: ...

    def last_seq(self) -> int:
        """Return the number of the newest event, 0 if there is none."""
        ...

    def metrics(
        self, job_id: JobId, *, names: Sequence[str] = (), after_step: int = -1, limit: int = 10_000
    ) -> tuple[Metric, ...]:
        """Return points in order of (step, name)."""
        ...

    def chart(
        self,
        job_id: JobId,
        *,
        names: Sequence[str] = (),
        first_step: int = 0,
        last_step: int | None = None,
        max_buckets: int = 500,
    ) -> tuple[Series, ...]:
        """Return series (all, if none is named) between two steps, each in so many buckets at most.

        At the ends buckets may reach beyond the steps asked for, by less than one of those returned.
        """
        ...

    def histogram_series(self, job_id: JobId) -> tuple[HistogramSeries, ...]:
        """Return which names a job has histograms of, in their order."""
        ...

    def histograms(self, job_id: JobId, name: str) -> tuple[TensorHistogram, ...]:
        """Return the histograms that a job has of a name, in the order of their steps."""
        ...

    def series_ends(self, job_id: JobId, *, after: str = "", limit: int = 1000) -> tuple[SeriesEnd, ...]:
        """Return which series a job has after a name, in the order of their names, and how each ends."""
        ...

    def usage(
        self, *, since: float = 0.0, job_id: JobId | None = None, visible: VisibleJobs | None = None
    ) -> tuple[Usage, ...]:
        """Return the points at or after `since`, oldest first, and before them each job's last earlier one."""
        ...

    def slot_history(self, begin: float, end: float, *, max_steps: int, by_hour: bool = False) -> SlotRecords | None:
        """Return who held how many slots from `begin` until before `end`, all of it as it is at one instant.

        Args:
            begin: where the window begins; with `by_hour` a multiple of an hour.
            end: where it ends; with `by_hour` hours that begin before it are whole.
            max_steps: return None if there are more steps.
            by_hour: read sums of hours instead of steps, however many there are.
        """
        ...

    def job_layers(self, job_ids: Collection[JobId]) -> Mapping[JobId, JobLayer]:
        """Return what charts have to know of jobs, those that are there."""
        ...

    def count_events(self, which: EventFilter) -> int:
        """Return how many events there are of those, `which.limit` at most."""
        ...

    def slot_time(self, start: float, until: float, visible: VisibleJobs | None = None) -> tuple[SlotTime, ...]:
        """Return what each job used between two instants, of those that used anything and somebody may see.

        Law: it is what `integrate` of `core.slot_time` makes of `usage(since=start)`.
        """
        ...

    def next_id(self, name: str, how_many: int = 1) -> int:
        """Return 1, 2, 3, … for each name, or the first of so many in a row; never the same number twice, also after a
        crash.
        """
        ...

    def close(self) -> None: ...
