"""From Lightning's train dataloader to what a `Run` takes: whose batches, how many, in which order.

The global batch is the DataLoader's batch_size times `accumulate_grad_batches`. Example: batches of 16 over 100 samples
with accumulate_grad_batches=2 and limit_train_batches=5 are 80 samples an epoch, in global batches of 32, 32 and 16.
"""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler

from pliant.integrations.elastic_lightning.package import Package
from pliant.train import TrainingError
from pliant.train.data.order import OrderFunction
from pliant.train.seeds import mix


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainBatches:
    """What is trained on in an epoch."""

    loader: Any
    """A DataLoader whose batch_size is the global batch."""
    part_size: int
    """Samples that fit into memory at once: the batch_size that the person gave."""
    num_samples: int
    order: OrderFunction | None
    """None: as the loader says."""

    @property
    def batch_size(self) -> int:
        return int(self.loader.batch_size)

    @property
    def num_steps(self) -> int:
        return -(-self.num_samples // self.batch_size)

    @property
    def num_streamed(self) -> int | None:
        """Samples of an iterable data set."""
        return self.num_samples if isinstance(self.loader.dataset, IterableDataset) else None

    def accumulate(self, virtual_workers: int) -> int:
        """Return in how many pieces each part must be computed, so that none is larger than the person's batches."""
        part = -(-self.batch_size // min(virtual_workers, self.batch_size))
        return -(-part // self.part_size)


def take_batches(package: Package, trainer: Any, loader: Any, *, accumulate: int, order: Any, seed: int) -> Any:
    """Return what a Trainer's train dataloader gives in an epoch.

    Raises:
        TrainingError: it is not one DataLoader with a batch size, or its length is not known.
    """
    if not isinstance(loader, DataLoader) or loader.batch_size is None:
        raise TrainingError(
            f"the train dataloader is a {type(loader).__name__}{' without batch_size' * isinstance(loader, DataLoader)}"
            f"; ElasticStrategy needs one torch DataLoader with a batch_size, as Pliant deals out the samples itself "
            f"(several data sets: one Dataset that returns samples of all)"
        )
    part_size = loader.batch_size
    num_drawn = _count(loader, order)
    length = float("inf") if num_drawn is None else _num_batches(num_drawn, part_size, loader.drop_last)
    parse = package.module("trainer.connectors.data_connector")._parse_num_batches
    stage = package.module("trainer.states").RunningStage.TRAINING
    num_batches = parse(stage, length, trainer.limit_train_batches)
    if num_batches == float("inf"):
        raise TrainingError(
            f"the train data set {type(loader.dataset).__name__} has no length: give it __len__, or give "
            f"Trainer(limit_train_batches=…) a number of batches"
        )
    num_samples = int(num_batches) * part_size
    if num_drawn is not None:
        num_samples = min(num_samples, num_drawn)
    if num_drawn is not None and num_samples < num_drawn and not isinstance(loader.dataset, IterableDataset):
        order = _first(num_samples, order or _draw(loader, num_drawn, seed))
    return TrainBatches(loader=_enlarge(loader, accumulate), part_size=part_size, num_samples=num_samples, order=order)


def _num_batches(num_samples: int, batch_size: int, drop_last: bool) -> int:
    return num_samples // batch_size if drop_last else -(-num_samples // batch_size)


def _count(loader: Any, order: OrderFunction | None) -> int | None:
    if order is not None:
        return len(list(order(0)))
    return len(loader.dataset) if isinstance(loader.dataset, Sized) else None


def _draw(loader: Any, num_samples: int, seed: int) -> OrderFunction:
    if type(loader.sampler) is SequentialSampler:
        return lambda _epoch: torch.arange(num_samples)
    if type(loader.sampler) is RandomSampler and not loader.sampler.replacement:
        return lambda epoch: torch.randperm(num_samples, generator=torch.Generator().manual_seed(mix(seed, epoch)))
    raise TrainingError(
        f"the DataLoader's sampler is a {type(loader.sampler).__name__} that not all tasks know the order of; give "
        f"ElasticStrategy(order=callable(epoch) -> sequence of indices), and it replaces the sampler"
    )


def _first(num_samples: int, order: OrderFunction) -> OrderFunction:
    return lambda epoch: list(order(epoch))[:num_samples]


def _enlarge(loader: Any, times: int) -> Any:
    """Return a DataLoader like this one, of batches that are `times` as large; it is never iterated."""
    streams = isinstance(loader.dataset, IterableDataset)
    return DataLoader(
        loader.dataset,
        batch_size=loader.batch_size * times,
        sampler=None if streams else loader.sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        prefetch_factor=loader.prefetch_factor if loader.num_workers else None,
    )
