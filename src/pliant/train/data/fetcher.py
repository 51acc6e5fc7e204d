"""Fetches the samples of a part and makes a batch of them, in the training process or in a loader process.

Law: what is drawn while a sample is fetched (from torch's default generator, Python's `random`, numpy's global
generator) depends on the seed, the epoch and the sample, so the batch is the same whoever fetches it, and when.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy
import torch
from torch.utils.data import ConcatDataset, StackDataset, Subset, TensorDataset, default_collate

from pliant.train.seeds import mix, seed_loading

Collate = Callable[[list[Any]], Any]

_SAMPLE: Final = 0x73616D70
_PART: Final = 0x70617274
_STREAM: Final = 0x73747265
"""Tags that keep these seeds apart from those of the forward pass."""

_PLAIN: Final = (TensorDataset, torch.Tensor, numpy.ndarray, list, tuple, range)


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Samples that become one batch."""

    epoch: int
    start: int
    """Position of the first sample in the epoch's order; the others follow it."""
    indices: list[int]


def seed_of_stream(seed: int, epoch: int, *place: int) -> int:
    """Return the seed of a place in a stream of samples; of its opening if there is none."""
    return mix(seed, _STREAM, epoch, *place)


def may_draw(dataset: Any) -> bool:
    """Return whether fetching a sample could draw random numbers; False only for what surely cannot."""
    if type(dataset) is Subset:
        return may_draw(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return any(may_draw(part) for part in dataset.datasets)
    if type(dataset) is StackDataset:
        parts = dataset.datasets
        return any(may_draw(part) for part in (parts.values() if isinstance(parts, dict) else parts))
    return type(dataset) not in _PLAIN


def fetches_batches(dataset: Any) -> bool:
    """Return whether the data set has a `__getitems__` that does more than call `__getitem__`.

    torch's wrappers always have one, which only calls that of what they wrap.
    """
    if not callable(getattr(dataset, "__getitems__", None)):
        return False
    if type(dataset) is Subset:
        return fetches_batches(dataset.dataset)
    if type(dataset) is StackDataset:
        parts = dataset.datasets
        return any(fetches_batches(part) for part in (parts.values() if isinstance(parts, dict) else parts))
    return True


class Fetcher:
    """Makes batches of a map-style data set's samples.

    A data set with `__getitems__` fetches a whole part at once; its draws then depend on where the part begins. So do
    those of `collate_fn`. Parts are the same for any number of tasks in `exact` mode only.

    Args:
        repeats: an index may come more than once in an epoch, and is then drawn for anew each time.
    """

    def __init__(self, dataset: Any, *, collate_fn: Collate | None, seed: int, repeats: bool = False) -> None:
        self.dataset = dataset
        self._collate = collate_fn or default_collate
        self._seed = seed
        self._repeats = repeats
        self._batched = fetches_batches(dataset)
        self._seeded = may_draw(dataset)
        self._collate_seeded = self._collate is not default_collate
        self._tensors = _tensors(dataset) if self._collate is default_collate else ()

    def fetch(self, request: BatchRequest) -> Any:
        """Return the batch of these samples."""
        if self._tensors:
            chosen = torch.tensor(request.indices)
            return [tensor.index_select(0, chosen) for tensor in self._tensors]
        samples = self._samples(request)
        if self._collate_seeded:
            seed_loading(mix(self._seed, _PART, request.epoch, request.start, 1))
        return self._collate(samples)

    def _samples(self, request: BatchRequest) -> list[Any]:
        if self._batched:
            if self._seeded:
                seed_loading(mix(self._seed, _PART, request.epoch, request.start))
            samples: list[Any] = self.dataset.__getitems__(request.indices)
            return samples
        if not self._seeded:
            return [self.dataset[index] for index in request.indices]
        samples = []
        for position, index in enumerate(request.indices, request.start):
            again = (position,) if self._repeats else ()
            seed_loading(mix(self._seed, _SAMPLE, request.epoch, index, *again))
            samples.append(self.dataset[index])
        return samples


def _tensors(dataset: Any) -> tuple[torch.Tensor, ...]:
    """Return the tensors of a data set whose batches are rows of them, taken at once instead of one by one."""
    if type(dataset) is not TensorDataset or any(tensor.is_sparse or not tensor.is_cpu for tensor in dataset.tensors):
        return ()
    return dataset.tensors
