"""Loads the samples of a chunk: positions in the epoch's order → indices → one collated batch."""

from collections.abc import Callable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.utils.data import IterableDataset, default_collate

from pliant.train.errors import TrainingError
from pliant.train.seeds import mix

Collate = Callable[[list[Any]], Any]


class Samples:
    """A map-style data set in the order of the present epoch.

    Args:
        num_threads: threads that fetch samples side by side; 0 fetches them in the training thread.
    """

    def __init__(
        self, dataset: Any, *, seed: int, shuffle: bool, collate_fn: Collate | None, num_threads: int = 0
    ) -> None:
        has_items = isinstance(dataset, Sized) and hasattr(dataset, "__getitem__")
        if not has_items or isinstance(dataset, IterableDataset):
            raise TrainingError(
                f"the data set is a {type(dataset).__name__}, which has no length or cannot be indexed; Pliant deals "
                f"out samples by index, so give a map-style torch Dataset (__len__ and __getitem__)"
            )
        self._dataset: Any = dataset
        self._seed = seed
        self._shuffle = shuffle
        self._collate = collate_fn or default_collate
        self._pool = ThreadPoolExecutor(num_threads, "pliant-load") if num_threads > 0 else None
        self._epoch: int | None = None
        self._order: list[int] = []

    def __len__(self) -> int:
        return len(self._dataset)

    def indices(self, epoch: int, positions: range) -> list[int]:
        """Return the sample indices at these positions of an epoch's order."""
        if not self._shuffle:
            return list(positions)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(mix(self._seed, epoch))
            self._order = torch.randperm(len(self), generator=generator).tolist()
            self._epoch = epoch
        return self._order[positions.start : positions.stop]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def load(self, indices: Sequence[int]) -> Any:
        """Return the collated batch of these samples."""
        if hasattr(self._dataset, "__getitems__"):
            return self._collate(self._dataset.__getitems__(list(indices)))
        if self._pool is not None:
            return self._collate(list(self._pool.map(self._dataset.__getitem__, indices)))
        return self._collate([self._dataset[index] for index in indices])
