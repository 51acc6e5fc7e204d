"""Buffers of a lost generation are used again once nothing can write to them, and not before."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pliant.train.group.collectives import Group
from pliant.train.sum import tree
from pliant.train.sum.buckets import BucketLayout
from pliant.train.sum.exchange import Exchange

TOTAL = tree.global_sum(5, 3)


def group_of_three(number: int) -> Group:
    """Return one of which nothing is connected."""
    return Group(number=number, rank=0, size=3, backend=None)


def end(group: Group) -> None:
    """Say that the group was dropped, and all its operations are over."""
    ended: Any = SimpleNamespace(has_ended=True)
    group.dropped = ended


@pytest.fixture
def exchange() -> Exchange:
    parameters = [torch.nn.Parameter(torch.zeros(100, 7)), torch.nn.Parameter(torch.zeros(5))]
    return Exchange(BucketLayout(parameters, num_tail=3, bytes_at_most=400))


def memory_of(exchange: Exchange) -> list[int]:
    return [buffer.data_ptr() for buffers in exchange.buffer_sets for buffer in buffers.buffers]


def test_of_a_generation_that_has_ended_they_are(exchange: Exchange) -> None:
    lost = group_of_three(1)
    exchange.begin(lost, TOTAL, 2)
    before = memory_of(exchange)

    exchange.forget()
    assert memory_of(exchange) == []
    exchange.forget()  # as a second loss before the next step does
    end(lost)
    exchange.begin(group_of_three(2), TOTAL, 2)

    assert memory_of(exchange) == before


def test_of_one_whose_operations_go_on_they_are_not(exchange: Exchange) -> None:
    lost = group_of_three(1)
    exchange.begin(lost, TOTAL, 2)
    kept = [buffer for buffers in exchange.buffer_sets for buffer in buffers.buffers]

    exchange.forget()
    exchange.begin(group_of_three(2), TOTAL, 2)
    end(lost)
    exchange.forget()
    exchange.begin(group_of_three(3), TOTAL, 2)

    assert not {buffer.data_ptr() for buffer in kept} & set(memory_of(exchange))


def test_at_the_end_none_is_kept(exchange: Exchange) -> None:
    lost = group_of_three(1)
    exchange.begin(lost, TOTAL, 2)

    exchange.close()
    end(lost)
    exchange.begin(Group(number=2, rank=0, size=1, backend=None), None, 1)

    assert exchange.buffer_sets == []
