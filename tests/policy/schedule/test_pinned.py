"""A pinned workload keeps its slots, whoever else wants them, under every policy."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.schedule.world import World, job, line, pool

from pliant.core.job import JobId
from pliant.core.plan import Policy, PolicyName
from pliant.core.workload import Workload


def pinned(view: Workload) -> Workload:
    return replace(view, pinned=True)


@given(
    policy=st.sampled_from(PolicyName),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    others=st.lists(
        st.tuples(st.sampled_from([1, 5000, 10_000]), st.integers(1, 4), st.integers(0, 8)), min_size=1, max_size=4
    ),
    first=st.booleans(),
)
def test_nobody_takes_a_task_of_it(
    policy: PolicyName, sizes: list[int], others: list[tuple[int, int, int]], first: bool
) -> None:
    world = World(pool(8, 4), policy=Policy(name=policy, cooldown_s=0.0))
    start, kept = 0, []
    for number, size in enumerate(sizes, 1 if first else 100):
        if start + size <= 8:
            places = line(1, range(start, start + size))
            view = pinned(job(f"fixed-{number}", number, priority=1, bounds=(size, size), on=places))
            world.put(view)
            kept.append(view)
            start += size
    for number, (priority, least, more) in enumerate(others, 50):
        world.put(job(f"elastic-{number}", number, priority=priority, bounds=(least, least + more)))

    world.settle(20)

    assert [world.jobs[view.id].tasks for view in kept] == [view.tasks for view in kept]


@pytest.mark.parametrize("policy", list(PolicyName))
def test_it_keeps_its_place_while_it_has_no_task(policy: PolicyName) -> None:
    waiting = job("urgent", 1, priority=10_000, bounds=(6, 6))
    restarting = pinned(job("fixed", 2, bounds=(4, 4)))
    world = World(pool(8), [waiting, restarting], Policy(name=policy, cooldown_s=0.0))

    decision = world.decide()

    assert len(decision.grants[JobId("job-2")].start) == 4
    assert decision.reasons[JobId("job-1")] == (
        "waits: its minimum needs 6 slots, and minimums of jobs ahead of it hold 4 of 8 (fixed)"
    )
