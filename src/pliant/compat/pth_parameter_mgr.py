"""`import pth_parameter_mgr`: the settings of a training that a person filled in elsewhere, from `ps.conf`.

`ps.conf` holds `key=value` lines; `#` begins a comment. It is looked for at PS_PATH (the file, or its folder), in the
working folder and in DLI_WORK_DIR; the first that exists counts, and is read again at every call. Folders with data
fall back to DATA_DIR, so a script that only asks for those needs no `ps.conf`.

Keys: `train_data`, `test_data`, `val_data`, `batch_size`, `test_batch_size`, `epoch`, `optimizer`, `base_lr`,
`momentum`, `weight_decay`, `nesterov`, `rho`, `alpha`, `eps`, `beta1`, `beta2`, `lr_policy` (fixed, step, exp),
`lr_decay_rate`, `lr_decay_steps`.
"""

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from torch.optim.lr_scheduler import ExponentialLR, LambdaLR, LRScheduler, StepLR

from pliant.core.errors import InvalidInput, NotFound, Problem

FILE_NAME: Final = "ps.conf"
SOLVERS: Final[Mapping[str, type[torch.optim.Optimizer]]] = {
    solver.__name__.lower(): solver
    for solver in (
        torch.optim.SGD,
        torch.optim.Adam,
        torch.optim.AdamW,
        torch.optim.Adadelta,
        torch.optim.Adagrad,
        torch.optim.Adamax,
        torch.optim.ASGD,
        torch.optim.NAdam,
        torch.optim.RAdam,
        torch.optim.RMSprop,
        torch.optim.Rprop,
    )
}
OPTIONS: Final = {"momentum": "momentum", "weight_decay": "weight_decay", "rho": "rho", "alpha": "alpha", "eps": "eps"}
"""Keys of `ps.conf` and the parameters of a solver that they set, where it has them."""

T = TypeVar("T", int, float)


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
    return _number(int, settings(), "batch_size")


def getTestBatchSize() -> int:
    return _number(int, settings(), "test_batch_size")


def getEpoch() -> int:
    return _number(int, settings(), "epoch")


def getOptimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """Return the solver that `optimizer` names, over the model's parameters."""
    found = settings()
    name = _text(found, "optimizer")
    solver = SOLVERS.get(name.lower())
    if solver is None:
        known = ", ".join(sorted(kind.__name__ for kind in SOLVERS.values()))
        raise InvalidInput(Problem(field="optimizer", message=f"{FILE_NAME} names {name!r}; known are {known}"))
    build: Callable[..., torch.optim.Optimizer] = solver
    return build(model.parameters(), **_options(solver, found))


def getLearningRate(optimizer: torch.optim.Optimizer) -> LRScheduler:
    """Return the schedule that `lr_policy` names, to be stepped once an epoch; without the key the rate is fixed."""
    found = settings()
    match policy := found.get("lr_policy", "fixed").lower():
        case "fixed":
            return LambdaLR(optimizer, lambda _: 1.0)
        case "step":
            steps = _number(int, found, "lr_decay_steps")
            return StepLR(optimizer, step_size=steps, gamma=_number(float, found, "lr_decay_rate"))
        case "exp" | "exponential":
            return ExponentialLR(optimizer, gamma=_number(float, found, "lr_decay_rate"))
        case _:
            known = f"{FILE_NAME} says {policy!r}; known are fixed, step, exp"
            raise InvalidInput(Problem(field="lr_policy", message=known))


def settings() -> dict[str, str]:
    """Return what the first `ps.conf` on the way says; empty if there is none.

    Raises:
        InvalidInput: a line of it is not `key=value`.
    """
    path = next((place for place in _places() if place.is_file()), None)
    if path is None:
        return {}
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        key, sign, value = text.partition("=")
        if not sign:
            raise InvalidInput(Problem(field=f"{path}:{number}", message=f"expected key=value, found {text!r}"))
        found[key.strip()] = value.strip()
    return found


def _places() -> list[Path]:
    folders = (os.environ.get("PS_PATH"), str(Path.cwd()), os.environ.get("DLI_WORK_DIR"))
    return [place for folder in folders if folder for place in (Path(folder), Path(folder) / FILE_NAME)]


def _data(key: str, full_list: bool) -> str | list[str]:
    given = settings().get(key) or os.environ.get("DATA_DIR")
    if not given:
        raise _missing(key, also=" or the environment variable DATA_DIR")
    if not full_list:
        return given
    root = Path(given)
    if root.is_dir():
        return sorted(str(path) for path in root.rglob("*") if path.is_file())
    if not root.is_file():
        raise NotFound(f"{key} is {given}, and there is nothing of that name")
    return [given]


def _options(solver: type[torch.optim.Optimizer], found: Mapping[str, str]) -> dict[str, Any]:
    accepted = inspect.signature(solver).parameters
    options: dict[str, Any] = {"lr": _number(float, found, "base_lr")}
    for key, name in OPTIONS.items():
        if key in found and name in accepted:
            options[name] = _number(float, found, key)
    if "nesterov" in found and "nesterov" in accepted:
        options["nesterov"] = found["nesterov"].lower() in {"1", "true", "yes"}
    if {"beta1", "beta2"} <= found.keys() and "betas" in accepted:
        options["betas"] = (_number(float, found, "beta1"), _number(float, found, "beta2"))
    return options


def _text(found: Mapping[str, str], key: str) -> str:
    if not found.get(key):
        raise _missing(key)
    return found[key]


def _number(kind: type[T], found: Mapping[str, str], key: str) -> T:
    text = _text(found, key)
    try:
        return kind(text)
    except ValueError as error:
        message = f"{FILE_NAME} says {text!r}; give a number (Python's {kind.__name__})"
        raise InvalidInput(Problem(field=key, message=message)) from error


def _missing(key: str, also: str = "") -> NotFound:
    looked = ", ".join(str(place) for place in _places() if place.name == FILE_NAME)
    return NotFound(
        f"the training asks for {key!r}, and no {FILE_NAME} sets it (looked for {looked}); add {key}=…{also}"
    )
