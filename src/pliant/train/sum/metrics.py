"""Loss and metrics of a global batch, summed together with the gradients.

Example: parts of 3 and 1 samples have the losses 2.0 and 4.0. Their control elements are 6.0 and 3, and 4.0 and 1; the
sums 10.0 and 4 give the mean 2.5. Where the losses are sums over the parts, their elements are 4 * 2.0 and 4 * 4.0,
with the 4 samples of the global batch: 24.0 and 4 give the sum 6.0.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import torch

from pliant.train.errors import TrainingError

NUM_METRICS: Final = 16
"""Metrics that a step can carry beside the loss."""
NUM_ELEMENTS: Final = 2 + NUM_METRICS
_LOSS, _COUNT, _FIRST_METRIC = 0, 1, 2


class MetricSums:
    """Weighs the values of every part by its samples, so that the sums over all parts give means over the batch."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] | None = None

    def add(
        self,
        elements: list[float | torch.Tensor],
        loss: float | torch.Tensor,
        metrics: Mapping[str, float | torch.Tensor],
        num_samples: int,
        *,
        first: int = 0,
        loss_weight: int | None = None,
    ) -> None:
        """Add a part's means to control elements, of which the NUM_ELEMENTS from `first` on are for this.

        Values on an accelerator stay there, so that the host does not wait for it. The loss is weighed by the samples
        of the part, too, unless another `loss_weight` is given.

        Raises:
            TrainingError: too many metrics, or others than before.
        """
        names = tuple(sorted(metrics))
        if self._names is None and len(names) > NUM_METRICS:
            raise TrainingError(f"step got {len(names)} metrics; at most {NUM_METRICS} travel with a step")
        if self._names is not None and names != self._names:
            raise TrainingError(f"step got the metrics {names}, and {self._names} before; give the same always")
        self._names = names
        elements[first + _LOSS] += _amount(loss, "the loss") * (loss_weight or num_samples)
        elements[first + _COUNT] += num_samples
        for place, name in enumerate(names):
            elements[first + _FIRST_METRIC + place] += _amount(metrics[name], f"the metric {name}") * num_samples

    def means(self, sums: Sequence[float], *, known: Collection[str] = ()) -> dict[str, float]:
        """Return the means over the global batch from the sums of all tasks.

        Args:
            known: names of the values of an earlier step, for a task that has had no part of any step yet.
        """
        values = {"loss": sums[_LOSS] / sums[_COUNT]}
        names = sorted(set(known) - {"loss"}) if self._names is None else self._names
        for place, name in enumerate(names):
            values[name] = sums[_FIRST_METRIC + place] / sums[_COUNT]
        return values


def _amount(value: float | torch.Tensor, what: str) -> float | torch.Tensor:
    if not isinstance(value, torch.Tensor):
        return value
    if value.numel() != 1:
        raise TrainingError(
            f"{what} has the shape {tuple(value.shape)}; give its mean over the samples of the batch, one number"
        )
    return value.item() if value.is_cpu else value.detach().reshape(()).float()
