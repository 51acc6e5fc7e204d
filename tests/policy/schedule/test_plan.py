"""What `plan` decides and says, as tables: jobs and nodes in, targets, moves and sentences out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from tests.policy.schedule.world import World, job, line, pool

from pliant.core.job import NodeId
from pliant.core.plan import NodeView, Plan, Policy, PolicyName, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.plan import plan

NOW = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A situation and, by job name, the target and the reason."""

    name: str
    jobs: Sequence[Workload]
    expected: dict[str, tuple[int, str]]
    nodes: Sequence[NodeView] = pool(8)
    policy: PolicyName = PolicyName.FAIRSHARE


ROWS = [
    Row(
        name="a job starts with its minimum",
        jobs=[job("a", 1)],
        expected={"a": (8, "1 of 8 slots to start with: its minimum; 7 more right after")},
    ),
    Row(
        name="a lone job grows to its maximum",
        jobs=[job("a", 1, on=line(1, [0]))],
        expected={"a": (8, "8 of 8 slots: its maximum; nobody else wants slots")},
    ),
    Row(
        name="an endpoint wants what its load needs now",
        jobs=[replace(job("a", 1, bounds=(1, 3), on=line(1, [0])), kind="endpoint")],
        expected={"a": (3, "3 of 8 slots: all that it needs now; nobody else wants slots")},
    ),
    Row(
        name="a lone job cannot have more than there is",
        jobs=[job("a", 1, bounds=(1, 20), on=line(1, [0]))],
        expected={"a": (8, "8 of 8 slots: all that it can use; nobody else wants slots")},
    ),
    Row(
        name="the example of grow: an equal arrives",
        jobs=[job("a", 1, on=line(1, range(8))), job("b", 2)],
        expected={
            "a": (4, "4 of 8 slots: shares them with b in the ratio of priorities 5000:5000"),
            "b": (4, "1 of 8 slots to start with: its minimum; 3 more as a gives them up"),
        },
    ),
    Row(
        name="twice the priority",
        jobs=[job("a", 1, on=line(1, range(4))), job("b", 2, priority=10_000, on=line(1, range(4, 8)))],
        expected={
            "a": (3, "3 of 8 slots: shares them with b in the ratio of priorities 5000:10000"),
            "b": (5, "5 of 8 slots: shares them with a in the ratio of priorities 10000:5000"),
        },
    ),
    Row(
        name="the odd slot goes to the older",
        jobs=[job("a", 1, on=line(1, [0])), job("b", 2, on=line(1, [1])), job("c", 3, on=line(1, [2]))],
        expected={
            "a": (3, "3 of 8 slots: shares them with b and c in the ratio of priorities 5000:5000:5000"),
            "b": (3, "3 of 8 slots: shares them with a and c in the ratio of priorities 5000:5000:5000"),
            "c": (2, "2 of 8 slots: shares them with a and b in the ratio of priorities 5000:5000:5000"),
        },
    ),
    Row(
        name="what one cannot use is shared by the rest",
        jobs=[
            job("a", 1, bounds=(1, 2), on=line(1, [0])),
            job("b", 2, on=line(1, [1])),
            job("c", 3, on=line(1, [2])),
        ],
        expected={
            "a": (2, "2 of 8 slots: its maximum"),
            "b": (3, "3 of 8 slots: shares 6 of them with c in the ratio of priorities 5000:5000"),
            "c": (3, "3 of 8 slots: shares 6 of them with b in the ratio of priorities 5000:5000"),
        },
    ),
    Row(
        name="a minimum is a guarantee",
        jobs=[job("a", 1, bounds=(6, 8), on=line(1, range(6))), job("b", 2, on=line(1, [6]))],
        expected={
            "a": (6, "6 of 8 slots: its minimum; by priority alone it would have less"),
            "b": (2, "2 of 8 slots: all that a leaves"),
        },
    ),
    Row(
        name="nobody is paused for somebody else",
        jobs=[job("a", 1, bounds=(4, 8), on=line(1, range(8))), job("b", 2, priority=9000, bounds=(5, 8))],
        expected={
            "a": (8, "8 of 8 slots: its maximum"),
            "b": (0, "waits: its minimum needs 5 slots, and minimums of jobs ahead of it hold 4 of 8 (a)"),
        },
    ),
    Row(
        name="all is guaranteed to others",
        jobs=[
            *(job(f"a{n}", n, bounds=(2, 8), on=line(1, [2 * n, 2 * n + 1])) for n in range(4)),
            job("b", 5, priority=10_000),
        ],
        expected={
            "b": (0, "waits: all 8 slots are held by minimums of jobs ahead of it (a0, a1, a2, …)"),
        },
    ),
    Row(
        name="more than three others are counted",
        jobs=[job(f"a{n}", n, on=line(1, [n])) for n in range(6)],
        expected={
            "a0": (2, "2 of 8 slots: shares them with 5 others by priority: its own is 5000 of 30000"),
            "a5": (1, "1 of 8 slots: shares them with 5 others by priority: its own is 5000 of 30000"),
        },
    ),
    Row(
        name="a minimum that can never be met",
        jobs=[job("a", 1, bounds=(9, 9))],
        expected={"a": (0, "waits: its minimum needs 9 slots and queue default has only 8")},
    ),
    Row(
        name="no slots",
        jobs=[job("a", 1)],
        nodes=(),
        expected={"a": (0, "waits: its minimum needs 1 slot and queue default has none")},
    ),
    Row(
        name="a task does not fit on two nodes",
        jobs=[job("a", 1, size=4)],
        nodes=pool(2, 2),
        expected={"a": (0, "waits: its minimum needs 4 slots on one node and queue default has 2 at most")},
    ),
    Row(
        name="two jobs of one name are told apart",
        jobs=[job("a", 1, on=line(1, range(4))), job("a", 2, on=line(1, range(4, 8)))],
        expected={"a": (4, "4 of 8 slots: shares them with a (job-1) in the ratio of priorities 5000:5000")},
    ),
    Row(
        name="a job that wants nothing gives everything back",
        jobs=[job("a", 1, bounds=(0, 0), on=line(1, range(4))), job("b", 2, on=line(1, range(4, 8)))],
        expected={
            "a": (0, "0 slots: it wants none"),
            "b": (8, "8 of 8 slots: its maximum; nobody else wants slots"),
        },
    ),
    Row(
        name="priority: the surplus of those behind is taken first",
        policy=PolicyName.PRIORITY,
        jobs=[
            job("a", 1, bounds=(2, 8), on=line(1, range(8))),
            job("b", 2, priority=9000, bounds=(3, 5)),
            job("c", 3, priority=100),
        ],
        expected={
            "b": (5, "3 of 8 slots to start with: its minimum; 2 more as a gives them up"),
            "a": (2, "2 of 8 slots: its minimum; b comes before it"),
            "c": (1, "1 of 8 slots: its minimum; b and a come before it"),
        },
    ),
    Row(
        name="the example of admit: who comes later is paused only if nothing else helps",
        policy=PolicyName.PRIORITY,
        jobs=[
            job("a", 1, bounds=(4, 4), on=line(1, range(4))),
            job("b", 2, bounds=(4, 4), on=line(1, range(4, 8))),
            job("c", 3, priority=9000, bounds=(2, 3)),
        ],
        expected={
            "c": (3, "2 of 8 slots to start with: its minimum; 1 more as b gives it up"),
            "a": (4, "4 of 8 slots: its maximum"),
            "b": (0, "waits: its minimum needs 4 slots, and minimums of jobs ahead of it hold 6 of 8 (c, a)"),
        },
    ),
    Row(
        name="fifo: the oldest takes all that minimums leave",
        policy=PolicyName.FIFO,
        jobs=[
            job("a", 1, priority=1, bounds=(1, 20), on=line(1, [0])),
            job("b", 2, on=line(1, [1])),
            job("c", 3, priority=9000, on=line(1, [2])),
        ],
        expected={
            "a": (6, "6 of 8 slots: the first in order, beside the minimums of the others"),
            "b": (1, "1 of 8 slots: its minimum; a comes before it"),
            "c": (1, "1 of 8 slots: its minimum; a and b come before it"),
        },
    ),
    Row(
        name="fifo: the next takes the rest",
        policy=PolicyName.FIFO,
        jobs=[job("a", 1, bounds=(1, 5), on=line(1, [0])), job("b", 2, on=line(1, [1]))],
        expected={
            "a": (5, "5 of 8 slots: its maximum"),
            "b": (3, "3 of 8 slots: all that a leaves, who comes before it"),
        },
    ),
    Row(
        name="whole tasks of several slots",
        jobs=[job("a", 1, size=4, on=line(1, [0])), job("b", 2, on=line(1, range(4, 8)))],
        expected={
            "a": (1, "4 of 8 slots: shares them with b in the ratio of priorities 5000:5000"),
            "b": (4, "4 of 8 slots: shares them with a in the ratio of priorities 5000:5000"),
        },
    ),
]


def decide(row: Row) -> Plan:
    return plan(Snapshot(nodes=tuple(row.nodes), workloads=tuple(row.jobs)), Policy(name=row.policy), NOW)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_targets_and_reasons(row: Row) -> None:
    decision = decide(row)

    names = {view.id: view.name for view in row.jobs}
    found = {names[job_id]: (grant.num_tasks, decision.reasons[job_id]) for job_id, grant in decision.grants.items()}
    assert {name: found[name] for name in row.expected} == row.expected


def test_the_demo() -> None:
    world = World(pool(8))
    world.put(job("train-a", 1))
    sizes = []

    def settle() -> None:
        world.settle(10)
        sizes.append([len(view.tasks) for view in world.jobs.values()])

    first = world.decide()
    assert [len(grant.start) for grant in first.grants.values()] == [1]
    settle()
    world.put(job("train-b", 2))
    settle()
    world.put(replace(world.jobs[job("train-b", 2).id], priority=10_000))
    settle()
    del world.jobs[job("train-a", 1).id]
    settle()
    assert sizes == [[8], [4, 4], [3, 5], [8]]


def test_the_example_of_plan() -> None:
    world = World(pool(8), [job("a", 1)])

    def step() -> list[tuple[int, int, int, int]]:
        """Return target, starts, leavers and processes of every job after a decision."""
        grants = world.decide().grants
        return [
            (grant.num_tasks, len(grant.start), len(grant.leave), len(world.jobs[job_id].tasks))
            for job_id, grant in grants.items()
        ]

    assert step() == [(8, 1, 0, 1)]
    assert step() == [(8, 7, 0, 8)]
    world.put(job("b", 2))
    assert step() == [(4, 0, 4, 8), (4, 0, 0, 0)]
    world.exit_leaving(num=1)
    assert step() == [(4, 0, 0, 7), (4, 1, 0, 1)]
    world.exit_leaving()
    assert step() == [(4, 0, 0, 4), (4, 3, 0, 4)]


def test_slots_that_leave_for_one_job_are_not_given_to_another() -> None:
    a = job("a", 1, on=line(1, range(8)), leaving=4)
    b = job("b", 2)
    c = job("c", 3, on=())

    before = plan(Snapshot(nodes=pool(8), workloads=(a, b)), Policy(), NOW)
    after = plan(Snapshot(nodes=pool(8), workloads=(replace(a, tasks=a.tasks[:-1]), b, c)), Policy(), NOW)

    assert before.grants[b.id].start == ()
    assert [p.slots for p in after.grants[b.id].start] == [(7,)]
    assert after.grants[c.id].start == ()


def test_the_newest_task_on_the_emptiest_node_leaves_first() -> None:
    a = job("a", 1, bounds=(1, 5), on=[(1, 0), (2, 0), (1, 1), (1, 2), (2, 1), (3, 0), (3, 1)])

    grant = plan(Snapshot(nodes=pool(4, 4, 4), workloads=(a,)), Policy(), NOW).grants[a.id]

    assert grant.leave == ("job-1.7", "job-1.6")


def test_a_job_packs_on_few_nodes_and_fills_gaps_first() -> None:
    filler = job("filler", 1, bounds=(3, 3), on=line(1, range(3)))
    a = job("a", 2, bounds=(4, 4))
    b = job("b", 3, bounds=(1, 1))

    grants = plan(Snapshot(nodes=pool(4, 4, 4), workloads=(filler, a, b)), Policy(), NOW).grants

    assert {p.node_id for p in grants[a.id].start} == {"node-2"}
    assert {p.node_id for p in grants[b.id].start} == {"node-1"}


def test_tasks_of_one_node_leave_together_for_a_task_that_needs_a_whole_node() -> None:
    a = job("a", 1, on=[*line(1, range(4)), *line(2, range(4))])
    b = job("b", 2, bounds=(1, 2), size=4)

    decision = plan(Snapshot(nodes=pool(4, 4), workloads=(a, b)), Policy(), NOW)

    assert decision.grants[a.id].leave == ("job-1.8", "job-1.7", "job-1.6", "job-1.5")
    assert decision.grants[b.id].num_tasks == 1


def test_a_minimum_starts_all_at_once_or_not_at_all() -> None:
    a = job("a", 1, bounds=(1, 6), on=line(1, range(6)), leaving=2)
    b = job("b", 2, bounds=(3, 3))

    waiting = plan(Snapshot(nodes=pool(7), workloads=(a, b)), Policy(), NOW).grants[b.id]
    vacated = replace(a, tasks=a.tasks[:4])
    starting = plan(Snapshot(nodes=pool(7), workloads=(vacated, b)), Policy(), NOW).grants[b.id]

    assert (waiting.num_tasks, len(waiting.start)) == (3, 0)
    assert (starting.num_tasks, len(starting.start)) == (3, 3)


def test_during_a_cool_down_surplus_goes_only_to_a_minimum() -> None:
    a = replace(job("a", 1, on=line(1, range(8))), resized_at=NOW - 0.5)
    b = job("b", 2)

    decision = plan(Snapshot(nodes=pool(8), workloads=(a, b)), Policy(cooldown_s=2.0), NOW)

    assert {job_id: grant.num_tasks for job_id, grant in decision.grants.items()} == {a.id: 7, b.id: 1}
    assert decision.wake_at == NOW + 1.5
    assert decision.reasons == {
        a.id: "7 of 8 slots: 3 more than its share until its cool-down ends: its size has just changed",
        b.id: "1 of 8 slots: its share is 4; a holds the rest until a cool-down ends",
    }


def test_a_cool_down_that_nobody_waits_for_wakes_nobody() -> None:
    a = replace(job("a", 1, on=line(1, range(8))), resized_at=NOW)

    assert plan(Snapshot(nodes=pool(8), workloads=(a,)), Policy(), NOW).wake_at is None


def test_a_job_that_backs_off_lends_its_slots_and_keeps_its_guarantee() -> None:
    a = replace(job("a", 1, bounds=(2, 4), on=line(1, [0])), held_until=NOW + 5)
    b = job("b", 2, on=line(1, range(4, 8)))
    c = job("c", 3, bounds=(6, 6))

    decision = plan(Snapshot(nodes=pool(8), workloads=(a, b, c)), Policy(), NOW)

    assert {job_id: grant.num_tasks for job_id, grant in decision.grants.items()} == {a.id: 2, b.id: 7, c.id: 0}
    assert decision.grants[a.id].start == ()
    assert decision.wake_at == NOW + 5
    assert decision.reasons[a.id] == "2 of 8 slots: starts no new task until its back-off ends"


def test_a_cool_down_protects_also_beside_somebody_who_gives() -> None:
    both = [(1, 0), (1, 1), (3, 0), (3, 1)]
    a = replace(job("a", 1, priority=100, on=both), resized_at=NOW)
    c = job("c", 2, priority=100, on=[(node, slot + 2) for node, slot in both])
    b = job("b", 3, priority=10_000, bounds=(1, 2), size=4, on=[(2, 0)])

    during = plan(Snapshot(nodes=pool(4, 4, 4), workloads=(a, b, c)), Policy(cooldown_s=2.0), NOW)
    after = plan(Snapshot(nodes=pool(4, 4, 4), workloads=(a, b, c)), Policy(cooldown_s=2.0), NOW + 2)

    assert [during.grants[view.id].num_tasks for view in (a, b, c)] == [4, 1, 4]
    assert during.wake_at == NOW + 2
    assert [after.grants[view.id].num_tasks for view in (a, b, c)] == [2, 2, 2]


def test_no_minimum_settles_where_a_job_that_backs_off_will_need_its_own() -> None:
    a = replace(job("a", 1, bounds=(2, 2), size=2, on=[(1, 0)]), held_until=NOW + 5)
    b = job("b", 2, on=[(2, 0), (2, 1), (1, 2), (1, 3)])
    c = job("c", 3, bounds=(1, 1))

    grants = plan(Snapshot(nodes=pool(4, 2), workloads=(a, b, c)), Policy(), NOW).grants

    assert grants[c.id].num_tasks == 1
    assert grants[b.id].leave == ("job-2.2",)


def test_a_minimum_takes_the_slot_that_a_job_in_back_off_lends_before_anybody_leaves() -> None:
    a = job("a", 1, bounds=(3, 4), on=[(3, 0), (3, 1), (3, 2), (1, 1)])
    b, c = job("b", 2, bounds=(1, 1), on=[(1, 0)]), job("c", 3, bounds=(1, 1), on=[(2, 0)])
    d = replace(job("d", 4, bounds=(2, 2), on=[(2, 2)]), held_until=NOW + 1)
    e = job("e", 5, bounds=(3, 3))
    f = job("f", 6, bounds=(1, 1))
    everybody = (a, b, c, d, e, f)
    world = World(pool(2, 5, 3), everybody)
    world.now = NOW

    during = world.decide().grants

    assert [during[view.id].num_tasks for view in everybody] == [4, 1, 1, 2, 3, 0]
    assert during[a.id].leave == ()
    assert [p.slots for p in during[e.id].start] == [(1,), (3,), (4,)]

    world.now = NOW + 1
    after = world.decide().grants

    assert (after[a.id].num_tasks, after[a.id].leave) == (3, ("job-1.4",))
    assert [after[view.id].num_tasks for view in everybody] == [3, 1, 1, 2, 3, 0]


def test_a_task_on_a_slot_that_is_gone_is_replaced() -> None:
    a = job("a", 1, bounds=(2, 2), on=[(1, 0), (9, 0)])

    first = plan(Snapshot(nodes=pool(4), workloads=(a,)), Policy(), NOW).grants[a.id]
    leaving = replace(a, tasks=(a.tasks[0], replace(a.tasks[1], leaving=True)))
    second = plan(Snapshot(nodes=pool(4), workloads=(leaving,)), Policy(), NOW).grants[a.id]

    assert (first.num_tasks, first.leave, first.start) == (2, ("job-1.2",), ())
    assert (second.num_tasks, second.leave, len(second.start)) == (2, (), 1)


def test_nothing_at_all() -> None:
    decision = plan(Snapshot(nodes=(), workloads=()), Policy(), NOW)

    assert (decision.grants, decision.reasons, decision.wake_at) == ({}, {}, None)


def test_nodes_without_slots() -> None:
    a = job("a", 1)

    decision = plan(Snapshot(nodes=(NodeView(id=NodeId("empty"), slots=()),), workloads=(a,)), Policy(), NOW)

    assert decision.grants[a.id].num_tasks == 0
