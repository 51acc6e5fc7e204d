"""What a task is told through the variables of its environment; control writes it, the task's process reads it.

Every variable is named once, in the annotation of its field. Fields are text, numbers and truth values, since core
knows no paths. A value of None, "" or False has no variable; a part that does not concern a task has none of its own.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Self, Union, get_args, get_origin, get_type_hints

from pliant.core.job import DEFAULT_CHECKPOINT_EVERY_S, Balance, JobId, Mode, TaskId
from pliant.core.serving_profile import Runner
from pliant.core.slot import WHOLE_SLOT

STACKS_SIGNAL: Final = 47
"""A real-time signal that libraries do not use: a task without a control link writes its stacks to its stderr then."""


class Variable:
    """The names that a field has in the environment: all are written, the first is read."""

    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        self.names = names


class Variables:
    """Base of the dataclasses here."""

    __slots__ = ()

    def to_env(self) -> dict[str, str]:
        """Return the variables."""
        env: dict[str, str] = {}
        for name, _, variable in self._fields():
            value = getattr(self, name)
            if isinstance(value, Variables):
                env |= value.to_env()
            elif variable is not None and (text := _text(value)):
                for called in variable.names:
                    env[called] = text
        return env

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Return what the variables say; those that are not there, or are empty, leave the default.

        Raises:
            KeyError: one that has no default is not there.
        """
        defaults = {one.name: one.default for one in fields(cls)}  # type: ignore[arg-type]
        values: dict[str, Any] = {}
        for name, kind, variable in cls._fields():
            if variable is None:
                if defaults[name] is not None or kind.is_said(env):
                    values[name] = kind.from_env(env)
            elif text := env.get(variable.names[0]):
                values[name] = text == "1" if kind is bool else kind(text)
            elif defaults[name] is MISSING:
                raise KeyError(variable.names[0])
        return cls(**values)

    @classmethod
    def variables(cls) -> tuple[str, ...]:
        """Return the names of all its variables."""
        return tuple(name for _, _, variable in cls._fields() if variable is not None for name in variable.names)

    @classmethod
    def _fields(cls) -> tuple[tuple[str, Any, Variable | None], ...]:
        kind: type = cls
        return _declared(kind)

    @classmethod
    def is_said(cls, env: Mapping[str, str]) -> bool:
        """Tell whether its first variable is there."""
        return next(variable for _, _, variable in cls._fields() if variable is not None).names[0] in env


@cache
def _declared(cls: type) -> tuple[tuple[str, Any, Variable | None], ...]:
    """Return the fields with their types without None, and what they are called; parts have no name of their own."""
    found = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        variable = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Variable)), None)
        bare = hint if variable is None else get_args(hint)[0]
        if get_origin(bare) in (Union, UnionType):
            bare = next(one for one in get_args(bare) if one is not NoneType)
        found.append((name, str if get_origin(bare) is Literal else bare, variable))
    return tuple(found)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else ""
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFolders(Variables):
    """Where its job's files are; the names are IBM's."""

    code: Annotated[str | None, Variable("DLI_WORK_DIR")] = None
    """The submitted code; where the task is started. What is written here is a result, too."""
    result: Annotated[str | None, Variable("RESULT_DIR")] = None
    """What is put here is the job's result."""
    log: Annotated[str | None, Variable("LOG_DIR")] = None
    """The task's own folder of logs, in the result."""
    model: Annotated[str | None, Variable("SAVED_MODEL_DIR")] = None
    """The trained model: `RESULT_DIR/model`."""
    state: Annotated[str | None, Variable("JOB_STATE_DIR")] = None
    """What the job's processes keep for each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskData(Variables):
    """Where its data are."""

    folder: Annotated[str | None, Variable("DATA_DIR")] = None
    """The folder that was named, or that of the data set."""
    dataset: Annotated[str | None, Variable("PLIANT_DATASET")] = None
    """The name of the data set."""
    train: Annotated[str | None, Variable("TRAIN_DATA_DIR")] = None
    """The data set's part for training, if it has one."""
    validation: Annotated[str | None, Variable("VALIDATION_DATA_DIR", "VAL_DATA_DIR")] = None
    """The data set's part for validation."""
    test: Annotated[str | None, Variable("TEST_DATA_DIR")] = None
    """The data set's part for tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskArray(Variables):
    """Which job of an array its job is. Each of the job's values has a variable of its own: `PLIANT_ARRAY_LR`."""

    id: Annotated[str, Variable("PLIANT_ARRAY")]
    """The array's id, such as `array-1`."""
    index: Annotated[str, Variable("PLIANT_JOB_INDEX")]
    """The job's number in it: 0, 1, 2, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTrial(Variables):
    """Which trial of a search its job is. Each of the trial's values has a variable of its own: `PLIANT_PARAM_LR`."""

    search: Annotated[str, Variable("PLIANT_SEARCH")]
    """The search's name."""
    number: Annotated[int, Variable("PLIANT_TRIAL", "SUBID")]
    """The trial's number in it: 0, 1, 2, …; the second name is IBM's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNode(Variables):
    """What the agent of its node tells it."""

    host: Annotated[str, Variable("PLIANT_HOST")] = "127.0.0.1"
    """The address that peers reach this task's collectives at."""
    num_threads: Annotated[int, Variable("PLIANT_NUM_THREADS")] = 1
    """Its share of the machine's threads; `OMP_NUM_THREADS` and kin say the same to libraries."""
    slot_share: Annotated[int, Variable("PLIANT_SLOT_SHARE")] = WHOLE_SLOT
    """Thousandths of its slot that it holds: so much of a GPU's memory is its own."""
    memory_dir: Annotated[str | None, Variable("PLIANT_MEMORY_DIR")] = None
    """The job's folder in shared memory, for checkpoints; absent if there is none."""
    has_copies: Annotated[bool, Variable("PLIANT_COPIES")] = False
    """`1`: the folders of its job are copies, and it asks for checkpoints when it needs them; or absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticTask(Variables):
    """What a task is told that trains under the coordinator."""

    url: Annotated[str, Variable("PLIANT_URL")]
    """Where the server is."""
    job_name: Annotated[str, Variable("PLIANT_JOB_NAME")] = ""
    """Its job's name, for people."""
    token: Annotated[str, Variable("PLIANT_TASK_TOKEN")]
    """The control link opens to who proves to hold it; taken away before the script runs."""
    virtual_workers: Annotated[int | None, Variable("PLIANT_VIRTUAL_WORKERS")] = None
    """V: the parts of the global batch; absent: chosen from `PLIANT_MAX_TASKS` and the batch size."""
    balance: Annotated[Balance, Variable("PLIANT_BALANCE")] = "even"
    """`speed`: faster tasks compute more of them; or `even`."""
    max_tasks: Annotated[int, Variable("PLIANT_MAX_TASKS")] = 1
    """The job grows up to this many tasks, as it was submitted."""
    mode: Annotated[Mode, Variable("PLIANT_MODE")] = "exact"
    """`exact` or `fast`."""
    checkpoint_freq: Annotated[int, Variable("PLIANT_CHECKPOINT_FREQ")] = 1
    """Epochs between checkpoints."""
    checkpoint_every_s: Annotated[float, Variable("PLIANT_CHECKPOINT_EVERY_S")] = DEFAULT_CHECKPOINT_EVERY_S
    """Seconds between checkpoints in the middle of an epoch; 0 makes none."""
    lease_s: Annotated[float | None, Variable("PLIANT_LEASE_S")] = None
    """The server takes it for hung after so many seconds of silence; absent: nobody minds."""
    metrics_every: Annotated[int | None, Variable("PLIANT_METRICS_EVERY")] = None
    """Record the loss and metrics of every so many steps; absent: means over the steps of a quarter of a second."""
    histograms_every: Annotated[int | None, Variable("PLIANT_HISTOGRAMS_EVERY")] = None
    """Log histograms of all weights and gradients every so many steps; absent: none."""
    tracking: Annotated[bool, Variable("PLIANT_TRACKING")] = False
    """`1`: log to the experiment trackers that its variables name; or absent."""
    audit: Annotated[bool, Variable("PLIANT_AUDIT")] = False
    """`1`: keep which samples every step used; or absent."""
    resume_from: Annotated[str | None, Variable("PLIANT_RESUME_FROM")] = None
    """Another job's folder of checkpoints to start from, as a whole path; or absent."""
    own_numbers: Annotated[bool, Variable("PLIANT_OWN_NUMBERS")] = False
    """`1`: its optimizers keep the numbers that its script gives them when it starts from there; or absent."""
    keep_every: Annotated[int | None, Variable("PLIANT_KEEP_EVERY")] = None
    """Keep the state at the end of every so many epochs, for trials that begin from there; or absent."""
    server_file: Annotated[str | None, Variable("PLIANT_SERVER_FILE")] = None
    """The file that says where the next server is."""
    certificate: Annotated[str | None, Variable("PLIANT_CA")] = None
    """The certificate that it knows the server by; absent without TLS."""
    server_name: Annotated[str | None, Variable("PLIANT_SERVER_NAME")] = None
    """The name that stands in that certificate, if it is not the URL's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneTask(Variables):
    """What a script may be told that runs without a server; what is left out is what a submitted job has, too."""

    virtual_workers: Annotated[int | None, Variable("PLIANT_VIRTUAL_WORKERS")] = None
    """V: the parts of the global batch; absent: as for a job of at most one task."""
    mode: Annotated[Mode, Variable("PLIANT_MODE")] = "exact"
    """`exact` or `fast`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTask(Variables):
    """What a process of a fixed job is told: torchrun's names, so that `init_process_group` finds the others by itself.

    See https://docs.pytorch.org/docs/stable/elastic/run.html.
    """

    fixed: Annotated[bool, Variable("PLIANT_FIXED")] = True
    """`1`: the process of a fixed job; or absent."""
    master_address: Annotated[str, Variable("MASTER_ADDR")]
    """Where the process of rank 0 listens."""
    master_port: Annotated[int, Variable("MASTER_PORT")]
    """And its port."""
    rank: Annotated[int, Variable("RANK", "ROLE_RANK")]
    """Its number among all."""
    size: Annotated[int, Variable("WORLD_SIZE", "ROLE_WORLD_SIZE")]
    """How many there are."""
    local_rank: Annotated[int, Variable("LOCAL_RANK")]
    """Its number among those of its node."""
    local_size: Annotated[int, Variable("LOCAL_WORLD_SIZE")]
    """How many there are on its node."""
    node_rank: Annotated[int, Variable("GROUP_RANK")]
    """The number of its node."""
    num_nodes: Annotated[int, Variable("GROUP_WORLD_SIZE")]
    """How many nodes there are."""
    num_restarts: Annotated[int, Variable("TORCHELASTIC_RESTART_COUNT")]
    """How many times the job was started again."""
    max_restarts: Annotated[int, Variable("TORCHELASTIC_MAX_RESTARTS")]
    """How many times it is started again at most."""
    run_id: Annotated[str, Variable("TORCHELASTIC_RUN_ID")]
    """The job's id."""
    role: Annotated[str, Variable("ROLE_NAME")] = "default"
    """Always `default`."""
    agent_store: Annotated[str, Variable("TORCHELASTIC_USE_AGENT_STORE")] = "False"
    """Always `False`: the process of rank 0 makes the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTask(Variables):
    """What a kernel is told: a task that answers requests for an endpoint. Three of the names are IBM's."""

    runner: Annotated[Runner, Variable("PLIANT_RUNNER")]
    """What runs the model: `redhare`, `python`, `torch`, `onnx` or `job`."""
    file: Annotated[str, Variable("PLIANT_MODEL_FILE")]
    """What is run, in the folder of the model."""
    endpoint: Annotated[str, Variable("PLIANT_ENDPOINT", "REDHARE_MODEL_NAME")]
    """The endpoint's name."""
    version: Annotated[int, Variable("PLIANT_ENDPOINT_VERSION")]
    """The number of the version that it runs."""
    folder: Annotated[str, Variable("REDHARE_MODEL_PATH")]
    """The folder of the model: `DLI_WORK_DIR`."""
    gateway: Annotated[str, Variable("PLIANT_GATEWAY")]
    """The socket where the gateway takes kernels; of several the first one's, and `-1`, `-2`, … follow its name."""
    token: Annotated[str, Variable("PLIANT_KERNEL_TOKEN")]
    """What it shows the gateway; taken away before the model is loaded."""
    kernel: Annotated[str, Variable("MSD_POD_NAME")] = ""
    """The kernel's name: its task id."""
    weights: Annotated[str | None, Variable("PLIANT_MODEL_WEIGHTS")] = None
    """A `state_dict` in the model's folder; or absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnvironment(Variables):
    """What control tells a task, and reads again in its process; an elastic job's tasks and a fixed one's differ."""

    task_id: Annotated[TaskId, Variable("PLIANT_TASK_ID")]
    """Its own id, such as `job-3.2`."""
    job_id: Annotated[JobId, Variable("PLIANT_JOB_ID", "TRAINING_ID", "DLI_EXECID", "TASK_JOB_ID")]
    """Its job's id; three of the names are IBM's."""
    weights: Annotated[str | None, Variable("PLIANT_WEIGHTS")] = None
    """A `state_dict` to start from, as a whole path; or absent."""
    backend: Annotated[str, Variable("FABRIC_BACKEND")] = "pytorch"
    """IBM's name; always `pytorch`."""
    is_elastic: Annotated[str, Variable("DLI_IS_ELASTIC")] = "true"
    """IBM's name: `true`, or `false` for the processes of a fixed job."""
    ibm_modules: Annotated[str | None, Variable("FABRIC_HOME")] = None
    """The folder of IBM's modules; `PYTHONPATH` begins with it."""
    tags: Annotated[str | None, Variable("PLIANT_TAGS")] = None
    """The tags that its job had when it was started, as JSON: `{"lr": "0.1", "baseline": ""}`; or absent."""
    folders: TaskFolders = field(default_factory=TaskFolders)
    data: TaskData = field(default_factory=TaskData)
    array: TaskArray | None = None
    trial: TaskTrial | None = None
    elastic: ElasticTask | None = None
    fixed: FixedTask | None = None
    serving: ServingTask | None = None
