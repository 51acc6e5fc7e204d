"""A script that is run for its model alone: it is stopped where it begins to train (`take_model`).

The first `Run` that the script builds hands over its model and its data set, and ends the script by an exception that
no `except Exception` catches. A script that catches everything goes on; what it has handed over counts all the same.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils.data import DataLoader

from pliant.train.checks import unwrap
from pliant.train.errors import TrainingError


@dataclass(slots=True)
class HandedOver:
    """What the script trains."""

    model: torch.nn.Module | None = None
    data: Any = None


class ModelHandedOver(BaseException):
    """The script is not needed any more."""


_TAKER: Final[ContextVar[HandedOver]] = ContextVar("pliant_handover")


def hand_over(model: torch.nn.Module, data: Any) -> None:
    """Do nothing, unless somebody wants the model instead of its training.

    Raises:
        ModelHandedOver: they do, and have it now.
    """
    taker = _TAKER.get(None)
    if taker is None:
        return
    if taker.model is None:
        taker.model, taker.data = unwrap(model), data
    raise ModelHandedOver


def take_model(run_script: Callable[[], object]) -> tuple[torch.nn.Module, Any]:
    """Run a script until it begins to train; return its model, and the first sample of its data set or None.

    Raises:
        TrainingError: it has ended, and has not begun to train.
    """
    taken = HandedOver()
    token = _TAKER.set(taken)
    try:
        run_script()
    except ModelHandedOver:
        pass
    except SystemExit:
        if taken.model is None:
            raise
    finally:
        _TAKER.reset(token)
    if taken.model is None:
        raise TrainingError(
            "the script has ended without a pliant.train.Run, so it has no model; deploy a job that trains"
        )
    return taken.model, first_sample(taken.data)


def first_sample(data: Any) -> Any:
    """Return the first sample of what is trained on; None if it has none, or cannot be read."""
    if isinstance(data, DataLoader):
        data = data.dataset
    try:
        return data[0]
    except Exception:  # noqa: BLE001 (a data set may raise anything; a sample is no more than a help)
        return None
