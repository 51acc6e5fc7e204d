"""What a Trainer trains on, as a Run takes it: one DataLoader of global batches, and the order of its samples.

The loader is the Trainer's own (`get_train_dataloader`, of subclasses, too); only its settings are read. A global batch
is `per_device_train_batch_size * gradient_accumulation_steps` samples, as one process of the plain Trainer has.
"""

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

from pliant.train import TrainingError
from pliant.train.data.order import OrderFunction
from pliant.train.seeds import mix, seed_loading


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainData:
    """Data, order and amount of one training."""

    loader: DataLoader[Any]
    """Its batches are the global ones."""
    order: OrderFunction | None
    """None: as the loader says, shuffled or not."""
    num_samples: int
    """Of an epoch."""
    batch_size: int

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.num_samples // self.batch_size)


def read_train_data(trainer: Any) -> TrainData:
    """Return what a Trainer trains on.

    Raises:
        TrainingError: it chooses samples in a way that does not hold for a changing number of workers.
    """
    loader = trainer.get_train_dataloader()
    if isinstance(loader.dataset, IterableDataset):
        return _read_stream(trainer, loader)
    batches = loader.batch_sampler
    if type(batches) is not BatchSampler:
        raise TrainingError(
            f"get_train_dataloader returned a loader with the batch_sampler {type(batches).__name__}; give it "
            f"batch_size, and a sampler for an order of your own"
        )
    seed = trainer.args.seed if trainer.args.data_seed is None else trainer.args.data_seed
    sampler: Any = batches.sampler
    num_drawn = len(sampler)
    num_samples = num_drawn // batches.batch_size * batches.batch_size if batches.drop_last else num_drawn
    if num_samples == 0:
        raise TrainingError(
            f"the train_dataset has {num_drawn} samples and a batch {batches.batch_size}: with "
            f"dataloader_drop_last=True none is left; lower per_device_train_batch_size"
        )
    batch_size = min(batches.batch_size * trainer.args.gradient_accumulation_steps, num_samples)
    order = _Order(sampler, seed=seed, num_samples=num_samples)
    order.check()
    return TrainData(
        loader=_global_loader(loader, loader.dataset, batch_size), order=order, num_samples=num_samples,
        batch_size=batch_size,
    )  # fmt: skip


class _Order:
    """Draws the samples of an epoch as the Trainer's sampler does, from the seed and the epoch alone."""

    def __init__(self, sampler: Any, *, seed: int, num_samples: int) -> None:
        self._sampler = sampler
        self._seed = seed
        self._num_samples = num_samples

    def __call__(self, epoch: int) -> torch.Tensor:
        sampler, seed, length = self._sampler, mix(self._seed, epoch), len(self._sampler)
        if self.is_plain_shuffle:
            drawn = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
        elif type(sampler) is SequentialSampler:
            drawn = torch.arange(length)
        else:
            drawn = self._draw(epoch, seed)
        return drawn[: self._num_samples]

    @property
    def is_plain_shuffle(self) -> bool:
        sampler = self._sampler
        return (
            isinstance(sampler, RandomSampler) and not sampler.replacement and len(sampler) == len(sampler.data_source)
        )

    def check(self) -> None:
        """Refuse a sampler whose order depends on what was drawn before: tasks that join later would draw another.

        Raises:
            TrainingError: it does.
        """
        if self.is_plain_shuffle or type(self._sampler) is SequentialSampler:
            return
        first, _, again = self(0), self(1), self(0)
        if not torch.equal(first, again):
            raise TrainingError(
                f"the sampler {type(self._sampler).__name__} draws another order for the same epoch and seed, so tasks "
                f"that join later would train on other samples; let it draw from torch's, numpy's or Python's global "
                f"generator, from a torch.Generator in its attribute `generator`, or by the epoch in set_epoch(epoch)"
            )

    def _draw(self, epoch: int, seed: int) -> torch.Tensor:
        seed_loading(seed)
        if callable(getattr(self._sampler, "set_epoch", None)):
            self._sampler.set_epoch(epoch)
        if isinstance(generator := getattr(self._sampler, "generator", None), torch.Generator):
            generator.manual_seed(seed)
        return torch.tensor([int(index) for index in self._sampler])


def _global_loader(loader: Any, dataset: Any, batch_size: int) -> DataLoader[Any]:
    """Return a loader of global batches with another one's settings; it is never iterated."""
    return DataLoader(
        dataset,
        batch_size=batch_size,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor if loader.num_workers else None,
        pin_memory=loader.pin_memory,
        worker_init_fn=loader.worker_init_fn,
        timeout=loader.timeout,
        multiprocessing_context=loader.multiprocessing_context if loader.num_workers else None,
    )


def _read_stream(trainer: Any, loader: Any) -> TrainData:
    args, dataset = trainer.args, loader.dataset
    if loader.num_workers:
        raise TrainingError(
            f"dataloader_num_workers={loader.num_workers}: an iterable train_dataset is read in the training process; "
            f"set it to 0, or give a map-style data set"
        )
    batch_size = loader.batch_size * args.gradient_accumulation_steps
    if isinstance(dataset, Sized):
        num_samples = len(dataset)
        if args.dataloader_drop_last:
            num_samples = num_samples // loader.batch_size * loader.batch_size
    else:
        num_samples, dataset = args.max_steps * batch_size, EndlessStream(dataset)
    return TrainData(
        loader=_global_loader(loader, dataset, min(batch_size, num_samples)), order=None, num_samples=num_samples,
        batch_size=min(batch_size, num_samples),
    )  # fmt: skip


class EndlessStream(IterableDataset[Any]):
    """A stream without a length, begun again whenever it ends, as the plain Trainer does until `max_steps`."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        epoch = 0
        while True:
            if callable(getattr(self._dataset, "set_epoch", None)):
                self._dataset.set_epoch(epoch)
            is_empty = True
            for sample in self._dataset:
                is_empty = False
                yield sample
            if is_empty:
                return
            epoch += 1
