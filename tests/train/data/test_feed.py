"""Batches from data sets with indices: once an epoch, the same whoever loads them, and DataLoaders taken over."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from pliant.train.data.feed import Feed, open_feed
from pliant.train.data.fetcher import fetches_batches, may_draw
from pliant.train.data.loading import LoadSettings
from pliant.train.data.sharding import Part, ShardingPlan, Worker
from pliant.train.errors import TrainingError


class Augmented(Dataset[dict[str, Any]]):
    """Draws from every generator that a data set may draw from."""

    def __init__(self, num_samples: int = 30) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, index: int) -> dict[str, Any]:
        drawn = torch.cat([torch.rand(2), torch.tensor([random.random(), numpy.random.random()])])
        return {"index": index, "nested": [drawn, (index * 2, str(index))]}


class Batched(Augmented):
    """Fetches a whole part at once."""

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        return [self[index] for index in indices]


def plan_of(feed: Feed, **changes: Any) -> ShardingPlan:
    return ShardingPlan(**{"num_samples": feed.num_samples, "batch_size": 12, "virtual_workers": 4, **changes})


def opened(data: Any, *, seed: int = 3, **options: Any) -> Feed:
    return open_feed(LoadSettings(data=data, **options), seed=seed)


def loaded(feed: Feed, plan: ShardingPlan, sizes: Iterable[int]) -> dict[tuple[int, int], Any]:
    """Load step after step as all workers of the size of that step; return the batches by step and first position."""
    found: dict[tuple[int, int], Any] = {}
    for step, size in enumerate(sizes):
        for rank in range(size):
            owner = Worker(size, rank)
            feed.begin_step(step, owner, None)
            for part in plan.parts(step, owner):
                found[step, part.positions.start] = feed.load(part)
    return found


def same(one: dict[tuple[int, int], Any], other: dict[tuple[int, int], Any]) -> None:
    assert one.keys() == other.keys()
    for key, batch in one.items():
        torch.testing.assert_close(batch["index"], other[key]["index"], rtol=0, atol=0)
        torch.testing.assert_close(batch["nested"][0], other[key]["nested"][0], rtol=0, atol=0)
        assert batch["nested"][1][1] == other[key]["nested"][1][1]


def bound(data: Any, **options: Any) -> tuple[Feed, ShardingPlan]:
    feed = opened(data, **options)
    plan = plan_of(feed)
    feed.bind(plan)
    return feed, plan


# -- once an epoch, and the same for everybody ------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(1, 60), st.booleans(), st.booleans(), st.data())
def test_every_sample_comes_once_an_epoch_for_any_history_of_sizes(
    num_samples: int, shuffle: bool, whole_shares: bool, data: st.DataObject
) -> None:
    feed = opened(list(range(num_samples)), shuffle=shuffle)
    plan = plan_of(feed, whole_shares=whole_shares, accumulate=2)
    feed.bind(plan)
    for epoch in range(2):
        used: list[int] = []
        for step in range(epoch * plan.steps_per_epoch, (epoch + 1) * plan.steps_per_epoch):
            size = data.draw(st.integers(1, 6), label=f"size at step {step}")
            for rank in range(size):
                feed.begin_step(step, Worker(size, rank), None)
                for part in plan.parts(step, Worker(size, rank)):
                    batch = feed.load(part).tolist()
                    assert batch == feed.indices(part)
                    used += batch
        assert sorted(used) == list(range(num_samples))


@pytest.mark.parametrize(
    "dataset", [Augmented(), Batched(), Subset(Augmented(), range(30)), Subset(Batched(), range(30))]
)
def test_augmentation_does_not_depend_on_the_number_of_tasks_or_on_what_was_drawn_before(dataset: Any) -> None:
    feed, plan = bound(dataset)
    alone = loaded(feed, plan, [1] * 6)

    torch.rand(7)
    random.random()
    again, plan = bound(dataset)

    same(loaded(again, plan, [3, 2, 4, 3, 1, 3]), alone)


def test_augmentation_differs_between_samples_epochs_and_seeds() -> None:
    one, plan = bound(Augmented(), shuffle=False)
    other, _ = bound(Augmented(), shuffle=False, seed=4)

    drawn = [
        value
        for feed in (one, other)
        for batch in loaded(feed, plan, [1] * 6).values()
        for value in batch["nested"][0].flatten().tolist()
    ]

    assert len(drawn) == 2 * 2 * 30 * 4
    assert len(set(drawn)) == len(drawn)


def test_a_sample_is_augmented_the_same_at_any_position_of_its_epoch() -> None:
    shuffled, plan = bound(Augmented(), shuffle=True)
    in_order, _ = bound(Augmented(), shuffle=False)

    def by_index(feed: Feed) -> dict[int, list[float]]:
        batches = loaded(feed, plan, [1] * 3).values()
        pairs = [pair for b in batches for pair in zip(b["index"].tolist(), b["nested"][0].tolist(), strict=True)]
        return dict(pairs)

    assert by_index(shuffled) == by_index(in_order)


def test_data_that_cannot_draw_costs_no_seeding() -> None:
    feed, plan = bound(Subset(TensorDataset(torch.arange(30)), range(30)))
    state = torch.get_rng_state()

    loaded(feed, plan, [1, 2])

    assert torch.equal(torch.get_rng_state(), state)


def test_what_may_draw_is_told_by_the_innermost_data_set() -> None:
    still = TensorDataset(torch.arange(4))

    class Odd(TensorDataset):
        pass

    cannot: list[Any] = [still, ConcatDataset([still, Subset(still, [1])]), StackDataset(a=still, b=still), [1, 2]]
    can: list[Any] = [Odd(torch.arange(4)), Subset(Augmented(), [1]), ConcatDataset([still, Augmented()])]
    assert [may_draw(dataset) for dataset in cannot] == [False] * 4
    assert [may_draw(dataset) for dataset in can] == [True] * 3
    assert may_draw(StackDataset(still, Augmented(4)))
    assert fetches_batches(Subset(Batched(), [1]))
    assert fetches_batches(StackDataset(Batched()))
    assert not fetches_batches(Subset(Augmented(), [1]))
    assert not fetches_batches(StackDataset(a=Augmented()))
    assert not fetches_batches(still)


def test_collate_function_makes_the_batch_and_may_draw() -> None:
    def mixed(samples: list[dict[str, Any]]) -> tuple[list[int], float]:
        return [sample["index"] for sample in samples], torch.rand(()).item()

    one, plan = bound(Augmented(), collate_fn=mixed)
    other, _ = bound(Augmented(), collate_fn=mixed)

    batches = loaded(one, plan, [1] * 3)

    assert batches == loaded(other, plan, [2, 4, 3])
    assert sorted(index for indices, _ in batches.values() for index in indices) == list(range(30))
    assert len({drawn for _, drawn in batches.values()}) == len(batches)


# -- orders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [list, tuple, numpy.array, torch.tensor, iter])
def test_order_says_which_samples_come_and_how_often(make: Callable[[list[int]], Any]) -> None:
    feed = opened(list(range(100, 110)), order=lambda epoch: make([epoch, 9, 9, 1]))
    plan = plan_of(feed, batch_size=3, virtual_workers=1)
    feed.bind(plan)

    assert feed.num_samples == 4
    batches = loaded(feed, plan, [1, 1, 1, 1])
    assert [batch.tolist() for batch in batches.values()] == [[100, 109, 109], [101], [101, 109, 109], [101]]


def test_a_sample_that_comes_twice_is_augmented_differently() -> None:
    feed, plan = bound(Augmented(), order=lambda epoch: [5] * 12)

    drawn = [v for batch in loaded(feed, plan, [1]).values() for v in batch["nested"][0].flatten().tolist()]

    assert len(set(drawn)) == 12 * 4


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (lambda epoch: range(20 + epoch), r"order\(1\) returned 21 indices and an epoch has 20"),
        (lambda epoch: [0, 30], r"order\(0\) returned indices from 0 to 30; the data set has those from 0 to 29"),
        (lambda epoch: [-1, 3], r"indices from -1 to 3"),
        (lambda epoch: [0.5], r"order\(0\) returned torch.float64 of shape \(1,\)"),
        (lambda epoch: [[1], [2]], r"of shape \(2, 1\)"),
        (lambda epoch: ["a"], r"order\(0\) did not return a sequence of indices"),
        (lambda epoch: None, r"order\(0\) did not return a sequence of indices"),
    ],
)
def test_wrong_orders_are_refused(order: Any, message: str) -> None:
    def train() -> None:
        feed, plan = bound(Augmented(), order=order)
        loaded(feed, plan, [1] * 4)

    with pytest.raises(TrainingError, match=message):
        train()


def test_the_next_epoch_can_be_asked_for_beside_the_present_one() -> None:
    calls: list[int] = []

    def order(epoch: int) -> list[int]:
        calls.append(epoch)
        return list(range(24))

    feed, plan = bound(Augmented(), order=order)
    here, ahead = Part(1, 0, range(12, 15), 12), Part(2, 0, range(3), 12)
    for part in (here, ahead, here, ahead):
        feed.indices(part)

    assert plan.steps_per_epoch == 2
    assert calls == [0, 0, 1]  # once for the length


# -- DataLoaders ----------------------------------------------------------------------------------------------------


def test_a_data_loader_brings_its_settings() -> None:
    loader = DataLoader(Augmented(), batch_size=12, shuffle=True, collate_fn=len)
    feed, plan = bound(loader)
    plain, _ = bound(Augmented(), collate_fn=len, shuffle=True)
    part = plan.parts(0, Worker(1, 0))[0]

    assert (feed.batch_size, feed.num_samples) == (12, 30)
    assert feed.indices(part) == plain.indices(part)
    assert feed.load(part) == 3


def test_shuffle_of_a_data_loader_is_kept() -> None:
    part = Part(0, 0, range(30), 30)

    in_order, _ = bound(DataLoader(Augmented(), batch_size=12))
    shuffled, _ = bound(DataLoader(Augmented(), batch_size=12, sampler=RandomSampler(Augmented())))

    assert in_order.indices(part) == list(range(30))
    assert shuffled.indices(part) != list(range(30))
    assert sorted(shuffled.indices(part)) == list(range(30))


def test_drop_last_leaves_out_other_samples_every_epoch() -> None:
    feed, plan = bound(DataLoader(Augmented(), batch_size=12, shuffle=True, drop_last=True))

    assert feed.num_samples == 24
    epochs = [
        sorted(i for s in (2 * e, 2 * e + 1) for p in plan.parts(s, Worker(1, 0)) for i in feed.indices(p))
        for e in (0, 1)
    ]
    assert [len(set(epoch)) for epoch in epochs] == [24, 24]
    assert epochs[0] != epochs[1]


def test_order_replaces_a_sampler_that_cannot_be_kept() -> None:
    weighted = DataLoader(Augmented(), batch_size=12, sampler=WeightedRandomSampler([1.0] * 30, 30))

    feed, _ = bound(weighted, order=lambda epoch: [epoch] * 25)

    assert (feed.num_samples, feed.batch_size) == (25, 12)
    assert feed.indices(Part(0, 0, range(2), 12)) == [0, 0]


def test_settings_beside_a_data_loader_may_repeat_but_not_contradict_it() -> None:
    loader = DataLoader(Augmented(), batch_size=12, shuffle=True)

    assert opened(loader, batch_size=12, shuffle=True).batch_size == 12
    with pytest.raises(TrainingError, match="batch_size is 12 there and 6 here; shuffle is True there and False here"):
        opened(loader, batch_size=6, shuffle=False)
    with pytest.raises(TrainingError, match="num_workers is 0 there and 2 here"):
        opened(loader, num_workers=2)


DATA = Augmented()


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (DataLoader(DATA, sampler=WeightedRandomSampler([1.0] * 30, 30)), "a WeightedRandomSampler.*order=callable"),
        (DataLoader(DATA, sampler=SubsetRandomSampler([1, 2])), "a SubsetRandomSampler.*order=callable"),
        (DataLoader(DATA, sampler=RandomSampler(DATA, replacement=True)), "a RandomSampler.*order=callable"),
        (DataLoader(DATA, sampler=RandomSampler(DATA, num_samples=7)), "a RandomSampler.*order=callable"),
        (DataLoader(DATA, sampler=SequentialSampler(range(3))), "a SequentialSampler.*order=callable"),
        (DataLoader(DATA, sampler=DistributedSampler(DATA, 2, 0)), "a DistributedSampler; Pliant deals out"),
        (DataLoader(DATA, batch_size=None), "has a batch_sampler, or batch_size=None"),
        (
            DataLoader(DATA, batch_sampler=BatchSampler(SequentialSampler(DATA), 4, False)),
            "has a batch_sampler, or batch_size=None",
        ),
    ],
)
def test_samplers_that_cannot_be_kept_are_refused_with_what_to_give_instead(loader: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        opened(loader)


# -- refusals -------------------------------------------------------------------------------------------------------


class Endless(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(10))


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (3, {}, "is a int, which has no length or cannot be indexed"),
        (Augmented(), {"num_samples": 5}, "num_samples is 5 for a data set with 30 samples"),
        (Augmented(), {"num_workers": -1}, "num_workers is -1"),
        (Augmented(), {"prefetch_factor": 2}, "prefetch_factor is 2 with num_workers=0"),
        (Augmented(), {"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor is 0"),
        (Augmented(), {"shuffle": True, "order": range}, "both order and shuffle=True"),
        (Endless(), {"num_samples": 5, "num_workers": 1}, "num_workers is 1 and Endless is an iterable data set"),
        (Endless(), {"num_samples": 5, "shuffle": True}, "Endless is an iterable data set, whose order is its own"),
        (Endless(), {}, "Endless is an iterable data set without a length; give num_samples"),
        (iter([1, 2]), {"num_samples": 2}, "a list_iterator, an iterator that can be read only once"),
        (DataLoader(Endless(), num_workers=1), {"num_samples": 5}, "num_workers is 1 and Endless"),
    ],
)
def test_what_cannot_be_dealt_out_is_refused(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        opened(data, **options)
