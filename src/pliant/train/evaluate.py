"""An evaluation that all tasks share: each computes some of the batches, and all add up the means in one order.

The result is the same, bit for bit, for any number of tasks: every batch is computed alone, its values travel in a row
of their own, and all tasks add the rows up in the same order. Example: 10 samples in batches of 4 are three batches of
4, 4 and 2. Two tasks compute batches 0 and 1, and batch 2. Both then have all three rows, and the mean is
(4 * row 0 + 4 * row 1 + 2 * row 2) / 10.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.utils.data import DataLoader, IterableDataset, default_collate

from pliant.train.data.fetcher import Collate
from pliant.train.data.sharding import cut
from pliant.train.errors import GenerationLost, TrainingError
from pliant.train.group.collectives import Group
from pliant.train.seeds import mix, seed_forward
from pliant.train.sum.metrics import NUM_METRICS

Measure = Callable[[Any], Mapping[str, float | torch.Tensor]]
"""Takes a batch, returns means over its samples."""
_MOST_VALUES: Final = 1 + NUM_METRICS
"""The loss and as many metrics as a step carries."""
GROUP_OF_ONE: Final = Group(number=0, rank=0, size=1, backend=None)


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """One pass over a map-style data set. Batches that were computed are not computed again after a loss."""

    dataset: Any
    measure: Measure
    batch_size: int
    collate: Collate
    seed: int
    on_batch: Callable[[], None] = lambda: None
    """Called after every batch that this task computes."""
    _done: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def num_batches(self) -> int:
        return -(-len(self.dataset) // self.batch_size)

    def run(self, group: Group, *, is_lost: Callable[[], bool]) -> dict[str, float]:
        """Compute this task's share, exchange, and return the means over all samples.

        Raises:
            GenerationLost: call it again with the next generation's group.
            TrainingError: the measure gives no values, too many, or different ones.
        """
        mine = cut(range(self.num_batches), group.size, group.rank)
        for number in mine or range(1):  # a task without a batch computes one, to know the names
            if is_lost():
                raise GenerationLost("the coordinator gave this generation up")
            if number not in self._done:
                self._done[number] = self._measure_batch(number)
                self.on_batch()
        table = torch.zeros(self.num_batches, 1 + _MOST_VALUES, dtype=torch.float64)
        for number in mine:
            values = sorted(self._done[number].items())
            row = [_hash_names([name for name, _ in values]), *(value for _, value in values)]
            table[number, : len(row)] = torch.tensor(row, dtype=torch.float64)
        group.all_reduce([table], is_lost=is_lost)
        return self._means(table.tolist())

    def _means(self, rows: list[list[float]]) -> dict[str, float]:
        names = sorted(next(iter(self._done.values())))
        if any(row[0] != _hash_names(names) for row in rows):
            raise TrainingError(
                f"the evaluation gave the values {names} for one batch and others for another; give the same always"
            )
        counts = [len(self._indices(number)) for number in range(self.num_batches)]
        sums = [sum(row[1 + place] * n for row, n in zip(rows, counts, strict=True)) for place in range(len(names))]
        return {name: total / len(self.dataset) for name, total in zip(names, sums, strict=True)}

    def _indices(self, number: int) -> range:
        return range(number * self.batch_size, min((number + 1) * self.batch_size, len(self.dataset)))

    def _measure_batch(self, number: int) -> dict[str, float]:
        seed_forward(mix(self.seed, number))
        samples = [self.dataset[index] for index in self._indices(number)]
        values = {name: float(value) for name, value in self.measure(self.collate(samples)).items()}
        if not 0 < len(values) <= _MOST_VALUES:
            raise TrainingError(f"an evaluation gives 1 to {_MOST_VALUES} values by name; this gave {sorted(values)}")
        return values


def make_evaluation(
    data: Any, measure: Measure, *, batch_size: int | None, collate: Collate | None, default_batch_size: int, seed: int
) -> Evaluation:
    """Return the evaluation of a map-style data set, or of the one behind a DataLoader, in its batches.

    Raises:
        TrainingError: the data set has no length, no samples, or cannot be indexed.
    """
    if isinstance(data, DataLoader):
        batch_size, collate, data = batch_size or data.batch_size, collate or data.collate_fn, data.dataset
    if isinstance(data, IterableDataset) or not isinstance(data, Sized) or not hasattr(data, "__getitem__"):
        raise TrainingError(
            f"evaluate() got a {type(data).__name__}, which has no length or cannot be indexed; give a map-style data "
            f"set (__len__ and __getitem__), or a DataLoader of one"
        )
    if len(data) == 0:
        raise TrainingError("evaluate() got a data set without samples, over which there is no mean")
    return Evaluation(
        dataset=data,
        measure=measure,
        batch_size=batch_size or default_batch_size,
        collate=collate or default_collate,
        seed=seed,
    )


@contextmanager
def evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """Put every module in evaluation mode and compute no gradients, inside the `with` block."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


def _hash_names(names: list[str]) -> float:
    """Return a number that differs between sets of names and is never 0, the value of an empty row."""
    return 1.0 + zlib.crc32("\n".join(names).encode())
