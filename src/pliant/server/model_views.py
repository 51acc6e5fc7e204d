"""Templates, models and trainings as the answers of the REST API."""

from pliant.api.models import ModelSettings, ModelView, TemplateView, TrainingView
from pliant.catalog.models.model import Model, Template
from pliant.catalog.models.services import ModelServices
from pliant.catalog.models.training import Training
from pliant.core.parameter import filled_in
from pliant.core.registry import Kept

REMOVED = "removed"
"""The state of a training whose job is not there any more."""
STARTING = "submitting"
"""The state of one whose job is not there yet."""


def template_view(kept: Kept[Template]) -> TemplateView:
    """Return a template as people see it."""
    noun = kept.noun
    return TemplateView(
        name=noun.name,
        owner=noun.owner,
        framework=noun.framework,
        main_file=noun.main_file,
        description=noun.description,
        parameters=noun.parameters,
        engines=noun.engines,
        shared_with=noun.shared_with,
        checksum=noun.checksum,
        num_files=noun.num_files,
        num_bytes=noun.num_bytes,
        revision=kept.revision,
        created_at=kept.created_at,
        changed_at=kept.changed_at,
    )


def model_view(room: ModelServices, kept: Kept[Model]) -> ModelView:
    """Return a model as people see it."""
    noun = kept.noun
    return ModelView(
        name=noun.name,
        owner=noun.owner,
        description=noun.description,
        settings=settings_of(noun),
        shared_with=noun.shared_with,
        num_trainings=room.models.num_trainings(noun.name),
        revision=kept.revision,
        created_at=kept.created_at,
        changed_at=kept.changed_at,
    )


def settings_of(model: Model) -> ModelSettings:
    """Return how a model is trained; parameters that were not given have their defaults."""
    return ModelSettings(
        template=model.template.name,
        template_revision=model.template_revision,
        dataset=model.dataset,
        data_dir=model.data_dir,
        hyperparameters=model.hyperparameters,
        parameters=filled_in(model.template.parameters, model.parameters),
        engine=model.engine,
        max_workers=model.max_workers,
        slots_per_worker=model.slots_per_worker,
        priority=model.priority,
        queue=model.queue,
        environment=model.environment,
    )


def training_view(room: ModelServices, kept: Kept[Training]) -> TrainingView:
    """Return a training as people see it, with how far its job is."""
    noun = kept.noun
    job = room.trainings.job(noun)
    return TrainingView(
        model=noun.model,
        name=noun.title,
        owner=noun.owner,
        job_id=noun.job_id,
        state=job.state.value if job is not None else REMOVED if noun.job_id else STARTING,
        reason="" if job is None else job.reason,
        settings=settings_of(noun.ran),
        code_hash=noun.code_hash,
        dataset_checksum=noun.dataset_checksum,
        weights_from=noun.origin,
        has_weights=room.trainings.weights(noun) is not None,
        progress=None if job is None else job.progress,
        created_at=noun.created_at,
        revision=kept.revision,
    )
