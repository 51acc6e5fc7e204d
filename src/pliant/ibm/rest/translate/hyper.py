"""IBM's names of hyperparameters as Pliant's, and back. Pure.

A note says which have no meaning for PyTorch, or are decided by the program itself.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from pliant.core.hyperparameters import Hyperparameters

NAMES: Final[Mapping[str, str]] = {
    "learningrate": "learning_rate",
    "momentum": "momentum",
    "weightdecay": "weight_decay",
    "epoch": "epochs",
    "solvertype": "optimizer",
    "lrpolicy": "lr_policy",
    "gamma": "lr_gamma",
    "decayrate": "lr_gamma",
    "factor": "lr_gamma",
    "stepsize": "lr_step_size",
    "decaysteps": "lr_step_size",
    "t_max": "lr_step_size",
    "stepvalues": "lr_milestones",
    "staircase": "lr_staircase",
    "power": "lr_power",
    "end_learning_rate": "lr_end",
    "eta_min": "lr_end",
    "patience": "lr_patience",
    "epsilon": "epsilon",
    "beta1": "beta1",
    "beta2": "beta2",
    "rho": "rho",
    "lr_decay": "lr_decay",
    "amsgrad": "amsgrad",
    "lambd": "lambd",
    "alpha": "alpha",
    "centered": "centered",
    "dampening": "dampening",
    "nesterov": "nesterov",
}
"""IBM's names; where several mean one thing the first is the one that answers have."""
_WHOLE: Final = frozenset({"epochs", "lr_step_size", "lr_patience"})
_MARK: Final = re.compile(r"\s*\((Cf|TF|PT)[^)]*\)$")


def from_ibm_names(given: Mapping[str, Any], batch_size: int | None) -> tuple[dict[str, Any], list[str]]:
    """Return hyperparameters to set, by Pliant's names, and what has no effect."""
    found: dict[str, Any] = {} if batch_size is None else {"batch_size": batch_size}
    notes = []
    for name, value in given.items():
        if name not in NAMES:
            notes.append(f"hyperparameter {name} has no effect: PyTorch has none, or the program sets it itself")
        elif value is not None:
            found[NAMES[name]] = read_value(NAMES[name], value)
    return found, notes


def read_value(name: str, value: Any) -> Any:
    """Return the value of a hyperparameter, by Pliant's name, as clients of IBM's write it."""
    if name in ("optimizer", "lr_policy"):
        return _MARK.sub("", str(value))
    if name == "lr_milestones":
        return [int(part) if part.strip().isdecimal() else part for part in str(value).split(",")]
    if name == "lr_staircase" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    if name in _WHOLE and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def to_ibm_names(chosen: Hyperparameters) -> dict[str, Any]:
    """Return hyperparameters by IBM's names; what is left open is left out."""
    mine = asdict(chosen)
    found: dict[str, Any] = {}
    for theirs, ours in NAMES.items():
        value = mine[ours]
        if value is not None and value != () and ours not in {NAMES[name] for name in found}:
            found[theirs] = ",".join(map(str, value)) if isinstance(value, tuple) else value
    return found
