"""The data that a model names: whether somebody may use them, and what they are."""

import os
from pathlib import Path

from pliant.catalog.models.model import Model
from pliant.core.access import Principal
from pliant.core.dataset import Dataset, DatasetState
from pliant.core.errors import Problem
from pliant.core.registry import Registry


def problem_of_data(registry: Registry, model: Model, caller: Principal, *, ready: bool) -> Problem | None:
    """Return what is wrong with a model's data; with `ready` they must be there now."""
    if model.dataset is not None and model.data_dir is not None:
        return Problem(field="data_dir", message="there is a data set, too; give one of the two")
    if model.dataset is not None:
        message = _of_dataset(registry, model.dataset, caller, ready=ready)
        return Problem(field="dataset", message=message) if message else None
    if model.data_dir is None or (os.path.isabs(model.data_dir) and Path(model.data_dir).is_dir()):
        return None
    message = f"{model.data_dir!r:.200} is not a folder here; give the whole path of one that is"
    return Problem(field="data_dir", message=message)


def checksum_of_data(registry: Registry, model: Model) -> str:
    """Return the checksum of a model's data set as it is now; empty if it has none."""
    kept = None if model.dataset is None else registry.get(Dataset, model.dataset)
    return "" if kept is None else kept.noun.content.checksum


def _of_dataset(registry: Registry, name: str, caller: Principal, *, ready: bool) -> str:
    kept = registry.get(Dataset, name)
    if kept is None or not caller.sees(kept.noun.owner, kept.noun.shared_with):
        return f"there is no data set {name!r:.80} that you may use; list them to see which there are"
    if ready and kept.noun.state is not DatasetState.READY:
        return f"the data set {name!r} is {kept.noun.state.value}, not ready"
    return ""
