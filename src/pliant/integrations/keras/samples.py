"""Data as Keras scripts have it, as data sets of single samples: what is shared by tasks is counted in samples.

Arrays, and iterators of `ImageDataGenerator`, give any sample by its number. A `PyDataset` (once `Sequence`) computes
whole batches: its batches come in another order every epoch, as `fit` has it, and the samples of one stay together.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import torch
from torch.utils.data import IterableDataset, default_collate

from pliant.core.errors import InvalidInput
from pliant.integrations.keras.backend import keras
from pliant.integrations.keras.module import flatten
from pliant.train.seeds import mix

_ADVICE: Final = "give (x, y) of arrays, or an object with __len__ and __getitem__ that returns one (x, y)"


class ArraySamples:
    """Samples of arrays whose first dimension counts them; x and y may be nested in lists, tuples and dicts."""

    def __init__(self, x: Any, y: Any, *, what: str = "data set") -> None:
        self._data = _arrays((x, y))
        lengths = {len(array) for array in flatten(self._data)}
        if len(lengths) != 1:
            raise InvalidInput.at(what, f"its arrays have {sorted(lengths)} samples; give as many in each")
        [self._length] = lengths

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return _at(self._data, index)


class ImageSamples:
    """Samples of an iterator that `ImageDataGenerator.flow…` returns; its batch size, order and seed do not count."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __len__(self) -> int:
        return int(self._iterator.n)

    def __getitem__(self, index: int) -> Any:
        return _at(self._iterator._get_batches_of_transformed_samples(np.array([index])), 0)


class BatchedSamples:
    """Samples of a `keras.utils.PyDataset`, whose batches are all of one size but for the last.

    Raises:
        InvalidInput: it changes at the end of an epoch, or has no batches.
    """

    def __init__(self, dataset: Any, *, what: str = "data set") -> None:
        self._dataset, self._what = dataset, what
        name = type(dataset).__name__
        if type(dataset).on_epoch_end is not keras.utils.PyDataset.on_epoch_end:
            message = f"{name}.on_epoch_end changes it, which a task that joins later would not know; {_ADVICE}"
            raise InvalidInput.at(what, message)
        if not dataset.num_batches:
            raise InvalidInput.at(what, f"{name} has no batches, or does not say how many; {_ADVICE}")
        self._num_batches = int(dataset.num_batches)
        self._kept: tuple[int, Any] = (-1, None)
        self._batch_size = _num_samples(self._batch(0))
        last = _num_samples(self._batch(self._num_batches - 1))
        self._length = (self._num_batches - 1) * self._batch_size + last

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        number, place = divmod(index, self._batch_size)
        batch = self._batch(number)
        if number < self._num_batches - 1 and (size := _num_samples(batch)) != self._batch_size:
            message = f"its batch {number} has {size} samples, the first {self._batch_size}; let all have as many"
            raise InvalidInput.at(self._what, message)
        return _at(batch, place)

    def order(self, epoch: int) -> list[int]:
        """Return the samples in the order of an epoch: its batches shuffled, each whole."""
        generator = torch.Generator().manual_seed(mix(0, epoch))
        starts = (torch.randperm(self._num_batches, generator=generator) * self._batch_size).tolist()
        return [at for start in starts for at in range(start, min(start + self._batch_size, self._length))]

    def _batch(self, number: int) -> Any:
        if self._kept[0] != number:
            self._kept = (number, _arrays(self._dataset[number]))
        return self._kept[1]


def samples_of(given: Any, *, what: str = "data set") -> Any:
    """Return a map-style data set of single samples; None of None.

    Args:
        what: how messages call it.

    Raises:
        InvalidInput: it is something whose samples cannot be told apart.
    """
    if given is None:
        return None
    if _is_image_iterator(given):
        return ImageSamples(given)
    if isinstance(given, keras.utils.PyDataset):
        return BatchedSamples(given, what=what)
    if type(given).__module__.partition(".")[0] == "tensorflow":
        raise InvalidInput.at(what, f"it is a {type(given).__name__} of TensorFlow (tf.data); {_ADVICE}")
    if isinstance(given, list | tuple):
        if len(given) != 2:
            raise InvalidInput.at(what, f"it has {len(given)} parts, not (x, y); weights of samples are not supported")
        return ArraySamples(given[0], given[1], what=what)
    if isinstance(given, IterableDataset) or not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
        raise InvalidInput.at(what, f"it is a {type(given).__name__}, which has no samples by number; {_ADVICE}")
    return given


def order_of(samples: Any) -> Callable[[int], Iterable[int]] | None:
    """Return the order that a data set wants for its samples, if it wants one."""
    return samples.order if isinstance(samples, BatchedSamples) else None


def collate(samples: list[Any]) -> Any:
    """Return a batch of samples, its real numbers in the precision that Keras computes in."""
    return _in_precision(default_collate(samples), getattr(torch, keras.config.floatx()))


def _in_precision(data: Any, dtype: torch.dtype) -> Any:
    if isinstance(data, torch.Tensor):
        return data.to(dtype) if data.is_floating_point() else data
    if isinstance(data, dict):
        return {key: _in_precision(value, dtype) for key, value in data.items()}
    return [_in_precision(value, dtype) for value in data] if isinstance(data, list | tuple) else data


def _is_image_iterator(given: Any) -> bool:
    return isinstance(given, keras.utils.PyDataset) and hasattr(given, "_get_batches_of_transformed_samples")


def _arrays(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _arrays(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        numbers = tree and not any(hasattr(one, "__len__") or isinstance(one, torch.Tensor) for one in tree)
        return np.asarray(tree) if numbers else [_arrays(value) for value in tree]
    return tree if isinstance(tree, torch.Tensor) else np.asarray(tree)


def _at(tree: Any, index: int) -> Any:
    if isinstance(tree, dict):
        return {key: _at(value, index) for key, value in tree.items()}
    return [_at(value, index) for value in tree] if isinstance(tree, list | tuple) else tree[index]


def _num_samples(batch: Any) -> int:
    return len(next(iter(flatten(batch))))
