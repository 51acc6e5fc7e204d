"""Where the batches of a training come from: a map-style data set, an iterable one, or a torch DataLoader.

Law: the batch of a part depends on the seed, the epoch and the part, on nothing else: not on the number of tasks, of
worker processes, or on what was loaded before.
"""

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Protocol

import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data._utils.pin_memory import pin_memory as pinned

from pliant.train.data.fetcher import Collate, Fetcher, Request
from pliant.train.data.order import Order, Positions
from pliant.train.data.prefetch import Prefetch, Processes
from pliant.train.data.sharding import Owner, Part, Plan
from pliant.train.data.source import Source, take_over
from pliant.train.data.stream import StreamFeed
from pliant.train.errors import TrainingError

__all__ = ["Collate", "Feed", "Order", "open_feed"]


class Feed(Protocol):
    """Gives one task the batches of its parts."""

    @property
    def num_samples(self) -> int:
        """Samples of an epoch."""
        ...

    @property
    def batch_size(self) -> int | None:
        """The global batch that a DataLoader was made with; None if there was no DataLoader."""
        ...

    def bind(self, plan: Plan) -> None:
        """Take the plan of the training, once, and start worker processes if there are any.

        They see the data set as it is now; later changes of it do not reach them.
        """
        ...

    def stop_at(self, step: int) -> None:
        """Tell how many steps the whole training has, so that nothing is loaded for a later one."""
        ...

    def aim(self, step: int, owner: Owner, next_owner: Owner | None) -> None:
        """Say, before every step, that this task computes it as `owner`, and whom it may be soon after."""
        ...

    def indices(self, part: Part) -> list[int]:
        """Return the indices of a part's samples."""
        ...

    def load(self, part: Part) -> Any:
        """Return the batch of a part. Parts are asked for in the plan's order; a step may be asked for again."""
        ...

    def close(self) -> None:
        """End worker processes. It may be called again."""
        ...


def open_feed(  # noqa: PLR0913 (what torch's DataLoader takes, by the same names)
    data: Any,
    *,
    batch_size: int | None = None,
    seed: int,
    shuffle: bool | None = None,
    order: Order | None = None,
    collate_fn: Collate | None = None,
    num_workers: int = 0,
    prefetch_factor: int | None = None,
    pin_memory: bool = False,
    worker_init_fn: Callable[[int], None] | None = None,
    num_samples: int | None = None,
) -> Feed:
    """Return the feed of this data.

    Args:
        data: map-style data set, `IterableDataset` (or any object that can be iterated again and again), or a
            DataLoader: then its settings are taken over, and its `batch_size` is the global batch.
        shuffle: a new order every epoch; None means yes for a map-style data set, what a DataLoader says otherwise.
        order: called with an epoch, returns the indices in the order of their use, equally many for every epoch. It may
            repeat indices and leave some out. It must return the same in every task.
        num_samples: how many samples an epoch takes from an iterable data set; default: its length.

    Raises:
        TrainingError: this data cannot be dealt out like this; the message says what to give instead.
    """
    given = Source(
        data=data,
        batch_size=batch_size,
        shuffle=shuffle,
        order=order,
        num_samples=num_samples,
        collate_fn=collate_fn,
        num_workers=num_workers,
        prefetch_factor=prefetch_factor,
        pin_memory=pin_memory,
        worker_init_fn=worker_init_fn,
    )
    is_loader = isinstance(data, DataLoader)
    source = (take_over(given) if is_loader else given).checked()
    told = source.batch_size if is_loader else None
    if _is_stream(source.data):
        return _open_stream(source, seed, told)
    return _open_map(source, seed, told)


class MapFeed:
    """Batches of a data set whose samples have indices; loaded in this process, or ahead by worker processes."""

    def __init__(
        self, fetcher: Fetcher, positions: Positions, *, batch_size: int | None, processes: Processes | None, pin: bool
    ) -> None:
        self.num_samples = positions.num_samples
        self.batch_size = batch_size
        self._fetcher = fetcher
        self._positions = positions
        self._processes = processes
        self._pin = pin
        self._plan: Plan | None = None
        self._prefetch: Prefetch | None = None

    def bind(self, plan: Plan) -> None:
        """Take the plan of the training, once, and start the worker processes."""
        self._plan = plan
        if self._processes is not None:
            self._prefetch = Prefetch(self._fetcher, self._processes, plan, self._request)

    def stop_at(self, step: int) -> None:
        """Load nothing of this step or a later one."""
        if self._prefetch is not None:
            self._prefetch.stop_at(step)

    def aim(self, step: int, owner: Owner, next_owner: Owner | None) -> None:
        """Say whose parts are needed from this step on."""
        if self._prefetch is not None:
            self._prefetch.aim(step, owner, next_owner)

    def indices(self, part: Part) -> list[int]:
        """Return the indices of a part's samples."""
        return self._request(part).indices

    def load(self, part: Part) -> Any:
        """Return the batch of a part; the generators that data sets draw from are left in any state."""
        if self._prefetch is not None:
            return self._prefetch.load(part)
        batch = self._fetcher.fetch(self._request(part))
        return pinned(batch) if self._pin else batch  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """End the worker processes."""
        if self._prefetch is not None:
            self._prefetch.close()

    def _request(self, part: Part) -> Request:
        assert self._plan is not None, "no plan was bound"
        epoch = part.step // self._plan.steps_per_epoch
        return Request(epoch, part.positions.start, self._positions.indices(epoch, part.positions))


def _is_stream(data: Any) -> bool:
    if isinstance(data, IterableDataset):
        return True
    return isinstance(data, Iterable) and not hasattr(data, "__getitem__")


def _open_map(source: Source, seed: int, told: int | None) -> MapFeed:
    length = len(source.data) if isinstance(source.data, Sized) else None
    if not hasattr(source.data, "__getitem__") or (length is None and source.order is None):
        raise TrainingError(
            f"the data set is a {type(source.data).__name__}, which has no length or cannot be indexed; give a "
            f"map-style data set (__len__ and __getitem__), an IterableDataset, or a DataLoader of one"
        )
    if source.num_samples is not None and source.order is None:
        raise TrainingError(
            f"num_samples is {source.num_samples} for a data set with {length} samples; it is for iterable data sets "
            f"and for order; to use some of the samples give a torch.utils.data.Subset"
        )
    positions = Positions(
        length=length,
        seed=seed,
        shuffle=source.shuffle is not False,
        order=source.order,
        num_samples=source.num_samples,
        whole=source.batch_size if source.drop_last else None,
    )
    processes = None
    if source.num_workers > 0:
        processes = Processes(
            num_workers=source.num_workers,
            prefetch_factor=source.prefetch_factor or 2,
            pin_memory=source.pin_memory,
            worker_init_fn=source.worker_init_fn,
            timeout=source.timeout,
            context=source.context or "fork",
        )
    return MapFeed(
        Fetcher(source.data, collate_fn=source.collate_fn, seed=seed, repeats=positions.repeats),
        positions,
        batch_size=told,
        processes=processes,
        pin=source.pin_memory and torch.accelerator.is_available(),
    )


def _open_stream(source: Source, seed: int, told: int | None) -> StreamFeed:
    name = type(source.data).__name__
    if isinstance(source.data, Iterator):
        raise TrainingError(
            f"the data is a {name}, an iterator that can be read only once; give an object whose __iter__ begins anew"
        )
    if source.num_workers > 0:
        raise TrainingError(
            f"num_workers is {source.num_workers} and {name} is an iterable data set, which is read in the training "
            f"process; use num_workers=0, or a map-style data set"
        )
    if source.shuffle or source.order is not None:
        raise TrainingError(
            f"{name} is an iterable data set, whose order is its own: shuffle inside it (by the epoch that set_epoch "
            f"tells) instead of giving shuffle or order"
        )
    num_samples = source.num_samples
    if num_samples is None and isinstance(source.data, Sized):
        num_samples = len(source.data)
    if num_samples is None:
        raise TrainingError(
            f"{name} is an iterable data set without a length; give num_samples, the samples of one epoch over all "
            f"tasks together"
        )
    if source.drop_last and source.batch_size is not None:
        num_samples = num_samples // source.batch_size * source.batch_size
    return StreamFeed(
        source.data,
        num_samples=num_samples,
        batch_size=told,
        seed=seed,
        collate_fn=source.collate_fn,
        pin=source.pin_memory,
    )
