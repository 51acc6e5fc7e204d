"""Iterable data sets: dealt out by position, read forward once an epoch, the same for any number of tasks."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, IterableDataset

from pliant.train.data.feed import Feed, open_feed
from pliant.train.data.loading import LoadSettings
from pliant.train.data.sharding import Part, ShardingPlan, Worker
from pliant.train.errors import TrainingError


class Counted(IterableDataset[tuple[int, int, float]]):
    """Gives (epoch, k, a drawn number); counts how often it was opened and how much was read."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.epoch = -1
        self.num_opened = 0
        self.num_read = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[tuple[int, int, float]]:
        self.num_opened += 1
        epoch = self.epoch
        for k in range(self.length):
            self.num_read += 1
            yield epoch, k, random.random() + torch.rand(()).item()


class Shuffling(IterableDataset[int]):
    """Shuffles in a buffer of four."""

    def __iter__(self) -> Iterator[int]:
        buffer: list[int] = []
        for k in range(36):
            buffer.append(k)
            if len(buffer) == 4:
                yield buffer.pop(random.randrange(4))
        random.shuffle(buffer)
        yield from buffer


class Sharded:
    """Every virtual worker has a stream of its own: (v, 0), (v, 1), …"""

    def __init__(self, num_samples: int, shard_length: int) -> None:
        self.num_samples = num_samples
        self.shard_length = shard_length
        self.opened: list[int] = []

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[tuple[int, int, float]]:
        return ((-1, k, random.random()) for k in range(self.num_samples))

    def shard(self, virtual_worker: int, num_virtual_workers: int) -> Iterator[tuple[int, int, float]]:
        assert num_virtual_workers == 4
        self.opened.append(virtual_worker)
        return ((virtual_worker, k, random.random()) for k in range(self.shard_length))


def bound(data: Any, *, plan: dict[str, Any] | None = None, **options: Any) -> tuple[Feed, ShardingPlan]:
    feed = open_feed(LoadSettings(data=data, **{"collate_fn": list, **options}), seed=3)
    made = ShardingPlan(**{"num_samples": feed.num_samples, "batch_size": 12, "virtual_workers": 4, **(plan or {})})
    feed.bind(made)
    return feed, made


def step_of(feed: Feed, plan: ShardingPlan, step: int, owner: Worker) -> dict[int, list[Any]]:
    """Return the batches of a step by their first position."""
    feed.begin_step(step, owner, None)
    return {part.positions.start: feed.load(part) for part in plan.parts(step, owner)}


def epoch_of(feeds: list[Feed], plan: ShardingPlan, epoch: int, sizes: list[int]) -> list[Any]:
    """Return the samples of an epoch in the order of their positions."""
    samples: list[Any] = []
    for step, size in enumerate(sizes, epoch * plan.steps_per_epoch):
        found: dict[int, list[Any]] = {}
        for rank in range(size):
            found |= step_of(feeds[rank], plan, step, Worker(size, rank))
        samples += [sample for start in sorted(found) for sample in found[start]]
    return samples


# -- one stream -------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(1, 50), st.booleans(), st.data())
def test_every_position_comes_once_an_epoch_for_any_history_of_sizes(
    num_samples: int, whole_shares: bool, data: st.DataObject
) -> None:
    made = [bound(Counted(60), num_samples=num_samples, plan={"whole_shares": whole_shares}) for _ in range(4)]
    feeds, plan = [feed for feed, _ in made], made[0][1]
    for epoch in range(2):
        sizes = [data.draw(st.integers(1, 4)) for _ in range(plan.steps_per_epoch)]

        samples = epoch_of(feeds, plan, epoch, sizes)

        assert [sample[:2] for sample in samples] == [(epoch, k) for k in range(num_samples)]
        assert samples == epoch_of([bound(Counted(60), num_samples=num_samples)[0]], plan, epoch, [1] * len(sizes))


def test_a_stream_that_shuffles_in_a_buffer_is_the_same_in_every_task() -> None:
    feeds, plans = zip(*(bound(Shuffling(), num_samples=36) for _ in range(3)), strict=True)

    epochs = [epoch_of(list(feeds), plans[0], epoch, [3, 1, 2]) for epoch in range(2)]

    assert [sorted(epoch) for epoch in epochs] == [list(range(36))] * 2
    assert epochs[0] != epochs[1]
    assert epochs[0] == epoch_of([bound(Shuffling(), num_samples=36)[0]], plans[0], 0, [1, 1, 1])


def test_a_task_reads_the_stream_once_an_epoch_and_no_further_than_it_needs() -> None:
    data = Counted(36)
    feed, plan = bound(data, num_samples=36)

    for step, owner in enumerate([Worker(3, 0), Worker(1, 0), Worker(3, 1)]):
        step_of(feed, plan, step, owner)

    assert (data.num_opened, data.num_read) == (1, 24 + 6 + 3)


def test_a_step_that_is_computed_again_needs_no_second_reading_whatever_the_size() -> None:
    data = Counted(36)
    feed, plan = bound(data, num_samples=36)
    step_of(feed, plan, 0, Worker(1, 0))
    first = step_of(feed, plan, 1, Worker(2, 1))

    assert step_of(feed, plan, 1, Worker(2, 1)) == first
    assert data.num_read == 24
    assert [k for batch in step_of(feed, plan, 1, Worker(1, 0)).values() for _, k, _ in batch] == list(range(12, 24))
    assert (data.num_opened, data.num_read) == (1, 24)


def test_going_back_or_joining_late_reads_from_the_beginning_of_the_epoch() -> None:
    data = Counted(36)
    feed, plan = bound(data, num_samples=36)
    late = step_of(feed, plan, 5, Worker(1, 0))
    assert (data.num_opened, data.num_read) == (1, 36)

    step_of(feed, plan, 3, Worker(1, 0))

    assert (data.num_opened, data.num_read) == (2, 48)
    assert step_of(feed, plan, 5, Worker(1, 0)) == late
    assert data.num_opened == 2


def test_a_stream_that_ends_early_is_told_with_its_length() -> None:
    feed, plan = bound(Counted(20), num_samples=36)
    step_of(feed, plan, 0, Worker(1, 0))

    with pytest.raises(TrainingError, match=r"epoch 0 ended after 20 samples; an epoch has 36: .*num_samples=20"):
        step_of(feed, plan, 1, Worker(1, 0))


def test_an_error_of_the_stream_is_raised_as_it_is() -> None:
    class Broken(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            yield from range(5)
            raise OSError("the file is torn")

    feed, plan = bound(Broken(), num_samples=12)

    with pytest.raises(OSError, match="the file is torn"):
        step_of(feed, plan, 0, Worker(1, 0))


def test_a_data_loader_of_an_iterable_data_set_is_taken_over() -> None:
    loader = DataLoader(Counted(30), batch_size=12, drop_last=True, collate_fn=len)
    feed = open_feed(LoadSettings(data=loader, num_samples=30), seed=0)
    plan = ShardingPlan(num_samples=feed.num_samples, batch_size=12, virtual_workers=4)
    feed.bind(plan)

    assert (feed.batch_size, feed.num_samples) == (12, 24)
    assert feed.indices(Part(1, 0, range(12, 14), 12)) == [12, 13]
    sizes: dict[int, Any] = step_of(feed, plan, 0, Worker(2, 1))
    assert sizes == {6: 3, 9: 3}


def test_batches_of_a_stream_are_collated_by_torch_if_nothing_else_is_said() -> None:
    feed, plan = bound(Counted(12), num_samples=12, collate_fn=None)

    epochs, ks, drawn = step_of(feed, plan, 0, Worker(1, 0))[3]

    assert (epochs.tolist(), ks.tolist()) == ([0, 0, 0], [3, 4, 5])
    assert len(set(drawn.tolist())) == 3


# -- shards -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(1, 60), st.integers(1, 5), st.data())
def test_shards_are_used_once_an_epoch_without_a_gap_for_any_history_of_sizes(
    num_samples: int, accumulate: int, data: st.DataObject
) -> None:
    made = [bound(Sharded(num_samples, 60), plan={"accumulate": accumulate}) for _ in range(4)]
    feeds, plan = [feed for feed, _ in made], made[0][1]
    for epoch in range(2):
        sizes = [data.draw(st.integers(1, 4)) for _ in range(plan.steps_per_epoch)]

        samples = epoch_of(feeds, plan, epoch, sizes)

        assert len(samples) == num_samples
        for worker in range(4):
            places = [k for v, k, _ in samples if v == worker]
            assert places == list(range(len(places)))
        assert samples == epoch_of([bound(Sharded(num_samples, 60))[0]], plan, epoch, [1] * len(sizes))


def test_only_the_shards_of_a_tasks_virtual_workers_are_opened() -> None:
    data = Sharded(36, 9)
    feed, plan = bound(data)

    for step, owner in enumerate([Worker(2, 0), Worker(2, 0), Worker(1, 0)]):
        step_of(feed, plan, step, owner)

    assert data.opened == [0, 1, 2, 3]
    assert step_of(feed, plan, 2, Worker(2, 1)).keys() == {30, 33}
    assert data.opened == [0, 1, 2, 3]


def test_a_shard_that_ends_early_is_told() -> None:
    feed, plan = bound(Sharded(36, 8))
    step_of(feed, plan, 0, Worker(1, 0))
    step_of(feed, plan, 1, Worker(1, 0))

    message = r"shard\(0, 4\) of epoch 0 ended after 8 samples; this virtual worker computes 9 of the 36"
    with pytest.raises(TrainingError, match=message):
        step_of(feed, plan, 2, Worker(1, 0))


def test_shards_are_not_used_where_a_part_is_a_tasks_whole_share() -> None:
    data = Sharded(24, 6)
    feed, plan = bound(data, plan={"whole_shares": True})

    samples = epoch_of([feed, feed], plan, 0, [2, 1])

    assert [(v, k) for v, k, _ in samples] == [(-1, k) for k in range(24)]
    assert data.opened == []
