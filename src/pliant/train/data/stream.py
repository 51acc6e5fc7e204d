"""Distributes an iterable data set over tasks: its k-th sample is position k of the epoch.

Every task reads the stream once an epoch, forward, and skips the samples of other tasks. A stream cannot be read
backwards, so a task that joins inside an epoch reads it from the beginning. The samples of the present global batch
are kept, so that a step can be computed again without reading the stream again, whatever the number of tasks is then.

A data set with `shard(virtual_worker, num_virtual_workers)` gives every virtual worker a stream of its own: then a task
reads only what it uses.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import default_collate
from torch.utils.data._utils.pin_memory import pin_memory

from pliant.train.data.fetcher import Collate, seed_of_stream
from pliant.train.data.sharding import Part, ShardingPlan, Worker, cut
from pliant.train.errors import TrainingError
from pliant.train.seeds import seed_loading

_WHOLE = -1


class StreamReader:
    """One pass over a stream, forward.

    Args:
        open_it: returns the stream; called once.
        seed: of the random numbers that are drawn for the k-th sample, or at the opening.
    """

    def __init__(self, open_it: Callable[[], Iterable[Any]], seed: Callable[..., int]) -> None:
        seed_loading(seed())
        self._samples: Iterator[Any] = iter(open_it())
        self._seed = seed
        self._kept: dict[int, Any] = {}
        self.num_read = 0

    def has(self, places: range) -> bool:
        """Return whether these samples are kept or yet to come."""
        return places.start >= self.num_read or all(
            place in self._kept for place in range(places.start, min(places.stop, self.num_read))
        )

    def take(self, places: range, *, keep_from: int) -> list[Any] | None:
        """Return these samples, None if the stream ends before; keep those from `keep_from` on.

        Every sample is read with its own seed, also one that is skipped: so data sets that shuffle in a buffer have the
        same buffer in every task.
        """
        while self.num_read < places.stop:
            seed_loading(self._seed(self.num_read))
            try:
                sample = next(self._samples)
            except StopIteration:
                return None
            if self.num_read >= keep_from:
                self._kept[self.num_read] = sample
            self.num_read += 1
        return [self._kept[place] for place in places]

    def forget(self, before: int) -> None:
        """Drop the kept samples before this place."""
        for place in [place for place in self._kept if place < before]:
            del self._kept[place]


class StreamFeed:
    """Loads parts of an iterable data set, in the training process.

    Samples that are kept for a step that is computed again are given to `collate_fn` a second time, so it must not
    change them in place.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        num_samples: int,
        batch_size: int | None,
        seed: int,
        collate_fn: Collate | None,
        pin: bool,
    ) -> None:
        self.num_samples = num_samples
        self.batch_size = batch_size
        self._dataset = dataset
        self._seed = seed
        self._collate = collate_fn or default_collate
        self._pin = pin and torch.accelerator.is_available()
        self._sharded = False
        self._plan: ShardingPlan | None = None
        self._epoch: int | None = None
        self._readers: dict[int, StreamReader] = {}

    def bind(self, plan: ShardingPlan) -> None:
        """Take the plan of the training."""
        self._plan = plan
        # With whole shares a virtual worker is a task, and the shards would depend on the number of tasks.
        self._sharded = callable(getattr(self._dataset, "shard", None)) and not plan.whole_shares

    def stop_at(self, step: int) -> None:
        """Do nothing: a stream loads nothing ahead."""

    def begin_step(self, step: int, worker: Worker, next_worker: Worker | None) -> None:  # noqa: ARG002 (of all feeds)
        """Drop the samples of the steps before this one, and the shards of other tasks."""
        plan = self._bound
        if step // plan.steps_per_epoch != self._epoch:
            self._readers.clear()
            self._epoch = step // plan.steps_per_epoch
        if self._sharded:
            mine = {part.virtual_worker for part in plan.parts(step, worker)}
            self._readers = {shard: reader for shard, reader in self._readers.items() if shard in mine}
        for shard, reader in self._readers.items():
            reader.forget(self._begin_of(step, shard))

    def indices(self, part: Part) -> list[int]:
        """Return the positions of the part's samples; a stream has no other name for them."""
        return list(part.positions)

    def load(self, part: Part) -> Any:
        """Return the batch of a part.

        Raises:
            TrainingError: the stream has fewer samples than it should.
        """
        worker = part.virtual_worker if self._sharded else _WHOLE
        begin = self._begin_of(part.step, worker)
        if self._sharded:
            skipped = part.positions.start - self._positions_of(part.step, worker).start
            places = range(begin + skipped, begin + skipped + len(part.positions))
        else:
            places = part.positions
        reader = self._readers.get(worker)
        if reader is None or not reader.has(places):
            reader = self._readers[worker] = self._open(part.step // self._bound.steps_per_epoch, worker)
        samples = reader.take(places, keep_from=begin)
        if samples is None:
            raise TrainingError(self._too_short(worker, reader.num_read))
        if self._collate is not default_collate:
            seed_loading(self._seed_of(part.step // self._bound.steps_per_epoch, worker)(places.start, 1))
        batch = self._collate(samples)
        return pin_memory(batch) if self._pin else batch  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Let go of the streams."""
        self._readers.clear()

    @property
    def _bound(self) -> ShardingPlan:
        assert self._plan is not None, "no plan was bound"
        return self._plan

    def _positions_of(self, step: int, worker: int) -> range:
        return cut(self._bound.batch(step), self._bound.num_parts(step, 1), worker)

    def _begin_of(self, step: int, worker: int) -> int:
        """Return the first place of this step in the stream: all steps of the epoch before it were whole."""
        plan = self._bound
        if worker == _WHOLE:
            return plan.batch(step).start
        in_epoch = step % plan.steps_per_epoch
        return in_epoch * len(cut(range(plan.batch_size), plan.virtual_workers, worker))

    def _seed_of(self, epoch: int, worker: int) -> Callable[..., int]:
        def seed(*place: int) -> int:
            return seed_of_stream(self._seed, epoch, worker, *place)

        return seed

    def _open(self, epoch: int, worker: int) -> StreamReader:
        def open_it() -> Iterable[Any]:
            if callable(getattr(self._dataset, "set_epoch", None)):
                self._dataset.set_epoch(epoch)
            if worker == _WHOLE:
                return self._dataset  # type: ignore[no-any-return]
            return self._dataset.shard(worker, self._bound.virtual_workers)  # type: ignore[no-any-return]

        return StreamReader(open_it, self._seed_of(epoch, worker))

    def _too_short(self, worker: int, num_read: int) -> str:
        if worker == _WHOLE:
            return (
                f"the data set's stream of epoch {self._epoch} ended after {num_read} samples; an epoch has "
                f"{self.num_samples}: give the Run num_samples={num_read}, or a stream that is as long as it says"
            )
        plan = self._bound
        needed = sum(
            len(self._positions_of(s, worker)) for s in range(plan.steps_per_epoch) if worker < plan.num_parts(s, 1)
        )
        return (
            f"shard({worker}, {plan.virtual_workers}) of epoch {self._epoch} ended after {num_read} samples; this "
            f"virtual worker computes {needed} of the {self.num_samples} of an epoch: lower num_samples or make the "
            f"shards even"
        )
