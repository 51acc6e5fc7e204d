"""The use cases of models: list, show, add, change, remove; and whether somebody may use the data that one names."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

from pliant.catalog.models.model import Model, Template, problems_of_model, said_of
from pliant.catalog.models.ports import Ports
from pliant.catalog.models.templates import TemplateCatalog
from pliant.catalog.models.training import SEPARATOR, Training
from pliant.catalog.sharing import require_owner, require_visible, visible_page
from pliant.core.access import Principal, name_once
from pliant.core.dataset import Dataset, DatasetState
from pliant.core.errors import Conflict, InvalidInput, NotFound, Problem
from pliant.core.hyperparameters import with_changes
from pliant.core.model import ModelDefinition
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.core.shares import problems_of_shares


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
        return require_visible(self._registry, Model, caller, name)

    def num_trainings(self, name: str) -> int:
        """Return how many trainings of a model are kept."""
        return sum(1 for _ in self._trainings(name))

    def add(self, caller: Principal, template: str, asked: ModelDefinition) -> Kept[Model]:
        """Keep a new model of a template.

        Raises:
            InvalidInput: with everything that does not fit.
            Conflict: the name is taken.
        """
        with self._lock:
            made_from = self._template(caller, template)
            model = Model(
                owner=caller.name,
                template=made_from.noun,
                template_revision=made_from.revision,
                **said_of(ModelDefinition, asked) | {"engine": asked.engine or made_from.noun.engines[0]},
            )
            self._check(caller, model)
            return self._registry.add(model, at=self._ports.now())

    def change(
        self,
        caller: Principal,
        name: str,
        changes: Mapping[str, Any],
        revision: int | None = None,
        *,
        newest_template: bool = False,
    ) -> Kept[Model]:
        """Change a model, as `apply_changes` does; trainings that were started stay as they are.

        Args:
            newest_template: go over to the newest revision of its template.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Stale: it is not at `revision` any more.
            InvalidInput: with everything that does not fit any more.
        """
        with self._lock:
            kept = self.get(caller, name)
            require_owner(caller, kept.noun, f"the model {name!r}")
            model = apply_changes(kept.noun, changes)
            if newest_template:
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

    def for_training(self, caller: Principal, name: str, changes: Mapping[str, Any]) -> tuple[Model, str]:
        """Return a model as one training of it shall be, and the checksum of its data set.

        Raises:
            NotFound: there is none that they see.
            InvalidInput: with everything that does not fit.
        """
        model = apply_changes(self.get(caller, name).noun, changes)
        self._check(caller, model, ready=True)
        return model, _checksum_of_data(self._registry, model)

    def _template(self, caller: Principal, name: str) -> Kept[Template]:
        try:
            return self._templates.get(caller, name)
        except NotFound as error:
            raise InvalidInput.at("template", str(error)) from error

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


def apply_changes(model: Model, changes: Mapping[str, Any]) -> Model:
    """Return a model with changes of its fields; whether they fit is not looked at.

    Of `hyperparameters` and `parameters` only those change that are in the mapping; None goes back to the default.
    """
    after = dict(changes)
    if after.get("dataset") is not None:
        after.setdefault("data_dir", None)
    if after.get("data_dir") is not None:
        after.setdefault("dataset", None)
    if after.get("engine") == "single":
        after.setdefault("max_workers", 1)
    if "hyperparameters" in after:
        after["hyperparameters"] = with_changes(model.hyperparameters, after["hyperparameters"])
    if "parameters" in after:
        after["parameters"] = _merge(model.parameters, after["parameters"])
    if "shared_with" in after:
        after["shared_with"] = name_once(after["shared_with"])
    return replace(model, **after)


def _merge(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**before, **given}.items() if value is not None}


def _problem_of_data(registry: Registry, model: Model, caller: Principal, *, ready: bool) -> Problem | None:
    """Return what is wrong with a model's data; with `ready` they must be there now."""
    if model.dataset is not None and model.data_dir is not None:
        return Problem(field="data_dir", message="there is a data set, too; give one of the two")
    if model.dataset is not None:
        message = _problem_of_dataset(registry, model.dataset, caller, ready=ready)
        return Problem(field="dataset", message=message) if message else None
    if model.data_dir is None or not caller.sees_all:  # what others may name is looked at when a job is submitted
        return None
    if os.path.isabs(model.data_dir) and Path(model.data_dir).is_dir():
        return None
    message = f"{model.data_dir!r:.200} is not a folder here; give the whole path of one that is"
    return Problem(field="data_dir", message=message)


def _checksum_of_data(registry: Registry, model: Model) -> str:
    """Return the checksum of a model's data set as it is now; empty if it has none."""
    kept = None if model.dataset is None else registry.get(Dataset, model.dataset)
    return "" if kept is None else kept.noun.content.checksum


def _problem_of_dataset(registry: Registry, name: str, caller: Principal, *, ready: bool) -> str:
    try:
        kept = require_visible(registry, Dataset, caller, name)
    except NotFound as error:
        return str(error)
    if ready and kept.noun.state is not DatasetState.READY:
        return f"the data set {name!r} is {kept.noun.state.value}, not ready"
    return ""
