"""Where the slots of a decision stand: the examples of `place` and `free_slots`, and how a node is chosen."""

import pytest
from tests.policy.schedule.queued import queue
from tests.policy.schedule.world import job, line, pool

from pliant.core.plan import Snapshot
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
