"""`import pth_parameter_mgr`: what the person entered for this training, from `ps.conf` and `parameters.json`.

Pliant writes both files beside the code of every training of a model. `ps.conf` holds `key=value` lines; `#` begins a
comment. It is looked for at PS_PATH (the file, or its folder), in the working folder and in DLI_WORK_DIR; the first
that exists counts, and is read again at every call. Folders with data that it does not name are those of the job's data
set (TRAIN_DATA_DIR, TEST_DATA_DIR, VAL_DATA_DIR), or else DATA_DIR, so a script that only asks for those needs no file.

Keys: `train_data`, `test_data`, `val_data`, `batch_size`, `test_batch_size`, `epoch`, `optimizer`, `base_lr`, the
parameters of optimizers (`momentum`, `dampening`, `weight_decay`, `nesterov`, `beta1`, `beta2`, `eps`, `amsgrad`,
`rho`, `alpha`, `centered`, `lambd`, `lr_decay`), `lr_policy` and what that takes (`lr_decay_rate`, `lr_decay_steps`,
`lr_power`, `lr_milestones`, `lr_values`, `lr_end`, `lr_staircase`, `lr_patience`). `parameters.json` holds the
template's own parameters, too.
"""

import inspect
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from torch.optim.lr_scheduler import LRScheduler

from pliant.core.errors import NotFound
from pliant.core.hyperparameters import OPTIMIZERS, find_optimizer
from pliant.ibm.modules import pth_schedules
from pliant.ibm.modules.pth_settings import FILE_NAME, bad, flag, missing, number, places, settings, text

PARAMETERS: Final = "parameters.json"
FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "GradientDescent": {},
    "Momentum": {"momentum": 0.9},
    "Nesterov": {"momentum": 0.9, "nesterov": True},
}
"""Forms of SGD that have names of their own, and what they set unless `ps.conf` says otherwise."""
NUMBERS: Final = ("momentum", "dampening", "weight_decay", "rho", "alpha", "eps", "lambd", "lr_decay")
FLAGS: Final = ("nesterov", "amsgrad", "centered")
"""Keys of `ps.conf` that are parameters of an optimizer's class, where it has them."""
_PLACES: Final = {"train_data": "TRAIN_DATA_DIR", "test_data": "TEST_DATA_DIR", "val_data": "VAL_DATA_DIR"}

T = TypeVar("T")


def getTrainData(full_list: bool = True) -> str | list[str]:
    """Return the files of the training data, or with False the folder that they are in."""
    return _data("train_data", full_list)


def getTestData(full_list: bool = True) -> str | list[str]:
    """Return the files of the test data, or with False the folder that they are in."""
    return _data("test_data", full_list)


def getValData(full_list: bool = True) -> str | list[str]:
    """Return the files of the validation data, or with False the folder that they are in."""
    return _data("val_data", full_list)


def getTrainBatchSize() -> int:
    """Return the samples of one optimizer step, over all workers together."""
    return number(int, settings(), "batch_size")


def getTestBatchSize() -> int:
    """Return the samples that are evaluated at once."""
    return number(int, settings(), "test_batch_size")


def getEpoch() -> int:
    """Return the number of epochs."""
    return number(int, settings(), "epoch")


def getOptimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer that was chosen, over the model's parameters."""
    found = settings()
    given = text(found, "optimizer")
    name = find_optimizer(given)
    if name is None:
        raise bad("optimizer", f"{FILE_NAME} names {given!r}; known are {', '.join(sorted(OPTIMIZERS))}")
    kind: type[torch.optim.Optimizer] = torch.optim.SGD if name in FORMS else getattr(torch.optim, name)
    build: Callable[..., torch.optim.Optimizer] = kind
    return build(model.parameters(), **{**FORMS.get(name, {}), **_options(kind, name, found)})


def getLearningRate(optimizer: torch.optim.Optimizer) -> LRScheduler:
    """Return the course of the learning rate that was chosen, to be stepped once an epoch; without the key it is fixed.

    The one of `reducelronplateau` needs the loss at every step; `FabricModel` gives it.
    """
    return pth_schedules.schedule(optimizer, settings())


def getParameter(name: str, default: T | None = None) -> Any | T:
    """Return the value of one of the template's own parameters, with the kind that the template says.

    Raises:
        NotFound: there is none of that name, and no default was given.
    """
    found = getParameters()
    if name in found:
        return found[name]
    if default is None:
        raise NotFound(f"the training has no parameter {name!r}; it has {', '.join(sorted(found)) or 'none'}")
    return default


def getParameters() -> dict[str, Any]:
    """Return the template's own parameters with their values; none where there is no `parameters.json`.

    Raises:
        InvalidInput: the file is none that Pliant wrote.
    """
    path = next((place for place in places(PARAMETERS) if place.is_file() and place.name == PARAMETERS), None)
    if path is None:
        return {}
    try:
        entered = json.loads(path.read_bytes())["parameters"]
    except (ValueError, KeyError, TypeError) as error:
        raise bad(str(path), f"expected an object with `parameters` ({error})") from error
    return dict(entered)


def _data(key: str, full_list: bool) -> str | list[str]:
    given = settings().get(key) or os.environ.get(_PLACES[key]) or os.environ.get("DATA_DIR")
    if not given:
        raise missing(key, also=" or the environment variable DATA_DIR")
    if not full_list:
        return given
    root = Path(given)
    if root.is_dir():
        return sorted(str(path) for path in root.rglob("*") if path.is_file())
    if not root.is_file():
        raise NotFound(f"{key} is {given}, and there is nothing of that name")
    return [given]


def _options(kind: type[torch.optim.Optimizer], name: str, found: Mapping[str, str]) -> dict[str, Any]:
    accepted = set(inspect.signature(kind).parameters)
    if name in FORMS:  # SGD takes more than this form of it
        accepted = {"lr", *OPTIMIZERS[name]}
    options: dict[str, Any] = {"lr": number(float, found, "base_lr")}
    options.update({key: number(float, found, key) for key in NUMBERS if key in found and key in accepted})
    options.update({key: flag(found, key) for key in FLAGS if key in found and key in accepted})
    if {"beta1", "beta2"} <= found.keys() and "betas" in accepted:
        options["betas"] = (number(float, found, "beta1"), number(float, found, "beta2"))
    return options
