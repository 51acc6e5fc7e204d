"""Where the batches of a training come from: a map-style data set, an iterable one, or a torch DataLoader.

Law: the batch of a part depends on the seed, the epoch and the part, on nothing else: not on the number of tasks, of
worker processes, or on what was loaded before.
"""

from collections.abc import Iterable, Iterator, Sized
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data._utils.pin_memory import pin_memory as pinned

from pliant.train.data.fetcher import BatchRequest, Fetcher
from pliant.train.data.loader_process import LoaderProcesses
from pliant.train.data.loading import LoadSettings, take_loader_settings
from pliant.train.data.order import SampleOrder
from pliant.train.data.prefetch import Prefetcher
from pliant.train.data.sharding import Part, ShardingPlan, Worker
from pliant.train.data.stream import StreamFeed
from pliant.train.errors import TrainingError


class MapFeed:
    """Batches of a data set whose samples have indices; loaded in this process, or ahead by worker processes."""

    def __init__(
        self,
        fetcher: Fetcher,
        order: SampleOrder,
        *,
        batch_size: int | None,
        processes: LoaderProcesses | None,
        pin: bool,
    ) -> None:
        self.num_samples = order.num_samples
        """Samples of an epoch."""
        self.batch_size = batch_size
        """The global batch that a DataLoader was made with; None if there was no DataLoader."""
        self._fetcher = fetcher
        self._order = order
        self._processes = processes
        self._pin = pin
        self._plan: ShardingPlan | None = None
        self._prefetch: Prefetcher | None = None

    def bind(self, plan: ShardingPlan) -> None:
        """Take the plan of the training, once, and start worker processes if there are any.

        They see the data set as it is now; later changes of it do not reach them.
        """
        self._plan = plan
        if self._processes is not None:
            self._prefetch = Prefetcher(self._fetcher, self._processes, plan, self._request)

    def stop_at(self, step: int) -> None:
        """Set how many steps the whole training has, so that nothing is loaded for a later one."""
        if self._prefetch is not None:
            self._prefetch.stop_at(step)

    def begin_step(self, step: int, worker: Worker, next_worker: Worker | None) -> None:
        """Prepare for a step that this task computes as `worker`; after it, it may go on as `next_worker`."""
        if self._prefetch is not None:
            self._prefetch.begin_step(step, worker, next_worker)

    def indices(self, part: Part) -> list[int]:
        """Return the indices of a part's samples."""
        return self._request(part).indices

    def load(self, part: Part) -> Any:
        """Return the batch of a part. Parts are asked for in the plan's order; a step may be asked for again.

        The generators that data sets draw from are left in any state.
        """
        if self._prefetch is not None:
            return self._prefetch.load(part)
        batch = self._fetcher.fetch(self._request(part))
        return pinned(batch) if self._pin else batch  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """End worker processes. It may be called again."""
        if self._prefetch is not None:
            self._prefetch.close()

    def _request(self, part: Part) -> BatchRequest:
        assert self._plan is not None, "no plan was bound"
        epoch = part.step // self._plan.steps_per_epoch
        return BatchRequest(epoch, part.positions.start, self._order.indices(epoch, part.positions))


Feed = MapFeed | StreamFeed
"""Gives one task the batches of its parts."""


def open_feed(given: LoadSettings, seed: int) -> Feed:
    """Return the feed of a map-style data set, an `IterableDataset`, or a DataLoader of one.

    Any object that can be iterated again and again counts as an `IterableDataset`. The settings of a DataLoader are
    taken over; its `batch_size` is the global batch.

    Raises:
        TrainingError: this data cannot be distributed over tasks; the message says what to give instead.
    """
    is_loader = isinstance(given.data, DataLoader)
    settings = take_loader_settings(given) if is_loader else given
    settings.check()
    loader_batch_size = settings.batch_size if is_loader else None
    if _is_stream(settings.data):
        return _open_stream(settings, seed, loader_batch_size)
    return _open_map(settings, seed, loader_batch_size)


def _is_stream(data: Any) -> bool:
    if isinstance(data, IterableDataset):
        return True
    return isinstance(data, Iterable) and not hasattr(data, "__getitem__")


def _open_map(settings: LoadSettings, seed: int, loader_batch_size: int | None) -> MapFeed:
    length = len(settings.data) if isinstance(settings.data, Sized) else None
    if not hasattr(settings.data, "__getitem__") or (length is None and settings.order is None):
        raise TrainingError(
            f"the data set is a {type(settings.data).__name__}, which has no length or cannot be indexed; give a "
            f"map-style data set (__len__ and __getitem__), an IterableDataset, or a DataLoader of one"
        )
    if settings.num_samples is not None and settings.order is None:
        raise TrainingError(
            f"num_samples is {settings.num_samples} for a data set with {length} samples; it is for iterable data sets "
            f"and for order; to use some of the samples give a torch.utils.data.Subset"
        )
    order = SampleOrder(
        length=length,
        seed=seed,
        shuffle=settings.shuffle is not False,
        order=settings.order,
        num_samples=settings.num_samples,
        whole=settings.batch_size if settings.drop_last else None,
    )
    processes = None
    if settings.num_workers > 0:
        processes = LoaderProcesses(
            num_workers=settings.num_workers,
            prefetch_factor=settings.prefetch_factor or 2,
            pin_memory=settings.pin_memory,
            worker_init_fn=settings.worker_init_fn,
            timeout=settings.timeout,
            context=settings.context or "fork",
        )
    return MapFeed(
        Fetcher(settings.data, collate_fn=settings.collate_fn, seed=seed, repeats=order.repeats),
        order,
        batch_size=loader_batch_size,
        processes=processes,
        pin=settings.pin_memory and torch.accelerator.is_available(),
    )


def _open_stream(settings: LoadSettings, seed: int, loader_batch_size: int | None) -> StreamFeed:
    name = type(settings.data).__name__
    if isinstance(settings.data, Iterator):
        raise TrainingError(
            f"the data is a {name}, an iterator that can be read only once; give an object whose __iter__ begins anew"
        )
    if settings.num_workers > 0:
        raise TrainingError(
            f"num_workers is {settings.num_workers} and {name} is an iterable data set, which is read in the training "
            f"process; use num_workers=0, or a map-style data set"
        )
    if settings.shuffle or settings.order is not None:
        raise TrainingError(
            f"{name} is an iterable data set, whose order is its own: shuffle inside it (by the epoch that set_epoch "
            f"tells) instead of giving shuffle or order"
        )
    num_samples = settings.num_samples
    if num_samples is None and isinstance(settings.data, Sized):
        num_samples = len(settings.data)
    if num_samples is None:
        raise TrainingError(
            f"{name} is an iterable data set without a length; give num_samples, the samples of one epoch over all "
            f"tasks together"
        )
    if settings.drop_last and settings.batch_size is not None:
        num_samples = num_samples // settings.batch_size * settings.batch_size
    return StreamFeed(
        settings.data,
        num_samples=num_samples,
        batch_size=loader_batch_size,
        seed=seed,
        collate_fn=settings.collate_fn,
        pin=settings.pin_memory,
    )
