"""What a person asks for (`JobSpec`), what became of it (`Job`), and the processes that do it (`Task`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NewType, get_args

from annotated_types import Ge, Gt, Le, Len, MaxLen, MinLen

from pliant.core.array import JobArray
from pliant.core.errors import InvalidInput
from pliant.core.input import FINITE, ONE_LINE, Check, Input, Pattern
from pliant.core.job_params import ParamValue
from pliant.core.lifecycle import JOB_LIFECYCLE, TASK_LIFECYCLE, GenerationState, JobState, TaskState, is_final
from pliant.core.serving_profile import EndpointPart
from pliant.core.slot import WHOLE_SLOT
from pliant.core.tag import GivenTags
from pliant.core.trial_part import TrialPart

JobId = NewType("JobId", str)
TaskId = NewType("TaskId", str)
NodeId = NewType("NodeId", str)

DEFAULT_PRIORITY = 5000
MAX_PRIORITY = 10_000
DEFAULT_QUEUE = "default"
DEFAULT_MAX_RESTARTS = 3
DEFAULT_CHECKPOINT_EVERY_S = 600.0
MAX_VIRTUAL_WORKERS = 4096
MIN_MEMORY_BYTES = 64 << 20
DEFAULT_START_TIMEOUT_S = 600.0

Mode = Literal["exact", "fast"]
"""What a person asks of the results: bitwise the same for any number of workers, or only the same in distribution."""
Claim = Literal["exact", "statistical", "fast"]
"""What a training says of its results: what `exact` promises, what is left of it, or what `fast` promises."""
Balance = Literal["even", "speed"]
"""How virtual workers divide over the tasks of a training: as even as can be, or by how fast each of them is."""
OnStall = Literal["warn", "replace", "end"]
"""What becomes of a training that is stuck: its owner is warned; or also what is stuck is replaced; or the job ends."""


JobKind = Literal["training", "fixed", "trial", "endpoint"]
"""What a job is to people: a training, one of a fixed size, a trial of a search, a version of an endpoint."""
JOB_KINDS: Final[tuple[JobKind, ...]] = get_args(JobKind)

NumTasks = Annotated[int, Input(Ge(1), Le(MAX_VIRTUAL_WORKERS))]
NumSamples = Annotated[int, Input(Ge(1))]
SlotsPerTask = Annotated[int, Input(Ge(1), Le(64))]
Priority = Annotated[int, Input(Ge(1), Le(MAX_PRIORITY))]
QueueName = Annotated[str, Input(Len(1, 60))]
JobOrArray = Annotated[
    str, Input(Pattern(r"^(job|array)-[1-9][0-9]{0,17}$", "the id of a job or of an array, such as job-3 or array-1"))
]
MAX_AWAITED = 100
Awaited = Annotated[tuple[JobOrArray, ...], Input(MaxLen(MAX_AWAITED))]
"""Ids of jobs, and of arrays, each of which stands for all of its jobs."""


def refuse_notebook(script: str) -> None:
    """Raise InvalidInput if a script is a notebook, with what makes a script of it."""
    if script.endswith(".ipynb"):
        made = f"{script.removesuffix('.ipynb')}.py"
        message = (
            f"{script!r} is a notebook; `jupyter nbconvert --to script {script!r}` makes {made!r} of it: submit that"
        )
        raise InvalidInput.at("", message)


_Path = Annotated[str, Input(Len(1, 4000))]
VariableName = Annotated[
    str, Input(Pattern(r"^[A-Za-z_][A-Za-z0-9_]*$", "a name of letters, digits and '_', no digit first"))
]


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """What people say of a training. A field that is added here is one of the REST body and of `submit`, too."""

    name: (
        Annotated[str, Input(Len(1, 120), Pattern(r"^[^\x00-\x1f/]+$", "one line of text without '/'"), ONE_LINE)]
        | None
    ) = None
    """For people; the script's name if left out."""
    script: Annotated[str, Input(Len(1, 400), ONE_LINE, Check(refuse_notebook))]
    """The Python file to run, relative to the code folder."""
    args: Annotated[tuple[str, ...], Input(MaxLen(1000))] = ()
    """Passed to the script as they are."""
    min_tasks: NumTasks = 1
    """Start with this many tasks; pause rather than run with fewer."""
    max_tasks: NumTasks = 1
    """Grow up to this many tasks."""
    slots_per_task: SlotsPerTask = 1
    """GPUs, or CPU shares, that every task holds."""
    after: Awaited = ()
    """Take no slot before these have completed, and end if one of them does not."""
    after_any: Awaited = ()
    """Take no slot before these have ended, whatever became of them."""
    priority: Priority = DEFAULT_PRIORITY
    """1 to 10000; a job of twice the priority gets twice the slots."""
    queue: QueueName = DEFAULT_QUEUE
    tags: GivenTags = field(default_factory=dict)
    """What people find it by: names, each with a value, which may be empty; 50 at most."""
    virtual_workers: NumTasks | None = None
    """V: the global batch is cut into V parts whatever the size. If left out: what the maximum and the batch size make
    cheap."""
    balance: Balance = "even"
    """`even`: every task computes as many of the V parts. `speed`: faster tasks compute more of them."""
    python: Annotated[str, Input(MinLen(1))] | None = None
    """Another Python interpreter, with Pliant installed in its environment."""
    environment: (
        Annotated[str, Input(Len(1, 4000), Pattern(r"^[^\x00-\x1f]+$", "one line of text"), ONE_LINE)] | None
    ) = None
    """A registered environment's name, the whole path of a virtual environment, `conda:NAME` or `conda:/path`, or
    `requirements:FILE` (in the code folder; built once). The job takes no slot before it is ready."""
    env: Mapping[VariableName, str] = field(default_factory=dict)
    """Extra environment variables of every task."""
    data_dir: str | None = None
    """Given to the script as DATA_DIR."""
    dataset: Annotated[str, Input(Len(1, 100))] | None = None
    """A data set; DATA_DIR, TRAIN_DATA_DIR and kin tell every task where it lies."""
    checkpoint_freq: Annotated[int, Input(Ge(0))] = 1
    """Epochs between checkpoints; 0 saves only when the job leaves all its slots."""
    checkpoint_every_s: Annotated[float, Input(Ge(0), FINITE)] = DEFAULT_CHECKPOINT_EVERY_S
    """Seconds between checkpoints in the middle of an epoch; 0 makes none."""
    weights: _Path | None = None
    """A `state_dict` to start from: a job (`job-3`: its trained model) or a whole path on the server's machine."""
    resume_from: _Path | None = None
    """A job (`job-3`), or the whole path of a folder of checkpoints; the first tasks start from the newest one."""
    mode: Mode = "exact"
    """`exact`: results bitwise the same for any number of workers. `fast`: one micro-batch per worker, stock sums."""
    fixed: bool = False
    """An ordinary `torch.distributed` script of exactly `max_tasks` processes, all or none; `min_tasks` is the same."""
    max_restarts: Annotated[int, Input(Ge(0), Le(1000))] = DEFAULT_MAX_RESTARTS
    """Start a fixed job again so many times after one of its processes failed or was lost."""
    memory_bytes: Annotated[int, Input(Ge(MIN_MEMORY_BYTES), Le(2**50))] | None = None
    """End a task that uses more memory than this, with all that it has started; about 300 MB go to torch itself."""
    start_timeout_s: Annotated[float, Input(Gt(0), FINITE)] = DEFAULT_START_TIMEOUT_S
    """Fail the job when a task runs this long without building its `Run`; the first step may take as long again."""
    stall_after_s: Annotated[float, Input(Ge(0), FINITE)] | None = None
    """Take the training for stuck after so many seconds without a step; 0: never. If left out: 20 times what is usual,
    30 s at least."""
    on_stall: OnStall = "warn"
    """When it is stuck: `warn` says so and where its code is, `replace` also replaces the tasks that are stuck, `end`
    lets the job fail."""
    time_limit_s: Annotated[float, Input(Gt(0), FINITE)] | None = None
    """Stop the job, at a step boundary, when it has held slots for so many seconds."""
    metrics_every: Annotated[int, Input(Ge(1), Le(1_000_000))] | None = None
    """Record the loss and metrics of every so many steps as they are. If left out: means over the steps of a quarter of
    a second."""
    histograms_every: Annotated[int, Input(Ge(1), Le(1_000_000))] | None = None
    """Log histograms of all weights and gradients every so many steps, about once a second at most. If left out: none
    but those that the script logs."""
    tracking: bool = True
    """Log loss, metrics and hyperparameters to Weights & Biases or MLflow if the job's variables name them. Off: the
    script's own business."""
    audit: bool = False
    """Keep, beside the results, which samples every step used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(JobSettings):
    """A training as it was asked for; never changes after submission."""

    # Nothing is open here: `data_dir` is the data set's if there is one, `weights` and `resume_from` are whole paths.
    name: str = field()  # `field()`: without a default, which the inherited one has
    tags: Mapping[str, str] = field(default_factory=dict)
    data_parts: Mapping[str, str] = field(default_factory=dict)
    """Where the parts `train`, `validation` and `test` of the data set lie, those that there are."""
    array: JobArray | None = None
    """Which job of an array it is; None if it is of none."""
    endpoint: EndpointPart | None = None
    """What it serves; None: it trains."""
    trial: TrialPart | None = None
    """Which trial of a search it is; None if it is of none."""
    own_numbers: bool = False
    """Its optimizers keep the numbers that its script gives them when it starts from `resume_from`."""

    @property
    def kind(self) -> JobKind:
        """What it is to people."""
        if self.endpoint is not None:
            return "endpoint"
        if self.trial is not None:
            return "trial"
        return "fixed" if self.fixed else "training"

    @property
    def slot_share(self) -> int:
        """Thousandths of its slot that each task holds; all of it, but for kernels that share one."""
        return WHOLE_SLOT if self.endpoint is None else self.endpoint.slot_share

    def num_slots_for(self, num_tasks: int) -> int:
        """Return how many slots so many tasks hold, or a part of them."""
        return -(-num_tasks * self.slots_per_task * self.slot_share // WHOLE_SLOT)


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
    shares: Annotated[tuple[NumTasks, ...], MaxLen(MAX_VIRTUAL_WORKERS)] = ()
    """Virtual workers of every worker, in rank order, if they are shared by speed and not even."""
    batch_size: NumSamples | None = None
    """Samples of the global batch; None: not said."""
    virtual_workers: NumTasks | None = None
    """V as the script uses it, and so the most tasks that can work; None: not said."""


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
    queue: str = DEFAULT_QUEUE
    """The present one; starts as `spec.queue`."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """The present ones, values by name; they start as `spec.tags`."""
    after: tuple[str, ...] = ()
    """Of `spec.after`, or what a person put in its place, what has not completed yet."""
    after_any: tuple[str, ...] = ()
    """Of `spec.after_any`, or what a person put in its place, what has not ended yet."""
    hold: str = ""
    """Why it takes no slots though it could, in words; empty: nothing holds it."""
    submitted_at: float
    """Seconds since the epoch (UTC), as every `_at`."""
    started_at: float | None = None
    """When it first held a slot."""
    ended_at: float | None = None
    num_slots: int = 0
    """Slots that its tasks hold now; of which they hold a part counts, too."""
    generation: int = 0
    """Number of the newest generation announced; 0 before the first."""
    reason: str = ""
    """Why the job is in its state; for a failed job what happened and what to do."""
    why: str = ""
    """Why it has the slots it has: the scheduler's newest sentence about it."""
    progress: Progress | None = None
    num_redone_steps: int = 0
    """Optimizer steps computed again after a loss."""
    claim: Claim | None = None
    """What its leader says of its results; None before the first step. It may only get weaker."""
    claim_step: int = 0
    """The steps that were committed when the claim became what it is."""
    claim_reason: str = ""
    """Why the claim is weaker than what was asked for."""
    fingerprint: str = ""
    """What the results depend on besides script and data: versions, device, threads, flags."""
    digest: str = ""
    """SHA-256 of the final state, in hex; empty before the end and where the script has none."""
    num_restarts: int = 0
    """A fixed job: how many times it was started again because a process of it failed or was lost."""
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    """Hyperparameters: what the script's arguments say, and what it reports with `run.log_params`."""
    colour: int = 0
    """Of its layer in charts, 0 to 23: trials of a search share one, and versions of an endpoint."""
    rerun_of: JobId | None = None
    """The job that it runs again, which may have been deleted since; None if it runs none."""
    revision: int = 0
    """Grows by one with every change, for clients that compare."""

    @property
    def ended(self) -> bool:
        return is_final(JOB_LIFECYCLE, self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedJob:
    """What is left of a job that a person deleted: its id is never given again."""

    id: JobId
    owner: str
    deleted_at: float
    deleted_by: str
    has_files: bool = True
    """Its folder is not removed yet."""


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
    """As a shell shows it; minus the number of the signal that killed it; None while it runs or if unknown."""
    reason: str = ""
    """Why it left or was lost."""
    last_message: int = field(default=0, metadata={"alias": "told"})
    """The number of its newest message that became an event; what comes with this one or a lower one is no news.

    JSON and the database call it by its alias.
    """

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
