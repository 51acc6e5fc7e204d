"""What queues are entitled to where resource groups overlap: examples, and the laws of max-min fairness."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.policy.schedule.entitle import QueueDemand, entitle

Nodes = Sequence[tuple[int, Sequence[int]]]
"""Slots of every node, and how many of them each group has."""


def capacity(nodes: Nodes, groups: frozenset[int]) -> int:
    return sum(min(size, sum(has[group] for group in groups)) for size, has in nodes)


def share(nodes: Nodes, *demands: tuple[int, int, int, int]) -> list[int]:
    return entitle([QueueDemand(*one) for one in demands], lambda groups: capacity(nodes, groups))


@pytest.mark.parametrize(
    ("nodes", "demands", "found"),
    [
        ([(8, (8,))], [(1, 0, 9, 0), (1, 0, 9, 0)], [4, 4]),
        ([(8, (8,))], [(1, 0, 9, 0), (3, 0, 9, 0)], [2, 6]),
        ([(8, (8,))], [(1, 0, 9, 0), (1, 0, 2, 0), (2, 0, 9, 0)], [2, 2, 4]),
        ([(8, (8,))], [(1, 5, 9, 0), (9, 0, 9, 0)], [5, 3]),
        ([(8, (8,))], [(1, 0, 3, 0), (1, 0, 3, 0)], [3, 3]),
        ([(8, (8,))], [(1, 0, 9, 0)] * 3, [3, 3, 2]),
        ([(4, (4, 0)), (4, (4, 4))], [(1, 0, 9, 0), (1, 0, 9, 1)], [4, 4]),
        ([(4, (4, 0)), (4, (4, 4))], [(1, 0, 9, 0), (1, 0, 2, 1)], [6, 2]),
        pytest.param([(4, (4, 0)), (4, (4, 4))], [(1, 0, 9, 0), (3, 0, 9, 1)], [4, 4], id="the example of entitle"),
        ([(2, (2, 0)), (6, (6, 6))], [(1, 0, 9, 0), (1, 0, 9, 1)], [4, 4]),
        ([(4, (3, 3))], [(1, 0, 9, 0), (1, 0, 9, 1)], [2, 2]),
        ([(4, (3, 1))], [(1, 0, 9, 0), (5, 0, 9, 1)], [3, 1]),
        ([(4, (4, 0)), (2, (0, 2))], [(1, 0, 9, 0), (1, 0, 9, 1), (1, 0, 9, 0)], [2, 2, 2]),
        pytest.param(
            [(1, (1, 0)), (1, (1, 0)), (4, (2, 2)), (4, (2, 2))],
            [(1, 0, 1, 1), (4, 0, 2, 0), (7, 0, 4, 1), (1, 0, 1, 0), (7, 0, 4, 0)],
            [1, 2, 3, 1, 3],
            id="rounding gives a group no more than it has",
        ),
    ],
)
def test_shares_are_in_the_ratio_of_weights_as_far_as_groups_allow(
    nodes: Nodes, demands: list[tuple[int, int, int, int]], found: list[int]
) -> None:
    assert share(nodes, *demands) == found


POOLS = st.integers(1, 3).flatmap(
    lambda groups: st.tuples(
        st.lists(
            st.tuples(st.integers(1, 8), st.lists(st.integers(0, 8), min_size=groups, max_size=groups)),
            min_size=1,
            max_size=4,
        ),
        st.lists(
            st.tuples(st.integers(1, 9), st.just(0), st.integers(0, 20), st.integers(0, groups - 1)),
            min_size=1,
            max_size=5,
        ),
    )
)


@settings(max_examples=300)
@given(pool=POOLS)
def test_no_set_of_groups_gives_more_than_it_has_and_nothing_wanted_is_left(
    pool: tuple[Nodes, list[tuple[int, int, int, int]]],
) -> None:
    nodes, demands = pool
    groups = range(len(nodes[0][1]))
    found = share(nodes, *demands)

    room = {
        chosen: capacity(nodes, chosen) - sum(n for n, one in zip(found, demands, strict=True) if one[3] in chosen)
        for size in range(1, len(groups) + 1)
        for chosen in map(frozenset, combinations(groups, size))
    }
    assert min(room.values()) >= 0
    for num, (_, low, high, group) in zip(found, demands, strict=True):
        assert low <= num <= high
        assert num == high or any(left == 0 for chosen, left in room.items() if group in chosen)


@settings(max_examples=300)
@given(pool=POOLS)
def test_of_two_queues_of_one_group_none_has_less_per_weight_than_the_other_unless_it_wants_no_more(
    pool: tuple[Nodes, list[tuple[int, int, int, int]]],
) -> None:
    nodes, demands = pool
    found = share(nodes, *demands)

    for (a, one), (b, other) in combinations(zip(found, demands, strict=True), 2):
        if one[3] == other[3] and a < one[2] and b < other[2]:
            assert abs(Fraction(a, one[0]) - Fraction(b, other[0])) < Fraction(1, one[0]) + Fraction(1, other[0])


@settings(max_examples=200)
@given(pool=POOLS, who=st.integers(0, 4))
def test_who_wants_less_takes_nothing_from_others(
    pool: tuple[Nodes, list[tuple[int, int, int, int]]], who: int
) -> None:
    nodes, demands = pool
    who %= len(demands)
    before = share(nodes, *demands)
    weight, low, high, group = demands[who]
    demands[who] = (weight, low, high // 2, group)

    after = share(nodes, *demands)

    same_group = [i for i, one in enumerate(demands) if i != who and one[3] == group]
    assert sum(after[i] for i in same_group) >= sum(before[i] for i in same_group) - len(same_group)
