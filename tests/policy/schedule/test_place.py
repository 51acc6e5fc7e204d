"""Where the slots of a decision stand: the examples of `place` and `free_slots`, and how a node is chosen."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.schedule.queued import queue
from tests.policy.schedule.world import job, line, pool

from pliant.core.plan import NodeView, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.free_slots import FreeSlots, NodeIndex
from pliant.policy.schedule.place import reserve, reserve_places
from pliant.policy.schedule.pool import SlotPool, lay_out


def laid_out(*jobs: Workload) -> tuple[SlotPool, list[Candidate]]:
    return lay_out(Snapshot(nodes=pool(4, 4), workloads=jobs, queues=(queue("default"),)))


def amounts(pool: SlotPool) -> list[list[int]]:
    return [pool.idle.amounts, pool.future_idle.amounts, pool.grantable.amounts]


@pytest.mark.parametrize(
    ("is_free", "expected"),
    [(True, [[0, 2], [1, 2], [3, 2]]), (False, [[0, 4], [-1, 4], [1, 4]])],
    ids=["where it is free", "where a surplus stands"],
)
def test_the_example_of_place(is_free: bool, expected: list[list[int]]) -> None:
    a = job("a", 1, on=line(1, range(3)))
    b = job("b", 2, bounds=(2, 4), on=line(1, [3]), leaving=1)
    slots, (_, candidate) = laid_out(a, b)
    assert amounts(slots) == [[0, 4], [1, 4], [4, 4]]
    slots.grantable.add(0, 0, -1)
    assert amounts(slots) == [[0, 4], [1, 4], [3, 4]], "a's minimum counts on a task"

    if is_free:
        assert reserve_places(slots, candidate, slots.idle, 2) == 2
    else:
        reserve(slots, candidate, 0, 2)

    assert amounts(slots) == expected
    assert candidate.awaited_nodes == (set() if is_free else {0})


def test_the_example_of_free_slots() -> None:
    free = FreeSlots([4], [[3], [3]])
    assert [free.of(group).amounts for group in (0, 1)] == [[3], [3]]

    free.add(0, 0, -2)

    assert [free.of(group).amounts for group in (0, 1)] == [[1], [2]]


@pytest.mark.parametrize(
    ("wanted", "least", "excluded", "found"),
    [
        (2, 1, set(), 1),
        (3, 1, set(), 2),
        (9, 1, set(), 2),
        (9, 6, set(), None),
        (3, 1, {2}, 1),
        (1, 1, {0, 1, 2}, None),
    ],
)
def test_the_best_node_just_covers_what_is_wanted_else_it_has_most(
    wanted: int, least: int, excluded: set[int], found: int | None
) -> None:
    assert NodeIndex([0, 2, 5]).best(wanted, least, excluded) == found


def stands(node: NodeView, zone: str, rack: str) -> NodeView:
    return replace(node, labels={name: value for name, value in (("zone", zone), ("rack", rack)) if value})


@pytest.mark.parametrize(
    ("size_of_own_rack", "expected"),
    [
        (2, {0: 4, 3: 2}),
        (1, {0: 4, 3: 1, 2: 1}),
        (0, {0: 4, 2: 2}),
    ],
    ids=[
        "the rest fits in the same rack",
        "what is left of the rack, then the zone",
        "the rack is full, the zone is not",
    ],
)
def test_tasks_beyond_one_node_are_placed_near_it(size_of_own_rack: int, expected: dict[int, int]) -> None:
    a, b, c, d = pool(4, 8, 4, size_of_own_rack)
    nodes = (stands(a, "z1", "r1"), stands(b, "z2", "r1"), stands(c, "z1", "r2"), stands(d, "z1", "r1"))
    one = job("one", 1, bounds=(6, 6), on=line(1, range(4)))
    slots, (candidate,) = lay_out(Snapshot(nodes=nodes, workloads=(one,), queues=(queue("default"),)))

    assert reserve_places(slots, candidate, slots.future_idle, 2) == 2
    assert {0: 4, **candidate.reservations} == expected


def test_a_rack_is_one_of_its_zone_and_hosts_without_labels_are_near_nobody() -> None:
    a, b, c = pool(1, 1, 1)
    nodes = (stands(a, "z1", "r1"), stands(b, "z2", "r1"), c)
    slots, _ = lay_out(Snapshot(nodes=nodes, workloads=(), queues=(queue("default"),)))

    assert [list(map(list, slots.neighbours_of(node))) for node in range(3)] == [[[0], [0]], [[1], [1]], []]


@given(
    amounts=st.lists(st.integers(-2, 6), min_size=1, max_size=8),
    size=st.integers(1, 3),
    num=st.integers(1, 4),
    excluded=st.sets(st.integers(0, 7)),
)
def test_the_best_of_all_nodes_is_the_best(amounts: list[int], size: int, num: int, excluded: set[int]) -> None:
    index = NodeIndex(amounts)
    best = index.best(num * size, size, excluded)
    found = index.best_of(range(len(amounts)), num * size, size, excluded)
    assert (best is None) == (found is None)
    assert best is None or found is None or amounts[best] == amounts[found]
