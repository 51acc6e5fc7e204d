"""The laws of the port `Cluster`, as tests.

A test class inherits `ClusterContract` and provides, as a fixture named `stage`, a `Stage`: a cluster, one of whose
nodes is played on, and the means to play its tasks. Knows no adapter and no test framework.
"""

from collections.abc import Callable
from dataclasses import replace
from socket import create_server
from typing import Protocol

from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.ports import MAX_STDERR_BYTES, Cluster, ExitFacts, StartOrder, TaskExit
from pliant.core.tunnel import SidecarSettings

NUM_SLOTS = 4
"""Slots of the stage's node, numbered from 0."""
MARKER = "marker-"
"""Task ids that begin so are the stage's own; the tests do not count their exits."""


class Stage(Protocol):
    """A cluster in which a node has `NUM_SLOTS` slots, and what a test needs to play its tasks. Others are idle."""

    @property
    def cluster(self) -> Cluster: ...

    @property
    def node_id(self) -> NodeId: ...

    def order(self, task_id: TaskId, slots: tuple[int, ...]) -> StartOrder:
        """Return an order for a task that runs until `finish`, and on SIGTERM ends with code 0."""
        ...

    def hopeless_order(self, task_id: TaskId, slots: tuple[int, ...]) -> StartOrder:
        """Return an order for a task that cannot be started."""
        ...

    def finish(self, task_id: TaskId, exit_code: int) -> None:
        """Let a task end with this code, whether or not its process exists yet."""
        ...

    def leave_behind(self, task_id: TaskId, facts: ExitFacts) -> None:
        """Let a task leave this behind when it ends; to be called before its start."""
        ...

    def running(self, task_id: TaskId) -> bool:
        """Return whether the task's program has begun (and would see a SIGTERM)."""
        ...

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Let time pass until the condition holds; fail with `what` if that takes too long."""
        ...

    def pass_time(self) -> None:
        """Let so much time pass that everything under way has surely happened; may run tasks named `MARKER…`."""
        ...


class ClusterContract:
    """What every adapter of the port `Cluster` does."""

    def test_an_idle_cluster_shows_its_slots_and_no_tasks(self, stage: Stage) -> None:
        seen = stage.cluster.observe()

        slots = [node.slots for node in seen.nodes if node.id == stage.node_id]
        assert slots == [tuple(range(NUM_SLOTS))]
        assert len({node.id for node in seen.nodes}) == len(seen.nodes)
        assert seen.tasks == ()

    def test_machines_tell_of_themselves_only_while_they_are_there(self, stage: Stage) -> None:
        assert set(stage.cluster.measured()) <= {node.id for node in stage.cluster.observe().nodes}

    def test_a_started_task_is_observed_at_once_and_gets_a_pid(self, stage: Stage) -> None:
        task_id = _start(stage, "job-1.1", (1, 3))

        (task,) = stage.cluster.observe().tasks
        assert (task.task_id, task.node_id, task.slots) == (task_id, stage.node_id, (1, 3))
        stage.until(lambda: stage.cluster.observe().tasks[0].pid is not None, "the process exists")

    def test_an_exit_is_reported_once_with_its_code(self, stage: Stage) -> None:
        exits = _watch(stage)
        first, second = _start(stage, "job-1.1", (0,)), _start(stage, "job-1.2", (1,))

        stage.finish(second, 3)
        stage.until(lambda: len(exits) == 1, "the first exit is reported")
        stage.finish(first, 0)
        stage.until(lambda: len(exits) == 2, "the second exit is reported")
        stage.pass_time()

        assert exits == [TaskExit(task_id=second, exit_code=3), TaskExit(task_id=first, exit_code=0)]

    def test_a_task_whose_exit_was_reported_is_not_observed_and_its_slots_are_free(self, stage: Stage) -> None:
        exits: list[TaskExit] = []
        observed: list[tuple[TaskId, ...]] = []

        def listener(ended: TaskExit) -> None:
            observed.append(tuple(task.task_id for task in stage.cluster.observe().tasks))
            if ended.task_id == "job-1.1":
                _start(stage, "job-1.2", (0, 1))
            exits.append(ended)

        stage.cluster.watch(listener)
        stage.finish(_start(stage, "job-1.1", (0, 1)), 0)
        stage.until(lambda: len(exits) == 1, "the exit is reported")
        stage.finish(TaskId("job-1.2"), 0)
        stage.until(lambda: len(exits) == 2, "the task that the listener started has ended")

        assert observed == [(), ()]

    def test_starting_a_living_task_again_does_nothing(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = _start(stage, "job-1.1", (0,))

        stage.cluster.start(stage.order(task_id, (0,)))
        stage.cluster.start(stage.order(task_id, (1,)))

        assert [task.slots for task in stage.cluster.observe().tasks] == [(0,)]
        stage.finish(task_id, 0)
        stage.until(lambda: len(exits) == 1, "the exit is reported")

    def test_starting_a_task_that_has_ended_does_nothing(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = _start(stage, "job-1.1", (0,))
        order = stage.order(task_id, (0,))
        stage.finish(task_id, 0)
        stage.until(lambda: len(exits) == 1, "the exit is reported")

        stage.cluster.start(order)
        stage.pass_time()

        assert stage.cluster.observe().tasks == ()
        assert len(exits) == 1

    def test_a_free_address_can_be_listened_on_and_is_not_given_twice(self, stage: Stage) -> None:
        addresses = [stage.cluster.free_address(stage.node_id) for _ in range(8)]

        assert len({address.port for address in addresses}) == len(addresses)
        assert all(address.host and 1024 <= address.port < 65_536 for address in addresses)

    def test_a_node_that_does_not_exist_has_no_address(self, stage: Stage) -> None:
        assert "nowhere" in _refused(lambda: stage.cluster.free_address(NodeId("nowhere")))

    def test_a_node_that_does_not_exist_is_refused(self, stage: Stage) -> None:
        order = stage.order(TaskId("job-1.1"), (0,))
        moved = StartOrder(
            task_id=order.task_id,
            node_id=NodeId("nowhere"),
            slots=(0,),
            argv=order.argv,
            env=order.env,
            cwd=order.cwd,
            log_dir=order.log_dir,
        )

        assert "nowhere" in _refusal(stage, moved)

    def test_a_slot_that_does_not_exist_is_refused(self, stage: Stage) -> None:
        assert str(NUM_SLOTS) in _refusal(stage, stage.order(TaskId("job-1.1"), (0, NUM_SLOTS)))

    def test_a_slot_that_another_task_holds_is_refused_and_the_holder_named(self, stage: Stage) -> None:
        _start(stage, "job-1.1", (0, 1))

        assert "job-1.1" in _refusal(stage, stage.order(TaskId("job-1.2"), (1, 2)))
        assert len(stage.cluster.observe().tasks) == 1
        _start(stage, "job-1.2", (2,))

    def test_a_drained_task_leaves_by_itself(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = _start(stage, "job-1.1", (0,))
        stage.until(lambda: stage.running(task_id), "the program has begun")

        stage.cluster.drain(task_id)
        stage.cluster.drain(task_id)
        stage.until(lambda: bool(exits), "the exit is reported")

        assert [(ended.task_id, ended.exit_code, ended.error) for ended in exits] == [(task_id, 0, "")]

    def test_a_killed_task_ends_with_the_signals_number(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = _start(stage, "job-1.1", (0,))
        stage.until(lambda: stage.running(task_id), "the program has begun")

        stage.cluster.kill(task_id)
        stage.cluster.kill(task_id)
        stage.until(lambda: bool(exits), "the exit is reported")

        assert exits == [TaskExit(task_id=task_id, exit_code=-9)]

    def test_a_task_killed_right_after_its_start_still_exits_once(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = _start(stage, "job-1.1", (0,))

        stage.cluster.kill(task_id)
        stage.until(lambda: bool(exits), "the exit is reported")
        stage.pass_time()

        assert [ended.task_id for ended in exits] == [task_id]

    def test_a_task_that_is_not_made_to_show_its_stacks_goes_on_when_it_is_asked_to(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = _start(stage, "job-1.1", (0,))
        stage.until(lambda: stage.running(task_id), "the program has begun")

        stage.cluster.show_stacks(task_id)
        stage.pass_time()
        assert not exits

        stage.finish(task_id, 3)
        stage.until(lambda: bool(exits), "the exit is reported")
        assert exits[0].exit_code == 3

    def test_draining_or_killing_what_does_not_live_does_nothing(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = _start(stage, "job-1.1", (0,))
        stage.finish(task_id, 0)
        stage.until(lambda: bool(exits), "the exit is reported")

        for gone in (task_id, TaskId("job-9.9")):
            stage.cluster.drain(gone)
            stage.cluster.kill(gone)
            stage.cluster.show_stacks(gone)
        stage.pass_time()

        assert len(exits) == 1

    def test_a_task_that_cannot_be_started_exits_once_with_the_reason(self, stage: Stage) -> None:
        exits = _watch(stage)
        task_id = TaskId("job-1.1")

        stage.cluster.start(stage.hopeless_order(task_id, (0,)))
        stage.until(lambda: bool(exits), "the exit is reported")
        stage.pass_time()

        (ended,) = exits
        assert (ended.task_id, ended.exit_code) == (task_id, None)
        assert ended.error
        _start(stage, "job-1.2", (0,))

    def test_an_exit_that_nobody_watched_is_told_to_who_watches_next(self, stage: Stage) -> None:
        task_id = _start(stage, "job-1.1", (0,))
        stage.finish(task_id, 5)
        stage.until(lambda: stage.cluster.observe().tasks == (), "the task is gone")

        exits = _watch(stage)
        stage.until(lambda: bool(exits), "the exit is reported")

        assert exits == [TaskExit(task_id=task_id, exit_code=5)]

    def test_an_exit_tells_what_the_task_left_behind(self, stage: Stage) -> None:
        exits = _watch(stage)
        facts = ExitFacts(
            step=7, stderr="warning\nit broke ü\n", stderr_at=1_700_000_000.25, unsent="a\nü\n", saved_model=True
        )
        stage.leave_behind(TaskId("job-1.1"), facts)
        first, second = _start(stage, "job-1.1", (0,)), _start(stage, "job-1.2", (1,))

        stage.finish(first, 1)
        stage.until(lambda: len(exits) == 1, "the first exit is reported")
        stage.finish(second, 0)
        stage.until(lambda: len(exits) == 2, "the second exit is reported")

        assert exits == [
            TaskExit(task_id=first, exit_code=1, facts=facts),
            TaskExit(task_id=second, exit_code=0, facts=ExitFacts()),
        ]

    def test_of_a_task_that_is_killed_the_facts_come_too_and_of_a_long_stderr_the_end(self, stage: Stage) -> None:
        stage.leave_behind(TaskId("job-1.1"), ExitFacts(stderr="x" * 100_000 + "the end", stderr_at=1.0))
        task_id = _start(stage, "job-1.1", (0,))
        stage.until(lambda: stage.running(task_id), "the program has begun")
        stage.cluster.kill(task_id)
        stage.until(lambda: stage.cluster.observe().tasks == (), "the task is gone")
        exits = _watch(stage)
        stage.until(lambda: bool(exits), "the exit is reported to who watches only now")

        stderr = "x" * (MAX_STDERR_BYTES - 7) + "the end"
        assert exits == [TaskExit(task_id=task_id, exit_code=-9, facts=ExitFacts(stderr=stderr, stderr_at=1.0))]

    def test_an_exit_is_reported_once_however_often_one_watches(self, stage: Stage) -> None:
        first, second = _start(stage, "job-1.1", (0,)), _start(stage, "job-1.2", (1,))
        stage.finish(first, 1)
        stage.until(lambda: len(stage.cluster.observe().tasks) == 1, "the task is gone")
        watches = [_watch(stage), _watch(stage), _watch(stage)]
        stage.until(lambda: any(watches), "the exit is reported")
        stage.finish(second, 2)
        stage.until(lambda: sum(map(len, watches)) == 2, "the other exit is reported")
        stage.pass_time()

        assert sorted(ended.exit_code or 0 for exits in watches for ended in exits) == [1, 2]

    def test_many_tasks_end_once_each(self, stage: Stage) -> None:
        exits = _watch(stage)
        started = [_start(stage, f"job-{number}.1", (number,)) for number in range(NUM_SLOTS)]

        for number, task_id in enumerate(started):
            stage.finish(task_id, number)
        stage.until(lambda: len(exits) == NUM_SLOTS, "all exits are reported")

        assert {ended.task_id: ended.exit_code for ended in exits} == {
            task_id: number for number, task_id in enumerate(started)
        }

    def test_what_lives_goes_on_whatever_jobs_are_retained(self, stage: Stage) -> None:
        task_id = _start(stage, "job-1.1", (0,))
        stage.until(lambda: stage.running(task_id), "the program has begun")
        stage.cluster.retain([JobId("job-1"), JobId("job-7")])
        stage.cluster.retain([])
        stage.pass_time()

        assert [task.task_id for task in stage.cluster.observe().tasks] == [task_id]

    def test_a_sidecar_beside_what_does_not_run_ends_with_the_reason(self, stage: Stage) -> None:
        ended: list[str] = []

        stage.cluster.start_sidecar(_beside(stage, 9), TaskId("job-9.9"), ended.append)
        stage.until(lambda: bool(ended), "it is told")
        stage.pass_time()

        (why,) = ended
        assert why

    def test_a_sidecar_holds_no_slot_and_ends_when_it_is_to_and_its_task_goes_on(self, stage: Stage) -> None:
        exits, ended = _watch(stage), list[str]()
        task_id = _start(stage, "job-1.1", (0, 1))
        stage.until(lambda: stage.cluster.observe().tasks[0].pid is not None, "the process exists")
        with create_server(("127.0.0.1", 0)) as server:  # it waits there for an answer
            order = _beside(stage, server.getsockname()[1])
            stage.cluster.start_sidecar(order, task_id, ended.append)
            stage.pass_time()
            assert [task.task_id for task in stage.cluster.observe().tasks] == [task_id]
            assert ended == []
            for _ in range(2):
                stage.cluster.end_sidecar(order.task_id)
            stage.until(lambda: bool(ended), "it is told")
            stage.cluster.end_sidecar(order.task_id)
            stage.pass_time()

        assert ended == [""]
        assert not exits

    def test_a_sidecar_ends_with_its_task_and_before_the_exit_is_reported(self, stage: Stage) -> None:
        told: list[object] = []
        stage.cluster.watch(told.append)
        task_id = _start(stage, "job-1.1", (0,))
        stage.until(lambda: stage.cluster.observe().tasks[0].pid is not None, "the process exists")
        with create_server(("127.0.0.1", 0)) as server:
            stage.cluster.start_sidecar(_beside(stage, server.getsockname()[1]), task_id, told.append)
            stage.finish(task_id, 3)
            stage.until(lambda: len(told) == 2, "both are told")

        why, exited = told
        assert why
        assert exited == TaskExit(task_id=task_id, exit_code=3)

    def test_closing_twice_is_closing_once(self, stage: Stage) -> None:
        stage.cluster.close()
        stage.cluster.close()


def _beside(stage: Stage, port: int) -> StartOrder:
    """Return an order for a sidecar that speaks to a server at this port."""
    told = SidecarSettings(tunnel_id="t", key="k", url=f"http://127.0.0.1:{port}")
    order = stage.order(TaskId("job-1.1-t"), ())
    return replace(order, argv=(), env={**order.env, **told.to_env()}, log_dir="", result_dir=None, model=None)


def _start(stage: Stage, task_id: str, slots: tuple[int, ...]) -> TaskId:
    stage.cluster.start(stage.order(TaskId(task_id), slots))
    return TaskId(task_id)


def _watch(stage: Stage) -> list[TaskExit]:
    exits: list[TaskExit] = []

    def listener(ended: TaskExit) -> None:
        if not ended.task_id.startswith(MARKER):
            exits.append(ended)

    stage.cluster.watch(listener)
    return exits


def _refusal(stage: Stage, order: StartOrder) -> str:
    return _refused(lambda: stage.cluster.start(order))


def _refused(call: Callable[[], object]) -> str:
    try:
        call()
    except ValueError as refusal:
        return str(refusal)
    raise AssertionError("it was not refused")
