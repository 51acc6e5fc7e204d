"""Loss and metrics of one batch, as the model was compiled."""

from collections.abc import Mapping
from typing import Any, Final

import torch

from pliant.core.errors import InvalidInput
from pliant.integrations.keras.backend import keras
from pliant.integrations.keras.module import KerasModule

ACCURACY: Final = "accuracy"


class Measure:
    """Computes batches of (inputs, labels) with a compiled model."""

    def __init__(self, module: KerasModule) -> None:
        self._module = module
        self._is_checked = False

    def __call__(self, data: Any) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
        """Return the loss, and the metrics by name: means over the samples of the batch.

        Raises:
            InvalidInput: the batch has another shape, or a metric is no mean over samples.
        """
        inputs, labels = _pair(data)
        model = self._module.model
        model.reset_metrics()
        outputs = self._module(inputs)
        loss = model._compute_loss(inputs, labels, outputs, None, training=self._module.training)
        with torch.no_grad():
            found = model.compute_metrics(inputs, labels, outputs)
        if not self._is_checked:
            self._is_checked = True
            _check_means(model)
        return loss, _named(found)


def _named(found: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the metrics; the first accuracy also as `accuracy`, whatever kind it is."""
    values = {name: torch.as_tensor(value).detach() for name, value in found.items() if name != "loss"}
    kinds = [name for name in values if name == "acc" or name.endswith(ACCURACY)]
    if kinds and ACCURACY not in values:
        values[ACCURACY] = values[kinds[0]]
    return values


def _check_means(model: Any) -> None:
    """Refuse metrics whose value over all samples is not the mean of those of its parts."""
    leaves = [leaf for metric in model.metrics for leaf in (getattr(metric, "metrics", None) or [metric])]
    others = [leaf for leaf in leaves if type(leaf).result is not keras.metrics.Mean.result]
    if others:
        message = (
            f"{others[0].name} ({type(others[0]).__name__}) is no mean over samples, so the parts of a batch that "
            f"several tasks compute cannot be put together; leave it out and compute it from the trained model"
        )
        raise InvalidInput.at("metrics", message)


def _pair(data: Any) -> tuple[Any, Any]:
    if isinstance(data, list | tuple) and len(data) == 2:
        return data[0], data[1]
    weights = "; weights of samples are not supported" if isinstance(data, list | tuple) and len(data) == 3 else ""
    message = f"it gives {type(data).__name__} of {len(data) if hasattr(data, '__len__') else 1}, not (x, y){weights}"
    raise InvalidInput.at("data set", message)
