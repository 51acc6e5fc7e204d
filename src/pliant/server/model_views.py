"""Templates, models and trainings as the answers of the REST API."""

from pliant.api.models import ModelSettings, ModelView, TemplateView, TrainingView
from pliant.api.view import fill
from pliant.catalog.models.model import Model, Template
from pliant.catalog.models.services import ModelServices
from pliant.catalog.models.training import Training
from pliant.core.parameter import fill_in
from pliant.core.registry import Kept

REMOVED = "removed"
"""The state of a training whose job is not there any more."""
STARTING = "submitting"
"""The state of one whose job is not there yet."""


def template_view(kept: Kept[Template]) -> TemplateView:
    """Return a template as people see it."""
    return fill(TemplateView, kept.noun, kept)


def model_view(room: ModelServices, kept: Kept[Model]) -> ModelView:
    """Return a model as people see it."""
    noun = kept.noun
    return fill(
        ModelView,
        noun,
        kept,
        settings=settings_of(noun),
        template_parameters=noun.template.parameters,
        template_engines=noun.template.engines,
        num_trainings=room.models.num_trainings(noun.name),
    )


def settings_of(model: Model) -> ModelSettings:
    """Return how a model is trained; parameters that were not given have their defaults."""
    parameters = fill_in(model.template.parameters, model.parameters)
    return fill(ModelSettings, model, template=model.template.name, parameters=parameters)


def training_view(room: ModelServices, kept: Kept[Training]) -> TrainingView:
    """Return a training as people see it, with how far its job is."""
    noun = kept.noun
    job = room.trainings.job(noun)
    return fill(
        TrainingView,
        noun,
        kept,
        name=noun.title,
        state=job.state.value if job is not None else REMOVED if noun.job_id else STARTING,
        reason="" if job is None else job.reason,
        settings=settings_of(noun.ran),
        weights_from=noun.origin,
        has_weights=room.trainings.weights(noun) is not None,
        progress=None if job is None else job.progress,
    )
