"""Which sample is at which position of an epoch: a function of the seed and the epoch alone."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch

from pliant.train.errors import TrainingError
from pliant.train.seeds import mix

OrderFunction = Callable[[int], Iterable[int]]
"""Takes an epoch, returns the sample indices in the order of their use; the same ones in every task."""


class SampleOrder:
    """Turns positions of an epoch into indices of the data set.

    Args:
        length: samples of the data set; None if it has no length (then `order` must be given).
        order: instead of all samples, shuffled or not; it may repeat and leave out indices.
        num_samples: how many indices `order` returns; None: call it for epoch 0 and count.
        whole: use only whole batches of this many samples, and not what is left over at the end of the order.

    Raises:
        TrainingError: `order` returned something else than `num_samples` indices of the data set.
    """

    def __init__(
        self,
        *,
        length: int | None,
        seed: int,
        shuffle: bool,
        order: OrderFunction | None = None,
        num_samples: int | None = None,
        whole: int | None = None,
    ) -> None:
        self.repeats = order is not None
        """Whether an index may come more than once in an epoch."""
        self._length = length
        self._seed = seed
        self._shuffle = shuffle
        self._order = order
        self._known: dict[int, torch.Tensor] = {}
        if order is not None:
            length = len(self._call_order(0, order)) if num_samples is None else num_samples
        assert length is not None, "neither a length nor an order"
        self._num_drawn = length
        self.num_samples = length // whole * whole if whole else length

    def indices(self, epoch: int, positions: range) -> list[int]:
        """Return the sample indices at these positions of an epoch's order."""
        if self._order is None and not self._shuffle:
            return list(positions)
        if epoch not in self._known:
            # loading runs ahead into the next epoch while the present one is still asked for
            self._known = {known: order for known, order in self._known.items() if known in (epoch - 1, epoch + 1)}
            self._known[epoch] = self._draw(epoch)
        found: list[int] = self._known[epoch][positions.start : positions.stop].tolist()
        return found

    def _draw(self, epoch: int) -> torch.Tensor:
        if self._order is None:
            assert self._length is not None
            return torch.randperm(self._length, generator=torch.Generator().manual_seed(mix(self._seed, epoch)))
        found = self._call_order(epoch, self._order)
        if len(found) != self._num_drawn:
            raise TrainingError(
                f"order({epoch}) returned {len(found)} indices and an epoch has {self._num_drawn}; return the same "
                f"number for every epoch"
            )
        return found

    def _call_order(self, epoch: int, order: OrderFunction) -> torch.Tensor:
        given: Any = order(epoch)
        try:
            if isinstance(given, torch.Tensor):
                found = given.detach().cpu().clone()
            else:
                found = torch.from_numpy(numpy.array(given if isinstance(given, numpy.ndarray) else list(given)))
        except (TypeError, ValueError, RuntimeError) as error:
            raise TrainingError(f"order({epoch}) did not return a sequence of indices: {error}") from error
        if found.dim() != 1 or (len(found) and (found.is_floating_point() or found.dtype == torch.bool)):
            raise TrainingError(
                f"order({epoch}) returned {found.dtype} of shape {tuple(found.shape)}; return one sequence of integers"
            )
        if len(found) and self._length is not None:
            low, high = int(found.min()), int(found.max())
            if low < 0 or high >= self._length:
                raise TrainingError(
                    f"order({epoch}) returned indices from {low} to {high}; the data set has those from 0 to "
                    f"{self._length - 1}"
                )
        return found
