"""The REST bodies of templates, models and trainings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from annotated_types import MaxLen
from pydantic import Field, model_validator

from pliant.api.derive import settable
from pliant.api.request import Changes, Patch, Request
from pliant.api.view import view
from pliant.core.hyperparameters import Engine, Hyperparameters, with_changes
from pliant.core.job import Progress
from pliant.core.model import ModelDefinition, ModelName, Origin, TemplateSettings, TrainingSettings, WeightsSource
from pliant.core.parameter import MAX_PARAMETERS, Parameter, ParameterName, Value
from pliant.core.registry import Owned


class ParameterRequest(Request, Parameter):
    """A parameter of the template's own."""

    def noun(self) -> Parameter:
        """Return the noun."""
        return Parameter(**self.given())


class TemplateRequest(Request, TemplateSettings):
    """Code that models are made from; travels beside its packed files."""

    parameters: Annotated[tuple[ParameterRequest, ...], MaxLen(MAX_PARAMETERS)] = ()

    def noun(self) -> TemplateSettings:
        """Return the noun."""
        return TemplateSettings(**{**self.given(), "parameters": tuple(one.noun() for one in self.parameters)})


class HyperparameterChanges(Changes, of=Hyperparameters):
    """Numbers of a training to set; what is left out stays, and `null` goes back to the default."""

    described_by = "doc"
    can_be_none = frozenset(one.name for one in settable(Hyperparameters))


class ModelRequest(Request, ModelDefinition):
    """A template with what it is trained on and how."""

    template: ModelName
    # a body says which numbers change; the noun has all of them
    hyperparameters: HyperparameterChanges = Field(default_factory=HyperparameterChanges)  # type: ignore[assignment]

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.dataset is not None and self.data_dir is not None:
            raise ValueError("dataset and data_dir both say where the data are; give one of them")
        return self

    def noun(self) -> ModelDefinition:
        """Return the noun, which says all but the template."""
        numbers = with_changes(Hyperparameters(), self.hyperparameters.changes())
        given = {name: value for name, value in self.given().items() if name != "template"}
        return ModelDefinition(**{**given, "hyperparameters": numbers})


class ModelPatch(Patch, of=ModelDefinition, but=("name",)):
    """What of a model to change; what is left out stays."""

    hyperparameters: HyperparameterChanges | None = None
    parameters: Mapping[ParameterName, Value | None] | None = None
    """`null` goes back to the template's default."""
    newest_template: bool = False
    """Go over to the newest revision of the template."""

    def changes(self) -> Mapping[str, Any]:
        """Return the fields that change; the template is none of them."""
        return {name: value for name, value in super().changes().items() if name != "newest_template"}


class WeightsFrom(Request, WeightsSource):
    """The weights that a training starts from: of another training, or of a job."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.training is None) == (self.job is None):
            raise ValueError("give either a training or a job")
        if self.model is not None and self.training is None:
            raise ValueError("a model alone has no weights; give its training, too")
        return self

    def noun(self) -> WeightsSource:
        """Return the noun."""
        return WeightsSource(**self.given())


class TrainingRequest(Changes, of=TrainingSettings, but=("data_dir",)):
    """A training of a model; what is given here counts for this training only."""

    name: ModelName | None = None
    """`training-1`, `training-2`, … if left out."""
    hyperparameters: HyperparameterChanges | None = None
    weights: WeightsFrom | None = None
    """Or a part `weights` of a multipart body: a file that `torch.save` wrote of a `state_dict`."""

    def changes(self) -> Mapping[str, Any]:
        """Return how this training differs from what its model says."""
        return {name: value for name, value in super().changes().items() if name not in ("name", "weights")}

    def source(self) -> WeightsSource | None:
        """Return where the weights are that it starts from."""
        return None if self.weights is None else self.weights.noun()


@view
class TemplateView(TemplateSettings, Owned):
    """A template."""

    checksum: str
    """SHA-256 over the names and contents of its files, in hex."""
    num_files: int
    num_bytes: int
    elastic_script: str
    """What the engine `elastic` runs, named or found; empty: the main file."""
    revision: int
    created_at: float
    changed_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplatePage:
    """Templates in the order of their names; ask again with `after=next`."""

    templates: tuple[TemplateView, ...]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class OfTemplate:
    """What is made of a template."""

    template: str
    template_revision: int


@view
class ModelSettings(TrainingSettings, OfTemplate):
    """How a model is trained, or a training was."""

    engine: Engine


@view
class ModelView(Owned):
    """A model."""

    description: str
    settings: ModelSettings
    template_parameters: tuple[Parameter, ...]
    """What its template asks for, at the revision that it has of it."""
    template_engines: tuple[Engine, ...]
    """What that is written for."""
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


@view
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestTrainings:
    """Trainings of all models, the newest first; ask again with `before=next`."""

    trainings: tuple[TrainingView, ...]
    next: str | None
