"""The simulated cluster keeps the port's laws, and does what a script tells it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.contracts.cluster import NUM_SLOTS, ClusterContract

from pliant.core.job import NodeId, TaskId
from pliant.core.plan import NodeView
from pliant.core.ports import ExitFacts, StartOrder, TaskExit
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster, SimTimes

NODE = NodeView(id=NodeId("sim-0"), slots=tuple(range(NUM_SLOTS)))


def order_for(task_id: str, slots: tuple[int, ...], node_id: NodeId = NODE.id) -> StartOrder:
    return StartOrder(
        task_id=TaskId(task_id), node_id=node_id, slots=slots, argv=(), env={}, cwd="/", log_dir="/nowhere"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimStage:
    clock: VirtualClock
    cluster: SimCluster
    node_id: NodeId = NODE.id

    def order(self, task_id: TaskId, slots: tuple[int, ...]) -> StartOrder:
        return order_for(task_id, slots)

    def hopeless_order(self, task_id: TaskId, slots: tuple[int, ...]) -> StartOrder:
        self.cluster.refuse(task_id, "the disk is full")
        return order_for(task_id, slots)

    def finish(self, task_id: TaskId, exit_code: int) -> None:
        self.cluster.exit(task_id, exit_code)

    def leave_behind(self, task_id: TaskId, facts: ExitFacts) -> None:
        self.cluster.leave_behind(task_id, **asdict(facts))

    def running(self, task_id: TaskId) -> bool:
        return any(task.task_id == task_id and task.pid is not None for task in self.cluster.observe().tasks)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        for _ in range(1000):
            if condition():
                return
            self.clock.advance(0.01)
        raise AssertionError(f"never came true: {what}")

    def pass_time(self) -> None:
        self.clock.advance(60.0)


class TestSimCluster(ClusterContract):
    @pytest.fixture
    def stage(self) -> SimStage:
        clock = VirtualClock()
        return SimStage(
            clock=clock, cluster=SimCluster(clock, [NODE], SimTimes(start_s=0.02, exit_s=0.05, drain_s=0.3))
        )


def test_nothing_happens_until_the_clock_moves() -> None:
    clock = VirtualClock()
    cluster = SimCluster(clock, [NODE])
    exits: list[TaskExit] = []
    cluster.watch(exits.append)
    cluster.start(order_for("job-1.1", (0,)))
    cluster.kill(TaskId("job-1.1"))

    assert exits == []
    clock.advance(0.0)
    assert exits == [TaskExit(task_id=TaskId("job-1.1"), exit_code=-9)]


def test_a_lost_node_takes_its_tasks_along_and_nobody_knows_how_they_ended() -> None:
    clock = VirtualClock()
    other = NodeView(id=NodeId("sim-1"), slots=(0,))
    cluster = SimCluster(clock, [NODE, other])
    exits: list[TaskExit] = []
    cluster.watch(exits.append)
    cluster.start(order_for("job-1.1", (0,)))
    cluster.start(order_for("job-1.2", (0,), other.id))

    cluster.lose_node(other.id)
    clock.advance(1.0)

    assert exits == [TaskExit(task_id=TaskId("job-1.2"), exit_code=None)]
    assert cluster.observe().nodes == (NODE,)
    cluster.add_node(other)
    assert cluster.observe().nodes == (NODE, other)


def test_a_task_that_does_not_heed_a_drain_waits_for_the_script() -> None:
    clock = VirtualClock()
    cluster = SimCluster(clock, [NODE], SimTimes(drain_s=None))
    cluster.start(order_for("job-1.1", (0,)))
    cluster.drain(TaskId("job-1.1"))

    clock.advance(1000.0)

    assert [task.task_id for task in cluster.observe().tasks] == cluster.drained == ["job-1.1"]


class SimMachine(RuleBasedStateMachine):
    """Any history: no slot is held twice, and every task that was accepted is either alive or reported, once."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.cluster = SimCluster(self.clock, [NODE], SimTimes(start_s=0.5, exit_s=0.5, drain_s=2.0))
        self.exits: list[TaskId] = []
        self.accepted: set[TaskId] = set()
        self.cluster.watch(lambda ended: self.exits.append(ended.task_id))

    tasks = st.integers(0, 9).map(lambda number: TaskId(f"job-1.{number}"))

    @rule(task_id=tasks, slots=st.sets(st.integers(0, NUM_SLOTS), max_size=3))
    def start(self, task_id: TaskId, slots: set[int]) -> None:
        held = {slot for task in self.cluster.observe().tasks for slot in task.slots}
        legal = bool(slots) and NUM_SLOTS not in slots and not slots & held
        if task_id in self.accepted or legal:
            self.cluster.start(order_for(task_id, tuple(slots)))
            self.accepted.add(task_id)
        else:
            with pytest.raises(ValueError, match="slot"):
                self.cluster.start(order_for(task_id, tuple(slots)))

    @rule(task_id=tasks)
    def drain(self, task_id: TaskId) -> None:
        self.cluster.drain(task_id)

    @rule(task_id=tasks, code=st.integers(-9, 3))
    def exit(self, task_id: TaskId, code: int) -> None:
        self.cluster.exit(task_id, code)

    @rule(seconds=st.floats(0, 3))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def no_slot_is_held_twice(self) -> None:
        held = [slot for task in self.cluster.observe().tasks for slot in task.slots]
        assert len(held) == len(set(held))

    @invariant()
    def every_task_lives_or_was_reported_once(self) -> None:
        alive = [task.task_id for task in self.cluster.observe().tasks]
        assert sorted(alive + self.exits) == sorted(self.accepted)


TestSimMachine = SimMachine.TestCase
TestSimMachine.settings = settings(max_examples=60, stateful_step_count=30)
