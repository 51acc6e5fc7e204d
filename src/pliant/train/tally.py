"""Loss and metrics of a global batch, summed on their way with the gradients."""

from collections.abc import Mapping, Sequence
from typing import Final

import torch

from pliant.train.errors import TrainingError

NUM_METRICS: Final = 16
"""Metrics that a step can carry beside the loss."""
NUM_ELEMENTS: Final = 2 + NUM_METRICS
_LOSS, _COUNT, _FIRST_METRIC = 0, 1, 2


class Tally:
    """Weighs the values of every chunk by its samples, so that the sums over all chunks give means over the batch."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] | None = None

    def add(
        self,
        elements: torch.Tensor,
        loss: float | torch.Tensor,
        metrics: Mapping[str, float | torch.Tensor],
        num_samples: int,
    ) -> None:
        """Add a chunk's means to this task's control elements, shape (NUM_ELEMENTS,) at least.

        Raises:
            TrainingError: too many metrics, or others than before.
        """
        names = tuple(sorted(metrics))
        if self._names is None and len(names) > NUM_METRICS:
            raise TrainingError(f"step got {len(names)} metrics; at most {NUM_METRICS} travel with a step")
        if self._names is not None and names != self._names:
            raise TrainingError(f"step got the metrics {names}, and {self._names} before; give the same always")
        self._names = names
        for place, value in enumerate([loss, *(metrics[name] for name in names)]):
            amount = value.detach().reshape(()).to(elements) if isinstance(value, torch.Tensor) else value
            elements[_LOSS if place == 0 else _FIRST_METRIC + place - 1] += amount * num_samples
        elements[_COUNT] += num_samples

    def means(self, sums: Sequence[float]) -> dict[str, float]:
        """Return the means over the global batch from the sums of all tasks."""
        values = {"loss": sums[_LOSS] / sums[_COUNT]}
        for place, name in enumerate(self._names or ()):
            values[name] = sums[_FIRST_METRIC + place] / sums[_COUNT]
        return values
