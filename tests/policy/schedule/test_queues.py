"""Queues over resource groups: examples with sentences, and the laws under whatever happens."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from tests.policy.schedule.queued import QueuedWorld, into, queue
from tests.policy.schedule.turmoil import Turmoil
from tests.policy.schedule.world import job, line, pool

from pliant.core.job import JobId, NodeId
from pliant.core.plan import PolicyName
from pliant.policy.schedule.plan import plan
from pliant.policy.schedule.share import Demand, fill

MAX_ROUNDS = 25


def test_queues_over_disjoint_groups_know_nothing_of_each_other() -> None:
    world = QueuedWorld(
        pool(4, 4),
        [queue("a", slots={1: 4}), queue("b", slots={2: 4}, policy=PolicyName.FIFO)],
        [into(job("one", 1), "a"), into(job("two", 2, bounds=(2, 8)), "b"), into(job("three", 3), "b")],
    )

    decision = world.settle(MAX_ROUNDS)[-1]

    assert world.sizes() == {"one": 4, "two": 3, "three": 1}
    assert {task.node_id for task in world.jobs[JobId("job-1")].tasks} == {"node-1"}
    assert decision.reasons[JobId("job-1")] == "4 of 4 slots: all that it can use; nobody else wants slots"
    assert decision.deserved == {"a": 4, "b": 4}


def test_two_groups_of_one_host_each_have_their_number_of_slots() -> None:
    queues = [queue("a", slots={1: 3}), queue("b", slots={1: 1})]
    world = QueuedWorld(pool(4), queues, [into(job("one", 1), "a"), into(job("two", 2), "b")])

    world.settle(MAX_ROUNDS)

    assert world.sizes() == {"one": 3, "two": 1}


@pytest.mark.parametrize(("weights", "sizes"), [((1, 1), (4, 4)), ((3, 1), (6, 2)), ((2, 1), (5, 3))])
def test_queues_over_the_same_slots_share_them_by_weight(weights: tuple[int, int], sizes: tuple[int, int]) -> None:
    queues = [queue("a", weight=weights[0]), queue("b", weight=weights[1])]
    world = QueuedWorld(pool(8), queues, [into(job("one", 1), "a")])
    world.settle(MAX_ROUNDS)
    assert world.sizes() == {"one": 8}

    world.put(into(job("two", 2), "b"))
    decision = world.settle(MAX_ROUNDS)[-1]

    assert world.sizes() == {"one": sizes[0], "two": sizes[1]}
    assert decision.deserved == {"a": sizes[0], "b": sizes[1]}
    assert decision.reasons[JobId("job-2")] == (
        f"{sizes[1]} of 8 slots: all that its queue has; queues share by weights {weights[1]}:{weights[0]}: "
        f"b {sizes[1]}, a {sizes[0]}"
    )


def test_what_a_queue_does_not_want_goes_to_the_others() -> None:
    queues = [queue("a"), queue("b"), queue("c", weight=2)]
    jobs = [into(job("one", 1), "a"), into(job("two", 2), "b"), into(job("three", 3, bounds=(1, 2)), "c")]
    world = QueuedWorld(pool(8), queues, jobs)

    world.settle(MAX_ROUNDS)

    assert world.sizes() == {"one": 3, "two": 3, "three": 2}


def test_only_the_overlapping_slots_are_shared() -> None:
    queues = [queue("wide", slots={1: 4, 2: 4}), queue("narrow", slots={2: 4})]
    world = QueuedWorld(pool(4, 4), queues, [into(job("one", 1), "wide"), into(job("two", 2), "narrow")])

    world.settle(MAX_ROUNDS)

    assert world.sizes() == {"one": 4, "two": 4}
    assert {task.node_id for task in world.jobs[JobId("job-1")].tasks} == {"node-1"}


def test_a_job_that_holds_its_minimum_is_not_paused_for_another_queue() -> None:
    queues = [queue("a", policy=PolicyName.PRIORITY), queue("b", weight=100)]
    world = QueuedWorld(pool(8), queues, [into(job("one", 1, bounds=(6, 8)), "a")])
    world.settle(MAX_ROUNDS)

    world.put(into(job("two", 2, bounds=(4, 8)), "b"))
    decision = world.settle(MAX_ROUNDS)[-1]

    assert world.sizes() == {"one": 8, "two": 0}
    assert decision.reasons[JobId("job-2")].startswith("waits: its minimum needs 4 slots, and queue b deserves 2 of 8")


def test_a_minimum_beyond_what_its_queue_deserves_waits_until_others_leave_it_room() -> None:
    """The first example of `admit` between queues."""
    world = QueuedWorld(pool(8), [queue("a"), queue("b")], [into(job("one", 1), "a")])
    world.settle(MAX_ROUNDS)
    world.put(into(job("big", 2, bounds=(5, 8)), "b"))
    decision = world.settle(MAX_ROUNDS)[-1]
    assert decision.deserved == {"a": 4, "b": 4}
    assert world.sizes() == {"one": 8, "big": 0}

    world.put(replace(world.jobs[JobId("job-1")], max_tasks=3))
    decision = world.settle(MAX_ROUNDS)[-1]
    assert decision.deserved == {"a": 3, "b": 5}

    assert world.sizes() == {"one": 3, "big": 5}


def test_slots_that_another_queue_leaves_go_to_whoever_is_first_and_stay_there() -> None:
    """The second example of `admit` between queues: had `urgent` been served with what is handed on, it would fit."""
    queues = [queue("a", policy=PolicyName.PRIORITY, weight=3), queue("b", policy=PolicyName.FIFO, weight=5)]
    world = QueuedWorld(pool(3), queues, [into(job("runs", 1, bounds=(1, 1), on=[(1, 0)]), "b")])
    world.put(into(job("does not fit", 2, bounds=(3, 8)), "b"))
    world.put(into(job("small", 3, bounds=(1, 1)), "a"))
    world.put(into(job("urgent", 4, priority=10_000, bounds=(2, 8)), "a"))

    decision = world.decide()
    world.settle(MAX_ROUNDS)

    assert decision.deserved == {"a": 1, "b": 2}
    assert [(p.node_id, p.slots) for p in decision.grants[JobId("job-4")].start] == [("node-1", (1,)), ("node-1", (2,))]
    assert world.sizes() == {"runs": 1, "does not fit": 0, "small": 0, "urgent": 2}


def test_what_a_queue_without_preemption_lacks_of_a_minimum_is_nobodys_loss() -> None:
    queues = [queue("kept", slots={1: 1}, preemption=False), queue("b")]
    world = QueuedWorld(pool(4), queues, [into(job("one", 1, bounds=(2, 8), on=[(1, 0)]), "kept")])
    world.put(into(job("two", 2, bounds=(3, 8)), "b"))

    decision = world.settle(MAX_ROUNDS)[-1]

    assert world.sizes() == {"one": 1, "two": 3}
    assert decision.deserved == {"kept": 1, "b": 3}


def test_slots_that_lie_so_that_their_queue_cannot_have_them_are_not_left_idle() -> None:
    queues = [
        queue("a", slots={1: 2, 3: 2}, weight=2),
        queue("b", slots={1: 5, 2: 7, 3: 6}, weight=2, policy=PolicyName.FIFO, preemption=False),
    ]
    kept = [*line(1, range(2)), *line(3, range(3))]
    jobs = [into(job("kept", 1, bounds=(2, 5), on=kept), "b"), into(job("one", 2, bounds=(2, 3)), "a")]
    world = QueuedWorld(pool(2, 1, 7), queues, jobs)
    world.put(into(job("waits", 3, priority=10_000, bounds=(3, 3)), "b"))

    world.settle(MAX_ROUNDS)

    assert world.sizes() == {"kept": 5, "one": 2, "waits": 3}


def test_without_preemption_nobody_shrinks_a_job_and_it_may_still_grow() -> None:
    queues = [queue("batch", preemption=False), queue("urgent", policy=PolicyName.PRIORITY, weight=10_000)]
    world = QueuedWorld(pool(8), queues, [into(job("kept", 1, bounds=(1, 6), on=line(1, range(3))), "batch")])
    world.settle(MAX_ROUNDS)
    assert world.sizes() == {"kept": 6}

    world.put(into(job("hungry", 2, priority=10_000, bounds=(1, 8)), "urgent"))
    decision = world.settle(MAX_ROUNDS)[-1]

    assert world.sizes() == {"kept": 6, "hungry": 2}
    assert "nobody takes them away: queue batch has no preemption" in decision.reasons[JobId("job-1")]


@pytest.mark.parametrize("policy", PolicyName)
def test_without_preemption_a_queue_pauses_nobody_for_its_own_jobs_either(policy: PolicyName) -> None:
    world = QueuedWorld(pool(4), [queue("batch", preemption=False, policy=policy)])
    world.put(into(job("first", 2, priority=1), "batch"))
    world.settle(MAX_ROUNDS)

    world.put(into(job("older and urgent", 1, priority=10_000), "batch"))
    world.settle(MAX_ROUNDS)

    assert world.sizes() == {"first": 4, "older and urgent": 0}


def test_a_group_that_shrinks_is_left_by_elastic_jobs_and_not_by_those_that_nobody_may_shrink() -> None:
    queues = [
        queue("elastic", group="g", slots={1: 8}),
        queue("kept", group="g", slots={1: 8}, preemption=False),
    ]
    jobs = [
        into(job("one", 1, on=line(1, range(4))), "elastic"),
        into(job("two", 2, bounds=(1, 4), on=line(1, range(4, 8))), "kept"),
    ]
    world = QueuedWorld(pool(8), queues, jobs)
    world.settle(MAX_ROUNDS)

    for name, view in world.queues.items():
        world.queues[name] = replace(view, slots={NodeId("node-1"): 5})
    world.settle(MAX_ROUNDS)

    assert world.sizes() == {"one": 1, "two": 4}


def test_a_job_that_was_moved_leaves_the_slots_of_its_old_queue() -> None:
    queues = [queue("a", slots={1: 4}), queue("b", slots={2: 2})]
    world = QueuedWorld(pool(4, 4), queues, [into(job("one", 1), "a")])
    world.settle(MAX_ROUNDS)

    world.put(into(world.jobs[JobId("job-1")], "b"))
    world.settle(MAX_ROUNDS)

    assert [task.node_id for task in world.jobs[JobId("job-1")].tasks] == ["node-2", "node-2"]


def test_a_queue_that_nobody_knows_gets_nothing() -> None:
    world = QueuedWorld(pool(4), [queue("a")], [into(job("one", 1), "a")])
    world.put(into(job("lost", 2), "b"))

    decision = plan(world.snapshot, world.policy, world.now)

    assert decision.grants[JobId("job-2")].num_tasks == 0
    assert decision.reasons[JobId("job-2")] == "waits: its minimum needs 1 slot and queue b has none"


QUEUES = st.lists(
    st.tuples(
        st.sampled_from(PolicyName),
        st.sampled_from([1, 1, 2, 5]),
        st.booleans(),
        st.lists(st.integers(0, 8), min_size=4, max_size=4) | st.none(),
    ),
    min_size=1,
    max_size=4,
)


class Queues(Turmoil):
    """Jobs in queues over groups that overlap as they like; jobs, nodes, groups and queues come, go and change."""

    least_nodes = 1
    max_rounds = MAX_ROUNDS
    limited = True
    """Groups have so many slots of every node, and not all."""
    world: QueuedWorld

    def __init__(self) -> None:
        super().__init__()
        self.world = QueuedWorld((), ())

    @initialize(
        nodes=st.lists(st.integers(1, 8), min_size=1, max_size=4),
        queues=QUEUES,
        cooldown_s=st.sampled_from([0.0, 2.0]),
    )
    def begin(self, nodes: list[int], queues: list[Any], cooldown_s: float) -> None:
        views = [
            queue(f"q{n}", policy=policy, weight=weight, preemption=preemption, slots=self.slots_of_group(slots))
            for n, (policy, weight, preemption, slots) in enumerate(queues)
        ]
        self.world = QueuedWorld(pool(*nodes), views, cooldown_s=cooldown_s)

    def slots_of_group(self, given: list[int] | None) -> dict[int, int] | None:
        return dict(enumerate(given, 1)) if self.limited and given is not None else None

    @precondition(lambda self: len(self.world.jobs) < 8)
    @rule(data=st.data(), priority=st.sampled_from([1, 5000, 10_000]), least=st.integers(1, 3), more=st.integers(0, 7))
    def submit(self, data: Any, priority: int, least: int, more: int) -> None:
        self.num_jobs += 1
        size = data.draw(st.sampled_from(self.sizes))
        view = job(f"train-{self.num_jobs}", self.num_jobs, priority=priority, bounds=(least, least + more), size=size)
        self.world.put(into(view, data.draw(st.sampled_from(sorted(self.world.queues)))))

    @precondition(lambda self: self.world.jobs)
    @rule(data=st.data())
    def move(self, data: Any) -> None:
        view = self.world.jobs[self.draw_job(data)]
        self.world.put(into(view, data.draw(st.sampled_from(sorted(self.world.queues)))))

    @rule(data=st.data(), policy=st.sampled_from(PolicyName), weight=st.integers(1, 5), preemption=st.booleans())
    def change_queue(self, data: Any, policy: PolicyName, weight: int, preemption: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.queues)))
        view = self.world.queues[name]
        self.world.queues[name] = replace(view, policy=policy, weight=weight, preemption=preemption)

    @precondition(lambda self: self.limited)
    @rule(data=st.data(), slots=st.lists(st.integers(0, 8), min_size=4, max_size=4))
    def change_group(self, data: Any, slots: list[int]) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.queues)))
        own = {NodeId(f"node-{n}"): num for n, num in enumerate(slots, 1)}
        self.world.queues[name] = replace(self.world.queues[name], slots=own)


class QueuesOverAllSlots(Queues):
    """Tasks of one slot of any node fit anywhere, so more can be said: nobody goes to and fro.

    Where groups have so many slots of a node, a job gives one up on one node and gets another one elsewhere.
    """

    sizes: tuple[int, ...] = (1,)
    limited = False

    @rule()
    def settle(self) -> None:
        self.settle_and_compare()

    def teardown(self) -> None:
        self.settle_and_compare()

    def settle_and_compare(self) -> None:
        backs_off = any(view.held_until and view.held_until > self.world.now for view in self.world.jobs.values())
        self.world.decide()  # whoever has to leave the slots of its group does, and may start elsewhere afterwards
        made = self.world.settle(MAX_ROUNDS)
        for job_id in self.world.jobs:
            path = [(len(d.grants[job_id].start), len(d.grants[job_id].leave)) for d in made]
            comes, goes = any(num for num, _ in path), any(num for _, num in path)
            assert backs_off or not (comes and goes), f"{job_id} goes to and fro: {path}"


TestQueues = Queues.TestCase
TestQueues.settings = settings(max_examples=60, stateful_step_count=20, suppress_health_check=list(HealthCheck))
TestQueuesOverAllSlots = QueuesOverAllSlots.TestCase
TestQueuesOverAllSlots.settings = settings(
    max_examples=60, stateful_step_count=20, suppress_health_check=list(HealthCheck)
)


@given(weights=st.lists(st.integers(1, 9), min_size=2, max_size=4), num_slots=st.integers(4, 24))
def test_hungry_queues_over_all_slots_get_what_their_weights_say(weights: list[int], num_slots: int) -> None:
    queues = [queue(f"q{n}", weight=weight) for n, weight in enumerate(weights)]
    jobs = [into(job(f"j{n}", n + 1, bounds=(1, 100)), f"q{n}") for n in range(len(weights))]
    world = QueuedWorld(pool(num_slots), queues)
    for view in jobs:
        world.put(view)
        world.settle(MAX_ROUNDS)

    held = world.held_by_queue()

    served = [n for n in range(len(weights)) if held[f"q{n}"]]
    ideal = fill([Demand(weights[n], 1, 1, 100) for n in served], num_slots)
    assert sum(held.values()) == num_slots
    for n, deserved in zip(served, ideal.deserved, strict=True):
        assert abs(held[f"q{n}"] - deserved / ideal.denominator) < 1
    for n in set(range(len(weights))) - set(served):
        assert num_slots * weights[n] < sum(weights), "it deserves its minimum"
