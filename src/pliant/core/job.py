"""What a person asks for (`JobSpec`), what became of it (`Job`), and the processes that do it (`Task`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from pliant.core.lifecycle import JOB_LIFECYCLE, TASK_LIFECYCLE, GenerationState, JobState, TaskState, is_final

JobId = NewType("JobId", str)
TaskId = NewType("TaskId", str)
NodeId = NewType("NodeId", str)

DEFAULT_PRIORITY = 5000
MAX_PRIORITY = 10_000
DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A training as it was asked for; never changes after submission."""

    name: str
    """For people; need not be unique."""
    script: str
    """The Python file to run, relative to the code folder."""
    args: tuple[str, ...] = ()
    """Passed to the script as they are."""
    min_tasks: int = 1
    """The job starts with this many tasks and is paused rather than run with fewer."""
    max_tasks: int = 1
    """The job grows up to this many tasks."""
    slots_per_task: int = 1
    """GPUs (or CPU shares) that every task holds."""
    priority: int = DEFAULT_PRIORITY
    """1 to 10000; under `fairshare` two jobs share slots in the ratio of their priorities."""
    queue: str = DEFAULT_QUEUE
    virtual_workers: int
    """V: the global batch is cut into V parts whatever the number of tasks; `max_tasks` cannot exceed it."""
    python: str | None = None
    """Another Python interpreter (a virtual environment's, with Pliant installed); its tasks start cold."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Extra environment variables of every task."""
    data_dir: str | None = None
    """Given to the script as DATA_DIR."""
    checkpoint_freq: int = 1
    """Epochs between checkpoints; 0 saves only when the job leaves all its slots."""
    start_timeout_s: float = 600.0
    """The job fails when a task has run this long without starting to train."""
    audit: bool = False
    """Keep, beside the results, which samples every step used (16 bytes a sample and epoch)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a training is, as its leader last told."""

    epoch: int
    """Epochs finished."""
    num_epochs: int
    step: int
    """Optimizer steps committed since the start of the job."""
    num_steps: int
    """Optimizer steps in the whole job."""
    samples: int
    """Samples used by committed steps since the start of the job."""
    samples_per_s: float
    loss: float | None = None
    """Mean over the samples of the newest global batch."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Newest value of every metric that the script reports."""
    eta_s: float | None = None
    """Seconds left at the present speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A submitted training and what became of it."""

    id: JobId
    spec: JobSpec
    owner: str
    state: JobState
    priority: int
    """The present one; starts as `spec.priority`."""
    min_tasks: int
    max_tasks: int
    submitted_at: float
    """Seconds since the epoch (UTC), as every `_at`."""
    started_at: float | None = None
    """When it first held a slot."""
    ended_at: float | None = None
    num_slots: int = 0
    """Slots that its tasks hold now."""
    generation: int = 0
    """Number of the newest generation announced; 0 before the first."""
    reason: str = ""
    """Why the job is in its state; for a failed job what happened and what to do."""
    why: str = ""
    """Why it has the slots it has: the scheduler's newest sentence about it."""
    progress: Progress | None = None
    num_redone_steps: int = 0
    """Optimizer steps computed again after a loss."""
    revision: int = 0
    """Grows by one with every change, for clients that compare."""

    @property
    def ended(self) -> bool:
        return is_final(JOB_LIFECYCLE, self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One process of a job on its slots."""

    id: TaskId
    job_id: JobId
    node_id: NodeId
    slots: tuple[int, ...]
    """Slot numbers on the node."""
    state: TaskState
    started_at: float
    pid: int | None = None
    """Known once the task has connected."""
    ended_at: float | None = None
    exit_code: int | None = None
    """As the shell would tell it; minus the number of the signal that killed it; None while it runs or if unknown."""
    reason: str = ""
    """Why it left or was lost."""

    @property
    def ended(self) -> bool:
        return is_final(TASK_LIFECYCLE, self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One numbered membership of a job; the members are in rank order."""

    job_id: JobId
    number: int
    members: tuple[TaskId, ...]
    state: GenerationState
    announced_at: float
    switched_at: float | None = None
    step: int | None = None
    """Optimizer steps committed when it began to train."""
    pause_s: float | None = None
    """Training stood still this long for the switch, seconds."""
    redone_steps: int = 0
    """Steps computed again because the generation before it lost a member."""
    cause: str = ""
    """Why membership changed, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One value of one series of a job."""

    job_id: JobId
    name: str
    step: int
    """Optimizer steps committed."""
    epoch: int
    at: float
    value: float
