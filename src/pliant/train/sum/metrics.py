"""Loss and metrics of a global batch, summed together with the gradients.

Example: parts of 3 and 1 samples have the losses 2.0 and 4.0. Their control elements are 6.0 and 3, and 4.0 and 1; the
sums 10.0 and 4 give the mean 2.5. Where the losses are sums over the parts, their elements are 4 * 2.0 and 4 * 4.0,
with the 4 samples of the global batch: 24.0 and 4 give the sum 6.0.

Where the parts have weights, 100 and 300 tokens, a third element is their sum. The losses are 200.0 and 1200.0 then,
and 1400.0 and 400 give the mean 3.5 over the tokens. Without weights that element is 0.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import torch

from pliant.train.errors import TrainingError
from pliant.train.sum.readout import Element, Weighed

NUM_METRICS: Final = 16
"""Metrics that a step can carry beside the loss."""
NUM_ELEMENTS: Final = 3 + NUM_METRICS
_LOSS, _COUNT, _WEIGHT, _FIRST_METRIC = 0, 1, 2, 3


class MetricSums:
    """Weighs the values of every part by its samples, so that the sums over all parts give means over the batch."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] | None = None
        self._is_weighted: bool | None = None

    def add(
        self,
        elements: list[Element],
        loss: float | torch.Tensor,
        metrics: Mapping[str, float | torch.Tensor],
        num_samples: int,
        *,
        first: int = 0,
        loss_weight: float | None = None,
        is_weighted: bool = False,
    ) -> None:
        """Add a part's means to control elements, of which the NUM_ELEMENTS from `first` on are for this.

        Values on an accelerator stay there, so that the host does not wait for it. The loss is weighed by the samples
        of the part, too, unless another `loss_weight` is given; with `is_weighted` its mean is that over the weights.

        Raises:
            TrainingError: too many metrics, or others than before; a weight, and none before.
        """
        if self._is_weighted not in (None, is_weighted):
            raise TrainingError("step got a weight for some batches and none for others; give one always, or never")
        self._is_weighted = is_weighted
        names = tuple(sorted(metrics))
        if self._names is None and len(names) > NUM_METRICS:
            raise TrainingError(f"step got {len(names)} metrics; at most {NUM_METRICS} travel with a step")
        if self._names is not None and names != self._names:
            raise TrainingError(f"step got the metrics {names}, and {self._names} before; give the same always")
        self._names = names
        _add(elements, first + _LOSS, _amount(loss, "the loss"), num_samples if loss_weight is None else loss_weight)
        _add(elements, first + _COUNT, 1.0, num_samples)
        if is_weighted and loss_weight is not None:
            _add(elements, first + _WEIGHT, 1.0, loss_weight)
        for place, name in enumerate(names):
            _add(elements, first + _FIRST_METRIC + place, _amount(metrics[name], f"the metric {name}"), num_samples)

    def means(self, sums: Sequence[float], *, known: Collection[str] = ()) -> dict[str, float]:
        """Return the means over the global batch from the sums of all tasks.

        Args:
            known: names of the values of an earlier step, for a task that has had no part of any step yet.
        """
        values = {"loss": sums[_LOSS] / (sums[_WEIGHT] or sums[_COUNT])}
        names = sorted(set(known) - {"loss"}) if self._names is None else self._names
        for place, name in enumerate(names):
            values[name] = sums[_FIRST_METRIC + place] / sums[_COUNT]
        return values

    def divisor(self, sums: Sequence[float]) -> float:
        """Return what the summed gradients are divided by: the weights of all parts, or 1 if they have none."""
        return sums[_WEIGHT] or 1.0


def _add(elements: list[Element], place: int, value: float | torch.Tensor, weight: float) -> None:
    before = elements[place]
    if isinstance(value, torch.Tensor) and isinstance(before, float) and before == 0.0:
        elements[place] = Weighed(value, weight)
    else:
        elements[place] = (before.product() if isinstance(before, Weighed) else before) + value * weight


def _amount(value: float | torch.Tensor, what: str) -> float | torch.Tensor:
    if not isinstance(value, torch.Tensor):
        return value
    if value.numel() != 1:
        raise TrainingError(
            f"{what} has the shape {tuple(value.shape)}; give its mean over the samples of the batch, one number"
        )
    return value.item() if value.is_cpu else value.detach().reshape(()).float()
