"""What a training loads and how: the arguments of `Run`, or the settings of a torch DataLoader.

Only the settings of a DataLoader are read; it is never iterated, because Pliant distributes the samples itself. So its
`generator` and `persistent_workers` mean nothing: the order comes from the training's seed, and loader processes live
as long as the training.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from pliant.train.data.fetcher import Collate
from pliant.train.data.order import OrderFunction
from pliant.train.errors import TrainingError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """A data set and how to load it; None where nothing was said."""

    data: Any
    batch_size: int | None = None
    shuffle: bool | None = None
    order: OrderFunction | None = None
    num_samples: int | None = None
    drop_last: bool = False
    collate_fn: Collate | None = None
    num_workers: int = 0
    prefetch_factor: int | None = None
    pin_memory: bool = False
    worker_init_fn: Callable[[int], None] | None = None
    timeout: float = 0.0
    context: Any = None

    def check(self) -> None:
        """Refuse settings that contradict each other.

        Raises:
            TrainingError: two of them do; the message says what to change.
        """
        if self.num_workers < 0:
            raise TrainingError(f"num_workers is {self.num_workers}; it is a number of processes, 0 for none")
        if self.prefetch_factor is not None and (self.num_workers == 0 or self.prefetch_factor < 1):
            raise TrainingError(
                f"prefetch_factor is {self.prefetch_factor} with num_workers={self.num_workers}; it is the number of "
                f"parts that each worker process loads ahead: at least 1, and only with num_workers of at least 1"
            )
        if self.order is not None and self.shuffle:
            raise TrainingError("both order and shuffle=True were given; shuffle inside order")


def take_loader_settings(given: LoadSettings) -> LoadSettings:
    """Return the settings of the DataLoader in `given.data`, completed by the others in `given`.

    Raises:
        TrainingError: the DataLoader chooses samples in a way that Pliant cannot keep up over a changing number of
            tasks, or what was given beside it says something else.
    """
    loader: DataLoader[Any] = given.data
    if loader.batch_size is None:
        raise TrainingError(
            "the DataLoader has a batch_sampler, or batch_size=None; give the Run its data set, with batch_size (the "
            "global batch) and, for an order of your own, order=callable(epoch) -> sequence of indices"
        )
    if type(loader.batch_sampler) is not BatchSampler:
        raise TrainingError(f"the DataLoader's batch_sampler is a {type(loader.batch_sampler).__name__}; remove it")
    taken = LoadSettings(
        data=loader.dataset,
        batch_size=loader.batch_size,
        shuffle=_shuffle(loader) if given.order is None else given.shuffle,
        order=given.order,
        num_samples=given.num_samples,
        drop_last=loader.drop_last,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor if loader.num_workers > 0 else None,
        pin_memory=loader.pin_memory,
        worker_init_fn=loader.worker_init_fn,
        timeout=loader.timeout,
        context=loader.multiprocessing_context,
    )
    _check_agrees(given, taken)
    return replace(taken, pin_memory=taken.pin_memory or given.pin_memory)


def _check_agrees(given: LoadSettings, taken: LoadSettings) -> None:
    names = ("batch_size", "shuffle", "collate_fn", "prefetch_factor", "worker_init_fn")
    said = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.num_workers:
        said["num_workers"] = given.num_workers
    differing = [name for name, value in said.items() if value != getattr(taken, name)]
    if differing:
        differences = "; ".join(f"{name} is {getattr(taken, name)} there and {said[name]} here" for name in differing)
        raise TrainingError(
            f"the DataLoader brings its own settings, and other ones were given beside it: {differences}; change the "
            f"DataLoader, or give its data set instead of it"
        )


def _shuffle(loader: DataLoader[Any]) -> bool | None:
    sampler: Any = loader.sampler
    if isinstance(loader.dataset, IterableDataset):
        return None
    length = len(loader.dataset)  # type: ignore[arg-type]
    if type(sampler) is SequentialSampler and len(sampler) == length:
        return False
    if type(sampler) is RandomSampler and not sampler.replacement and len(sampler) == length:
        return True
    if isinstance(sampler, DistributedSampler):
        raise TrainingError(
            "the DataLoader has a DistributedSampler; Pliant deals out the samples itself, so remove the sampler and "
            "say shuffle=True or False in the DataLoader (batch_size is the global batch)"
        )
    raise TrainingError(
        f"the DataLoader's sampler is a {type(sampler).__name__} that does not give every sample once an epoch in an "
        f"order that all tasks know; give the Run order=callable(epoch) -> sequence of indices, the same ones in every "
        f"task, and it replaces the sampler"
    )
