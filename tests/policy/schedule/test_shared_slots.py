"""Workloads that hold parts of slots, by example: who shares a slot with whom, who moves, and who waits."""

from dataclasses import replace

from tests.policy.schedule.parts_world import PartsWorld, part, rooms_of
from tests.policy.schedule.world import job, line, pool

from pliant.core.job import JobId, NodeId
from pliant.core.plan import Plan, Policy, PolicyName, QueueRules, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.fold import num_slots_for
from pliant.policy.schedule.plan import plan

POLICY = Policy(cooldown_s=0.0)


def held(world: PartsWorld, number: int) -> list[tuple[str, int]]:
    """Return the slots of a job's tasks."""
    return sorted((task.node_id, task.slots[0]) for task in world.jobs[JobId(f"job-{number}")].tasks)


def settled(*jobs: Workload, nodes: tuple[int, ...] = (4,), policy: Policy = POLICY) -> tuple[PartsWorld, Plan]:
    world = PartsWorld(pool(*nodes), jobs, policy)
    return world, world.settle(20)[-1]


def test_tasks_are_packed_the_largest_first() -> None:
    assert num_slots_for([]) == 0
    assert num_slots_for([250] * 9) == 3
    assert num_slots_for([300, 700, 600, 400]) == 2
    assert num_slots_for([600, 600, 600]) == 3


def test_workloads_of_one_queue_share_a_slot_and_leave_the_others_to_a_training() -> None:
    world, _ = settled(
        part("digits", 1, 400, (1, 1)), part("shop", 2, 300, (2, 2)), job("train", 3, bounds=(1, 8)), nodes=(4,)
    )

    assert {*held(world, 1), *held(world, 2)} == {held(world, 1)[0]}
    assert len(held(world, 3)) == 3


def test_no_slot_is_shared_between_queues_or_beside_a_whole_task() -> None:
    digits, shop = part("digits", 1, 100, (1, 1), queue="a"), part("shop", 2, 100, (1, 1), queue="b")
    queues = (QueueRules(name="a"), QueueRules(name="b"))
    made = plan(Snapshot(nodes=pool(2), workloads=(digits, shop), queues=queues), POLICY, 0.0)

    starts = [made.grants[JobId(one)].start for one in ("job-1", "job-2")]
    assert [len(start) for start in starts] == [1, 1]
    assert starts[0] != starts[1]


def test_under_priority_only_equals_share_a_slot() -> None:
    world, _ = settled(
        part("digits", 1, 250, (1, 1)),
        part("shop", 2, 250, (1, 1), priority=9000),
        part("third", 3, 250, (1, 1), priority=9000),
        policy=Policy(name=PolicyName.PRIORITY, cooldown_s=0.0),
    )

    assert held(world, 2) == held(world, 3) != held(world, 1)


def test_a_newcomer_goes_where_there_is_room_for_it() -> None:
    world, _ = settled(part("digits", 1, 600, (2, 2), on=((1, 0), (1, 1))), part("shop", 2, 400, (2, 2)))

    assert held(world, 2) == [("node-1", 0), ("node-1", 1)]


def test_what_shrinks_leaves_the_emptiest_slot() -> None:
    digits = part("digits", 1, 250, (1, 1), on=((1, 0), (1, 0), (1, 1)))
    world, _ = settled(digits, part("shop", 2, 250, (1, 1), on=((1, 0),)))

    assert held(world, 1) == held(world, 2) == [("node-1", 0)]


def test_nobody_moves_as_long_as_nobody_else_needs_the_slot() -> None:
    digits, shop = part("digits", 1, 400, (1, 1), on=((1, 0),)), part("shop", 2, 400, (1, 1), on=((1, 1),))
    world, _ = settled(digits, shop, nodes=(2,))

    assert (held(world, 1), held(world, 2)) == ([("node-1", 0)], [("node-1", 1)])


def test_a_task_moves_when_a_training_needs_its_slot_and_starts_anew_at_once() -> None:
    digits, shop = part("digits", 1, 400, (1, 1), on=((1, 0),)), part("shop", 2, 400, (1, 1), on=((1, 1),))
    world = PartsWorld(pool(2), (digits, shop, job("train", 3, bounds=(1, 1))), POLICY)

    grant = world.decide().grants[JobId("job-2")]
    world.settle(20)

    assert grant.leave == ("job-2.1",)
    assert [placement.slots for placement in grant.start] == [(0,)]
    assert held(world, 1) == held(world, 2) == [("node-1", 0)]
    assert held(world, 3) == [("node-1", 1)]


def test_slots_are_emptied_for_a_minimum_that_fits_in_no_slot_as_they_are() -> None:
    digits, shop = part("digits", 1, 500, (1, 1), on=((1, 0),)), part("shop", 2, 500, (1, 1), on=((1, 1),))
    world, _ = settled(digits, shop, part("large", 3, 900, (1, 1)), nodes=(2,))

    assert held(world, 1) == held(world, 2)
    assert len(held(world, 3)) == 1


def test_only_as_many_leave_as_make_room_for_a_minimum() -> None:
    """Both tasks of the newcomer go where one large task leaves, so the other large one stays."""
    world, _ = settled(part("large", 1, 900, (1, 2)), nodes=(2,))
    world.put(part("small", 2, 250, (2, 2)))
    made = world.decide()

    assert len(made.grants[JobId("job-1")].leave) == 1
    world.settle(20)
    assert len(held(world, 1)) == 1
    assert len(set(held(world, 2))) == 1


def test_a_wide_task_gets_its_node_though_others_move_for_it() -> None:
    """What moves for it stays where it has gone: it does not come back as soon as the node is empty."""
    policy = Policy(name=PolicyName.FIFO, cooldown_s=0.0)
    large, small = part("large", 1, 900, (1, 4), priority=9000), part("small", 3, 250, (2, 2), priority=9000)
    world, _ = settled(large, job("wide", 2, bounds=(1, 1), size=3), small, nodes=(3, 1, 1), policy=policy)

    assert {node for node, _ in held(world, 2)} == {"node-1"}
    assert {node for node, _ in (*held(world, 1), *held(world, 3))} == {"node-2", "node-3"}


def test_a_minimum_that_does_not_fit_waits_and_takes_nobodys_slot() -> None:
    digits, shop = part("digits", 1, 600, (2, 2), on=((1, 0), (1, 1))), part("shop", 2, 600, (1, 1))
    world, made = settled(digits, shop, nodes=(2,))

    assert len(held(world, 1)) == 2
    assert not held(world, 2)
    assert made.reasons[JobId("job-2")].startswith("waits: ")


def test_sharers_have_their_slots_in_the_ratio_of_their_priorities() -> None:
    digits = part("digits", 1, 250, (1, 8), on=tuple([(1, 0)] * 4 + [(1, 1)] * 4))
    world, _ = settled(digits, part("shop", 2, 250, (1, 8), priority=15_000), nodes=(2,))

    assert (len(held(world, 1)), len(held(world, 2))) == (2, 6)


def test_surplus_stays_until_its_cool_down_ends() -> None:
    digits = replace(part("digits", 1, 500, (1, 4), on=((1, 0), (1, 0), (1, 1))), resized_at=999.0)
    shop = part("shop", 2, 500, (1, 2), on=((1, 1),))
    world = PartsWorld(pool(2), (digits, shop), Policy(cooldown_s=2.0))

    first = world.decide()
    world.settle(20)

    assert not first.grants[JobId("job-1")].leave
    assert first.wake_at == 1001.0
    assert (len(held(world, 1)), len(held(world, 2))) == (2, 2)


def test_a_queue_without_preemption_takes_no_surplus_of_its_own_either() -> None:
    digits = part("digits", 1, 500, (1, 4), on=((1, 0), (1, 0), (1, 1)))
    shop = part("shop", 2, 500, (1, 2), on=((1, 1),))
    rules = (QueueRules(name="default", preemption=False),)
    made = plan(Snapshot(nodes=pool(2), workloads=(digits, shop), queues=rules), POLICY, 1000.0)

    assert not any(grant.leave for grant in made.grants.values())


def test_tasks_of_a_lost_slot_start_elsewhere() -> None:
    digits = part("digits", 1, 250, (1, 1), on=((2, 0),))
    world = PartsWorld(pool(1), (digits,), POLICY)
    made = world.decide()

    assert made.grants[JobId("job-1")].leave == ("job-1.1",)
    assert [placement.node_id for placement in made.grants[JobId("job-1")].start] == [NodeId("node-1")]


def test_who_wants_nothing_gives_everything_back() -> None:
    digits = part("digits", 1, 250, (0, 0), on=tuple(line(1, (0, 0, 1))))
    world, made = settled(digits, part("shop", 2, 250, (1, 1), on=((1, 0),)))

    assert not held(world, 1)
    assert made.reasons[JobId("job-1")] == "0 slots: it wants none"
    assert sorted(rooms_of(world).values()) == [750, 1000, 1000, 1000]


def test_reasons_name_who_shares_the_slot_but_not_the_jobs_of_others() -> None:
    digits, shop = part("digits", 1, 250, (2, 2)), part("shop", 2, 250, (1, 1))
    _, made = settled(digits, shop, replace(part("secret", 3, 250, (1, 1)), owner="bob"), nodes=(1,))

    assert made.reasons[JobId("job-1")].startswith(
        "2 times 0.25 of a slot, together with shop and one of bob on 1 of 1 slot: "
    )
    assert "secret" not in made.reasons[JobId("job-1")] + made.reasons[JobId("job-2")]
