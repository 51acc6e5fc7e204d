"""Templates and models: code with its parameters, and what it is trained on and how; and whether all of that fits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pliant.core import parameter
from pliant.core.access import name_once
from pliant.core.errors import Problem
from pliant.core.hyperparameters import Engine, problems_of
from pliant.core.input import values_of
from pliant.core.model import ModelDefinition, TemplateSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Template(TemplateSettings):
    """Code with what has to be known to run it."""

    KIND: ClassVar[str] = "template"

    owner: str
    code: str
    """Where its files lie: a folder of `CodeFolders`, named after it and the revision that brought them."""
    checksum: str
    """SHA-256 over the names and contents of the files, in hex."""
    num_files: int
    num_bytes: int
    elastic_script: str = ""
    """What the engine `elastic` runs, named or found; empty: the main file."""

    def script_of(self, engine: Engine) -> str:
        """Return the file that an engine runs."""
        return (engine == "elastic" and self.elastic_script) or self.main_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(ModelDefinition):
    """What trainings are made of."""

    KIND: ClassVar[str] = "model"

    owner: str
    template: Template
    """As it was at `template_revision`; a later change of the template is taken over only when somebody asks for it."""
    template_revision: int
    engine: Engine = field()  # `field()`: without a default, which the inherited one has

    @property
    def batch_is_per_worker(self) -> bool:
        """Whether `batch_size` counts the samples of one worker: in templates with a file for the engine `elastic`."""
        return self.engine == "elastic" and bool(self.template.elastic_script)


def said_of(kind: type[TemplateSettings | ModelDefinition], settings: object) -> dict[str, Any]:
    """Return the fields of a template or of a model that a person writes, every user of `shared_with` once."""
    values = values_of(kind, settings)
    return {**values, "shared_with": name_once(values["shared_with"])}


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
    if model.engine == "distributed" and model.histograms_every is not None:
        message = "the engine 'distributed' logs no histograms; leave it out, or take another engine"
        yield Problem(field="histograms_every", message=message)
    of_all = model.engine == "elastic" and not model.batch_is_per_worker
    if of_all and model.max_workers > model.hyperparameters.batch_size:
        message = f"a batch of {model.hyperparameters.batch_size} samples cannot be cut into {model.max_workers} parts"
        yield Problem(field="max_workers", message=f"{message}; take fewer workers, or a larger batch_size")
