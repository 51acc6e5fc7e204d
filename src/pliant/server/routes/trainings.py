"""Trainings of all models, and what the course of one says."""

import math
from typing import Annotated, Final

from fastapi import Query

from pliant.api.insights import TrainingInsights
from pliant.api.models import NewestTrainings
from pliant.catalog.models.training import Training
from pliant.core.access import Permission
from pliant.core.chart import MAX_BUCKETS
from pliant.core.errors import InvalidInput
from pliant.policy.insight import PATIENCE, by_epoch, find_roles, hints
from pliant.server.context import Context, InContext
from pliant.server.middleware.authorisation import Caller
from pliant.server.model_views import training_view
from pliant.server.routes.models import Name, Title
from pliant.server.routing import Routes

routes = Routes(tags=["models"])

MAX_EPOCHS: Final = 1000


@routes.get("/trainings", Permission.MODELS_READ, "List the trainings of all models")
def newest(
    context: InContext,
    caller: Caller,
    before: Annotated[str, Query(max_length=300, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> NewestTrainings:
    """Return trainings that are the caller's, or of models that they see, the newest first."""
    page, last = context.models.trainings.newest(caller, _place(before), limit)
    return NewestTrainings(
        trainings=tuple(training_view(context.models, kept) for kept in page),
        next=None if last is None else f"{last[0]!r}:{last[1]}",
    )


def _place(before: str) -> tuple[float, str] | None:
    if not before:
        return None
    at, _, name = before.partition(":")
    try:
        number = float(at)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput.at("before", f"{before!r:.80} is no `next` of a page before; leave it out")
    return number, name


@routes.get("/models/{name}/trainings/{training}/insights", Permission.MODELS_READ, "How a training goes", 404)
def insights(context: InContext, caller: Caller, name: Name, training: Title) -> TrainingInsights:
    """Return losses and accuracies of a training by epoch, and what they say: stop early, another learning rate."""
    kept = context.models.trainings.get(caller, name, training)
    return _insights(context, kept.noun, training_view(context.models, kept).state)


def _insights(context: Context, noun: Training, state: str) -> TrainingInsights:
    job = context.models.trainings.job(noun)
    numbers = noun.ran.hyperparameters
    names = find_roles(() if job is None else context.control.inquiries.files.series_names(job))
    found = (
        ()
        if job is None or not names
        else context.control.queries.chart(job.id, tuple(names.values()), 0, None, MAX_BUCKETS).series
    )
    by_name = {one.name: one for one in found}
    epochs = by_epoch({role: by_name[series] for role, series in names.items() if series in by_name})
    return TrainingInsights(
        model=noun.model,
        name=noun.title,
        job_id=noun.job_id,
        state=state,
        progress=None if job is None else job.progress,
        learning_rate=numbers.learning_rate,
        series=names,
        epochs=epochs[-MAX_EPOCHS:],
        hints=hints(epochs, names, numbers.learning_rate, numbers.lr_policy),
        patience=PATIENCE,
    )
