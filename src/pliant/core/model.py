"""What people say of templates and models, and how a model is trained. What is kept of them is in `catalog.models`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Le, Len, MaxLen

from pliant.core.access import SharedWith
from pliant.core.hyperparameters import ENGINES, Engine, Hyperparameters
from pliant.core.input import NO_NUL, ONE_LINE, Check, Input, Pattern
from pliant.core.job import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    NumTasks,
    Priority,
    QueueName,
    SlotsPerTask,
    refuse_notebook,
)
from pliant.core.parameter import MAX_PARAMETERS, Parameter, ParameterName, Text, Value

ModelName = Annotated[
    str,
    Input(
        Pattern(
            r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$",
            "letters, digits, '.', '_' and '-', 50 at most, a letter or digit first",
        ),
        doc="Of letters, digits, '.', '_' and '-', 50 at most, beginning with a letter or digit.",
    ),
]
"""The name of a model, a template or a training."""
_SharedWith = Annotated[SharedWith, Input(doc="Names of users; `*` is everybody.")]
_NO_MORE = Input(none="`null`: none any more.")
_Place = Annotated[str, Input(Len(1, 4000), NO_NUL)]


@dataclass(frozen=True, kw_only=True)
class TemplateSettings:
    """What people say of a template. A field that is added here is one of the REST bodies and of the commands, too."""

    name: ModelName
    framework: Annotated[str, Input(Len(1, 60), ONE_LINE)] = "PyTorch"
    """For people, and for programs that list frameworks."""
    main_file: Annotated[str, Input(Len(1, 400), ONE_LINE, Check(refuse_notebook))] = "main.py"
    """The Python file to run, relative to the folder."""
    elastic_file: Annotated[
        Annotated[str, Input(Len(1, 400), ONE_LINE, Check(refuse_notebook))] | None,
        Input(none="`null`: `elastic-main.py` if the folder has that, else the main file."),
    ] = None
    """The file to run with the engine `elastic`."""
    description: Text = ""
    parameters: Annotated[tuple[Parameter, ...], Input(MaxLen(MAX_PARAMETERS))] = ()
    engines: Annotated[tuple[Engine, ...], Input(Len(1, len(ENGINES)))] = ENGINES
    """The training engines that the main file is written for; the first is that of models that name none."""
    shared_with: _SharedWith = ()


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a model is trained. A field that is added here is one of the REST bodies and of the commands, too."""

    dataset: Annotated[Annotated[str, Input(Len(1, 200), NO_NUL)] | None, _NO_MORE] = None
    """The name of a data set."""
    data_dir: Annotated[_Place | None, _NO_MORE] = None
    """Instead of a data set: the whole path of a folder on the server's machine."""
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    parameters: Annotated[Mapping[ParameterName, Value], Input(MaxLen(MAX_PARAMETERS))] = field(default_factory=dict)
    """Of the template's own parameters."""
    engine: Engine | None = None
    """The first of the template's, if left out."""
    max_workers: NumTasks = 1
    """The most tasks of an elastic training, the number of processes of a distributed one; 1 with engine `single`."""
    slots_per_worker: SlotsPerTask = 1
    priority: Priority = DEFAULT_PRIORITY
    queue: Annotated[QueueName, Input(NO_NUL)] = DEFAULT_QUEUE
    environment: Annotated[_Place | None, _NO_MORE] = None
    """The name of an environment."""
    histograms_every: Annotated[Annotated[int, Input(Ge(1), Le(1_000_000))] | None, _NO_MORE] = None
    """Log histograms of all weights and gradients every so many steps. Not with the engine `distributed`."""


@dataclass(frozen=True, kw_only=True)
class ModelDefinition(TrainingSettings):
    """What people say of a model, but for its template."""

    name: ModelName
    description: Text = ""
    shared_with: _SharedWith = ()


@dataclass(frozen=True, kw_only=True)
class WeightsSource:
    """The weights that a training shall start from: of another training, or of a job."""

    training: ModelName | None = None
    """Of the same model, or of `model`."""
    model: ModelName | None = None
    job: Annotated[str, Input(Pattern(r"^job-[0-9]{1,18}$", "a job's id, such as job-3"))] | None = None
    """Such as `job-3`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The weights that a training started from."""

    source: str
    """`digits/first` (a training), `job-3`, or the word `file` for one that was uploaded."""
    checksum: str
    """SHA-256 of the file, in hex."""
