"""The use cases of models: list, show, add, change, remove; and whether somebody may use the data that one names."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Final

from pliant.api.models import ModelPatch, ModelRequest, TrainingRequest
from pliant.catalog.models.model import Model, Template, problems_of_model
from pliant.catalog.models.ports import Ports
from pliant.catalog.models.templates import TemplateCatalog
from pliant.catalog.models.training import SEPARATOR, Training
from pliant.catalog.sharing import problems_of_shares, require_owner, require_visible, visible_page
from pliant.core.access import Principal
from pliant.core.dataset import Dataset, DatasetState
from pliant.core.errors import Conflict, InvalidInput, NotFound, Problem
from pliant.core.hyperparameters import Hyperparameters
from pliant.core.registry import Kept, Registry, iterate_nouns

_AS_THEY_ARE: Final = (
    "engine",
    "max_workers",
    "slots_per_worker",
    "priority",
    "queue",
    "environment",
    "dataset",
    "data_dir",
    "description",
    "shared_with",
)
"""Fields that a change sets as it gives them."""
_CAN_BE_NONE: Final = frozenset({"environment", "dataset", "data_dir"})


class ModelCatalog:
    """All models. Safe to call from any thread."""

    def __init__(self, *, registry: Registry, templates: TemplateCatalog, ports: Ports, lock: RLock) -> None:
        self._registry = registry
        self._templates = templates
        self._ports = ports
        self._lock = lock

    def page(self, caller: Principal, after: str, limit: int) -> tuple[tuple[Kept[Model], ...], str | None]:
        """Return models that somebody sees, and the name of the last if there are more."""
        return visible_page(self._registry, Model, caller, after, limit)

    def get(self, caller: Principal, name: str) -> Kept[Model]:
        """Return a model.

        Raises:
            NotFound: none that they see.
        """
        return require_visible(caller, self._registry.get(Model, name), "model", name)

    def num_trainings(self, name: str) -> int:
        """Return how many trainings of a model are kept."""
        return sum(1 for _ in self._trainings(name))

    def add(self, caller: Principal, asked: ModelRequest) -> Kept[Model]:
        """Keep a new model.

        Raises:
            InvalidInput: with everything that does not fit.
            Conflict: the name is taken.
        """
        with self._lock:
            template = self._template(caller, asked.template)
            model = Model(
                name=asked.name,
                owner=caller.name,
                template=template.noun,
                template_revision=template.revision,
                description=asked.description,
                dataset=asked.dataset,
                data_dir=asked.data_dir,
                hyperparameters=asked.hyperparameters.applied(Hyperparameters()),
                parameters=dict(asked.parameters),
                engine=asked.engine or template.noun.engines[0],
                max_workers=asked.max_workers,
                slots_per_worker=asked.slots_per_worker,
                priority=asked.priority,
                queue=asked.queue,
                environment=asked.environment,
                shared_with=tuple(dict.fromkeys(asked.shared_with)),
            )
            self._check(caller, model)
            return self._registry.add(model, at=self._ports.now())

    def change(self, caller: Principal, name: str, patch: ModelPatch, revision: int | None) -> Kept[Model]:
        """Change a model; trainings that were started stay as they are.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Stale: it is not at `revision` any more.
            InvalidInput: with everything that does not fit any more.
        """
        with self._lock:
            kept = self.get(caller, name)
            require_owner(caller, kept.noun, f"the model {name!r}")
            model = apply_change(kept.noun, patch)
            if patch.newest_template:
                newest = self._template(caller, model.template.name)
                model = replace(model, template=newest.noun, template_revision=newest.revision)
            self._check(caller, model)
            written = self._registry.replace(model, at=self._ports.now(), revision=revision or kept.revision)
            self._templates.release(model.template.name)
            return written

    def remove(self, caller: Principal, name: str, revision: int | None) -> None:
        """Forget a model; what its trainings ran with, and what they gave, stays.

        Raises:
            NotFound, Forbidden, Stale: as for `change`.
            Conflict: trainings of it run.
        """
        with self._lock:
            model = self.get(caller, name).noun
            require_owner(caller, model, f"the model {name!r}")
            running = [training.title for training in self._trainings(name) if self._runs(training)]
            if running:
                which = f"training{'s' * (len(running) > 1)} {', '.join(running[:8])}"
                raise Conflict(f"the model {name!r} is being trained ({which}); stop that first, or wait for its end")
            self._registry.remove(Model, name, revision=revision)
            self._templates.release(model.template.name)

    def for_training(self, caller: Principal, name: str, asked: TrainingRequest) -> tuple[Model, str]:
        """Return a model as one training of it shall be, and the checksum of its data set.

        Raises:
            NotFound: there is none that they see.
            InvalidInput: with everything that does not fit.
        """
        model = apply_change(self.get(caller, name).noun, asked)
        self._check(caller, model, ready=True)
        return model, _checksum_of_data(self._registry, model)

    def _template(self, caller: Principal, name: str) -> Kept[Template]:
        try:
            return self._templates.get(caller, name)
        except NotFound as error:
            raise InvalidInput(Problem(field="template", message=str(error))) from error

    def _check(self, caller: Principal, model: Model, *, ready: bool = False) -> None:
        """Refuse a model that cannot be trained; with `ready` its data must be there now."""
        problems = [*problems_of_model(model)]
        problems += problems_of_shares(model.shared_with, model.owner, self._ports.unknown_users)
        if (problem := _problem_of_data(self._registry, model, caller, ready=ready)) is not None:
            problems.append(problem)
        if problems:
            raise InvalidInput(*problems)

    def _trainings(self, model: str) -> Iterator[Training]:
        return (kept.noun for kept in iterate_nouns(self._registry, Training, prefix=model + SEPARATOR))

    def _runs(self, training: Training) -> bool:
        if not training.job_id:
            return True  # its job is just being submitted
        job = self._ports.jobs.find(training.job_id)
        return job is not None and not job.ended


def apply_change(model: Model, asked: ModelPatch | TrainingRequest) -> Model:
    """Return a model with what was asked for; whether it fits is not looked at."""
    names = asked.model_fields_set.intersection(_AS_THEY_ARE)
    changes: dict[str, Any] = {name: getattr(asked, name) for name in names}
    changes = {name: value for name, value in changes.items() if value is not None or name in _CAN_BE_NONE}
    if changes.get("dataset") is not None:
        changes.setdefault("data_dir", None)
    if changes.get("data_dir") is not None:
        changes.setdefault("dataset", None)
    if changes.get("engine") == "single":
        changes.setdefault("max_workers", 1)
    if "shared_with" in changes:
        changes["shared_with"] = tuple(dict.fromkeys(changes["shared_with"]))
    if asked.hyperparameters is not None:
        changes["hyperparameters"] = asked.hyperparameters.applied(model.hyperparameters)
    if asked.parameters is not None:
        changes["parameters"] = _merge(model.parameters, asked.parameters)
    return replace(model, **changes)


def _merge(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**before, **given}.items() if value is not None}


def _problem_of_data(registry: Registry, model: Model, caller: Principal, *, ready: bool) -> Problem | None:
    """Return what is wrong with a model's data; with `ready` they must be there now."""
    if model.dataset is not None and model.data_dir is not None:
        return Problem(field="data_dir", message="there is a data set, too; give one of the two")
    if model.dataset is not None:
        message = _problem_of_dataset(registry, model.dataset, caller, ready=ready)
        return Problem(field="dataset", message=message) if message else None
    if model.data_dir is None or (os.path.isabs(model.data_dir) and Path(model.data_dir).is_dir()):
        return None
    message = f"{model.data_dir!r:.200} is not a folder here; give the whole path of one that is"
    return Problem(field="data_dir", message=message)


def _checksum_of_data(registry: Registry, model: Model) -> str:
    """Return the checksum of a model's data set as it is now; empty if it has none."""
    kept = None if model.dataset is None else registry.get(Dataset, model.dataset)
    return "" if kept is None else kept.noun.content.checksum


def _problem_of_dataset(registry: Registry, name: str, caller: Principal, *, ready: bool) -> str:
    kept = registry.get(Dataset, name)
    if kept is None or not caller.sees(kept.noun.owner, kept.noun.shared_with):
        return f"there is no data set {name!r:.80} that you may use; list them to see which there are"
    if ready and kept.noun.state is not DatasetState.READY:
        return f"the data set {name!r} is {kept.noun.state.value}, not ready"
    return ""
