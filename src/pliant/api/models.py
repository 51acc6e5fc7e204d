"""The REST bodies of templates, models and trainings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StrictBool, StrictStr, field_validator, model_validator

from pliant.api.request import Request
from pliant.core.hyperparameters import ENGINES, Engine, Hyperparameters, optimizer_named
from pliant.core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, NumTasks, Priority, Progress
from pliant.core.parameter import MAX_PARAMETERS, MAX_TEXT, Parameter, Value

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$"
NAME_RULE: Final = "letters, digits, '.', '_' and '-', 50 at most, beginning with a letter or digit"
MAX_SHARES: Final = 1000
MAX_INT: Final = 2**31 - 1

Name = Annotated[str, Field(pattern=NAME_PATTERN, description=f"Of {NAME_RULE}.")]
Text = Annotated[str, Field(max_length=MAX_TEXT, pattern=r"^[^\x00]*$")]
Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
Place = Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00]+$")]
QueueName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[^\x00]+$")]
SharedWith = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")], ...],
    Field(max_length=MAX_SHARES, description="Names of users; `*` is everybody."),
]
Whole = Annotated[int, Field(ge=-(2**63), le=2**63 - 1, strict=True)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=1, le=MAX_INT, strict=True)]
GivenValue = StrictBool | Whole | Number | Annotated[StrictStr, Field(max_length=MAX_TEXT)]
Values = Annotated[dict[Annotated[str, Field(max_length=100)], GivenValue], Field(max_length=MAX_PARAMETERS)]


class ParameterRequest(Request):
    """A parameter of the template's own."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    kind: Literal["int", "float", "bool", "text", "choice"]
    default: GivenValue | None = None
    """Left out: every model has to give it."""
    minimum: Number | None = None
    maximum: Number | None = None
    choices: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=100)] = ()
    description: Text = ""

    def noun(self) -> Parameter:
        """Return the value that this body says."""
        return Parameter(**{name: getattr(self, name) for name in type(self).model_fields})


class TemplateRequest(Request):
    """Code that models are made from; travels beside its packed files."""

    name: Name
    framework: Annotated[str, Field(min_length=1, max_length=60)] = "PyTorch"
    """For people, and for programs that list frameworks."""
    main_file: Annotated[str, Field(min_length=1, max_length=400, pattern=r"^[^\x00]+$")] = "main.py"
    """The Python file to run, relative to the folder."""
    description: Text = ""
    parameters: Annotated[tuple[ParameterRequest, ...], Field(max_length=MAX_PARAMETERS)] = ()
    engines: Annotated[tuple[Engine, ...], Field(min_length=1, max_length=len(ENGINES))] = ENGINES
    """The training engines that the main file is written for; the first is that of models that name none."""
    shared_with: SharedWith = ()


class HyperparameterChanges(Request):
    """Numbers of a training to set; what is left out stays, and `null` goes back to the default."""

    learning_rate: Number | None = None
    batch_size: Count | None = None
    """Samples of one optimizer step, over all workers together."""
    test_batch_size: Count | None = None
    epochs: Count | None = None
    optimizer: Annotated[str, Field(max_length=60)] | None = None
    """SGD, Momentum, Nesterov, GradientDescent, Adam, AdamW, NAdam, RAdam, Adamax, SparseAdam, Adagrad, Adadelta,
    RMSprop, ASGD or Rprop, in letters of any case."""
    momentum: Number | None = None
    dampening: Number | None = None
    weight_decay: Number | None = None
    nesterov: StrictBool | None = None
    beta1: Number | None = None
    beta2: Number | None = None
    epsilon: Number | None = None
    amsgrad: StrictBool | None = None
    rho: Number | None = None
    alpha: Number | None = None
    centered: StrictBool | None = None
    lambd: Number | None = None
    lr_decay: Number | None = None
    lr_policy: Annotated[str, Field(max_length=60)] | None = None
    """fixed, step, multistep, exp, inv, poly, sigmoid, exponential, inversetime, naturalexp, piecewise, polynomial,
    cosineannealing or reducelronplateau."""
    lr_gamma: Number | None = None
    lr_step_size: Count | None = None
    lr_power: Number | None = None
    lr_milestones: Annotated[tuple[Count, ...], Field(max_length=1000)] | None = None
    lr_values: Annotated[tuple[Number, ...], Field(max_length=1000)] | None = None
    lr_end: Number | None = None
    lr_staircase: StrictBool | None = None
    lr_patience: Annotated[int, Field(ge=0, le=MAX_INT, strict=True)] | None = None

    @field_validator("optimizer")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        return None if name is None else optimizer_named(name) or name

    @field_validator("lr_policy")
    @classmethod
    def _lower(cls, name: str | None) -> str | None:
        return None if name is None else name.lower()

    def applied(self, to: Hyperparameters) -> Hyperparameters:
        """Return the numbers with these changes; whether they fit each other is not looked at."""
        fresh = Hyperparameters()
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return replace(to, **{n: getattr(fresh, n) if value is None else value for n, value in given.items()})


class ModelRequest(Request):
    """A template with what it is trained on and how."""

    name: Name
    template: Name
    dataset: Word | None = None
    """The name of a data set."""
    data_dir: Place | None = None
    """Instead of a data set: the whole path of a folder on the server's machine."""
    description: Text = ""
    hyperparameters: HyperparameterChanges = Field(default_factory=HyperparameterChanges)
    parameters: Values = Field(default_factory=dict)
    """Of the template's own parameters."""
    engine: Engine | None = None
    """The first of the template's, if left out."""
    max_workers: NumTasks = 1
    """The most tasks of an elastic training, the number of processes of a distributed one; 1 with engine `single`."""
    slots_per_worker: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    priority: Priority = DEFAULT_PRIORITY
    queue: QueueName = DEFAULT_QUEUE
    environment: Place | None = None
    """The name of an environment."""
    shared_with: SharedWith = ()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.dataset is not None and self.data_dir is not None:
            raise ValueError("dataset and data_dir both say where the data are; give one of them")
        return self


class ModelPatch(Request):
    """What of a model to change; what is left out stays."""

    description: Text | None = None
    dataset: Word | None = None
    """`null`: none any more."""
    data_dir: Place | None = None
    """`null`: none any more."""
    hyperparameters: HyperparameterChanges | None = None
    parameters: dict[Annotated[str, Field(max_length=100)], GivenValue | None] | None = None
    """`null` goes back to the template's default."""
    engine: Engine | None = None
    max_workers: NumTasks | None = None
    slots_per_worker: Annotated[int, Field(ge=1, le=64, strict=True)] | None = None
    priority: Priority | None = None
    queue: QueueName | None = None
    environment: Place | None = None
    """`null`: none any more."""
    shared_with: SharedWith | None = None
    newest_template: StrictBool = False
    """Go over to the newest revision of the template."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change: give at least one field")
        return self


class WeightsFrom(Request):
    """The weights that a training starts from: of another training, or of a job."""

    training: Name | None = None
    """Of the same model, or of `model`."""
    model: Name | None = None
    job: Annotated[str, Field(pattern=r"^job-[0-9]{1,18}$")] | None = None
    """Such as `job-3`."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.training is None) == (self.job is None):
            raise ValueError("give either a training or a job")
        if self.model is not None and self.training is None:
            raise ValueError("a model alone has no weights; give its training, too")
        return self


class TrainingRequest(Request):
    """A training of a model; what is given here counts for this training only."""

    name: Name | None = None
    """`training-1`, `training-2`, … if left out."""
    hyperparameters: HyperparameterChanges | None = None
    parameters: Values | None = None
    engine: Engine | None = None
    max_workers: NumTasks | None = None
    slots_per_worker: Annotated[int, Field(ge=1, le=64, strict=True)] | None = None
    priority: Priority | None = None
    queue: QueueName | None = None
    environment: Place | None = None
    dataset: Word | None = None
    weights: WeightsFrom | None = None
    """Or a part `weights` of a multipart body: a file that `torch.save` wrote of a `state_dict`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateView:
    """A template."""

    name: str
    owner: str
    framework: str
    main_file: str
    description: str
    parameters: tuple[Parameter, ...]
    engines: tuple[Engine, ...]
    shared_with: tuple[str, ...]
    checksum: str
    """SHA-256 over the names and contents of its files, in hex."""
    num_files: int
    num_bytes: int
    revision: int
    created_at: float
    changed_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePage:
    """Templates in the order of their names; ask again with `after=next`."""

    templates: tuple[TemplateView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model is trained, or a training was."""

    template: str
    template_revision: int
    dataset: str | None
    data_dir: str | None
    hyperparameters: Hyperparameters
    parameters: Mapping[str, Value]
    engine: Engine
    max_workers: int
    slots_per_worker: int
    priority: int
    queue: str
    environment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """A model."""

    name: str
    owner: str
    description: str
    settings: ModelSettings
    shared_with: tuple[str, ...]
    num_trainings: int
    revision: int
    created_at: float
    changed_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPage:
    """Models in the order of their names; ask again with `after=next`."""

    models: tuple[ModelView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The weights that a training started from."""

    source: str
    """`digits/first` (a training), `job-3`, or the word `file` for one that was uploaded."""
    checksum: str
    """SHA-256 of the file, in hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingView:
    """A training of a model, with what it ran with."""

    model: str
    name: str
    owner: str
    job_id: str
    state: str
    """Its job's; `removed` when the job is not there any more."""
    reason: str
    settings: ModelSettings
    code_hash: str
    """SHA-256 of the archive that `…/code` gives, in hex."""
    dataset_checksum: str
    """Of the data set when the training began; empty where it has none."""
    weights_from: Origin | None
    has_weights: bool
    """Whether `…/weights` gives a file now."""
    progress: Progress | None
    created_at: float
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPage:
    """Trainings of a model in the order of their names; ask again with `after=next`."""

    trainings: tuple[TrainingView, ...]
    next: str | None
