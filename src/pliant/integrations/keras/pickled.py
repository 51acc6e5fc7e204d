"""How a model and its optimizer are pickled for another process: each becomes itself there.

Keras pickles a compiled model with its loss by name, which a function of a notebook has none of there, and an optimizer
without its state. So a model goes uncompiled, and an optimizer with what it holds.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import torch


class SentModel:
    """Unpickles as the model, with its weights, not compiled."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __reduce__(self) -> Any:
        compiled, self._model.compiled = self._model.compiled, False
        try:
            return self._model.__reduce__()
        finally:
            self._model.compiled = compiled


class SentOptimizer:
    """Unpickles as the optimizer; it gets its state back when it is built for a model (`own_optimizer`)."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def __reduce__(self) -> Any:
        optimizer = self._optimizer
        values = [variable.value.detach().cpu() for variable in optimizer.variables] if optimizer.built else []
        keras = importlib.import_module("keras")
        return _optimizer, (keras.optimizers.serialize(optimizer), values)


def _optimizer(config: dict[str, Any], values: Sequence[torch.Tensor]) -> Any:
    keras = importlib.import_module("keras")
    optimizer = keras.optimizers.deserialize(config)
    optimizer.sent_values = list(values)
    return optimizer
