"""Imports Keras with PyTorch below it, or says what is missing."""

import importlib
from typing import Any

from pliant.core.errors import InvalidInput
from pliant.integrations.tensorflow_names import BACKEND, NEEDS_KERAS, offer


def _import() -> Any:
    offer()
    try:
        return importlib.import_module("keras")
    except ModuleNotFoundError as error:
        if error.name != "keras":
            raise
        raise ImportError(NEEDS_KERAS, name="keras") from error


keras: Any = _import()


def check_backend() -> None:
    """Refuse a Keras that does not compute with PyTorch.

    Raises:
        InvalidInput: another backend was chosen.
    """
    if keras.backend.backend() != "torch":
        message = (
            f"it is {keras.backend.backend()!r}, and elastic trainings run on PyTorch; set {BACKEND}=torch before "
            f"Keras is imported for the first time (in a notebook: restart the kernel)"
        )
        raise InvalidInput.at(BACKEND, message)
