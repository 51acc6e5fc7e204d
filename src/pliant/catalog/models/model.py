"""Templates and models: code with its parameters, and what it is trained on and how; and whether all of that fits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pliant.core import parameter
from pliant.core.errors import Problem
from pliant.core.hyperparameters import ENGINES, Engine, Hyperparameters, problems_of
from pliant.core.parameter import Parameter, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Code with what has to be known to run it."""

    KIND: ClassVar[str] = "template"

    name: str
    owner: str
    framework: str
    main_file: str
    """Relative to the code."""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    engines: tuple[Engine, ...] = ENGINES
    """That the main file is written for; the first is a model's if it names none."""
    code: str
    """Where its files lie: a folder of `CodeFolders`, named after it and the revision that brought them."""
    checksum: str
    """SHA-256 over the names and contents of the files, in hex."""
    num_files: int
    num_bytes: int
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What trainings are made of."""

    KIND: ClassVar[str] = "model"

    name: str
    owner: str
    template: Template
    """As it was at `template_revision`; a later change of the template is taken over only when somebody asks for it."""
    template_revision: int
    description: str = ""
    dataset: str | None = None
    """The name of a data set."""
    data_dir: str | None = None
    """Or the whole path of a folder."""
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """Of the template's own, those that were given."""
    engine: Engine
    max_workers: int = 1
    slots_per_worker: int = 1
    priority: int
    queue: str
    environment: str | None = None
    shared_with: tuple[str, ...] = ()


def problems_of_model(model: Model) -> tuple[Problem, ...]:
    """Return everything that keeps a model from being trained, as far as it can be known from itself."""
    numbers = (
        Problem(field=f"hyperparameters.{problem.field}", message=problem.message)
        for problem in problems_of(model.hyperparameters)
    )
    values = parameter.problems_of_values(model.template.parameters, model.parameters)
    return (*numbers, *values, *_of_engine(model))


def _of_engine(model: Model) -> Iterator[Problem]:
    there = model.template.engines
    if model.engine not in there:
        message = f"the template {model.template.name!r} is not written for {model.engine!r}; take {' or '.join(there)}"
        yield Problem(field="engine", message=message)
    if model.engine == "single" and model.max_workers != 1:
        message = f"{model.max_workers} workers are more than the engine 'single' has; give 1, or another engine"
        yield Problem(field="max_workers", message=message)
    if model.engine == "elastic" and model.max_workers > model.hyperparameters.batch_size:
        message = f"a batch of {model.hyperparameters.batch_size} samples cannot be cut into {model.max_workers} parts"
        yield Problem(field="max_workers", message=f"{message}; take fewer workers, or a larger batch_size")
