"""Fixed jobs: all processes or none, ended and started again together."""

from collections.abc import Callable
from typing import Any

import pytest

from pliant.api.jobs import JobPatch
from pliant.control.jobs.failure import EXITS_S, lines_of
from pliant.control.kinds.fixed import assign_ranks
from pliant.core.errors import Conflict
from pliant.core.event import EventKind
from pliant.core.job import JobId, NodeId, Task
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.plan import NodeView, Placement, PolicyName
from pliant.core.ports import Address, EventFilter, StartOrder

World = Any

TORCHRUN = {
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
}


def submit(world: World, size: int, **changes: Any) -> JobId:
    return JobId(world.submit(fixed=True, min_tasks=size, max_tasks=size, virtual_workers=size, **changes))


def orders(world: World, job_id: JobId) -> list[StartOrder]:
    return [order for order in world.cluster.orders if order.task_id.startswith(f"{job_id}.")]


def names(tasks: tuple[Task, ...]) -> list[str]:
    return [task.id for task in tasks]


def finish(world: World, job_id: JobId) -> None:
    for task in world.tasks(job_id):
        world.exit(task.id, 0)
    world.settle()


def test_all_processes_start_together_with_torchruns_environment(world: World) -> None:
    job_id = submit(world, 3, env={"MINE": "1", "RANK": "9"})

    started = [order.env for order in orders(world, job_id)]
    assert [(env["RANK"], env["LOCAL_RANK"], env["GROUP_RANK"]) for env in started] == [
        ("0", "0", "0"),
        ("1", "1", "0"),
        ("2", "2", "0"),
    ]
    assert {(env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"], env["MASTER_ADDR"]) for env in started} == {
        ("3", "3", "local")
    }
    assert len({env["MASTER_PORT"] for env in started}) == 1
    assert {(env["TORCHELASTIC_RESTART_COUNT"], env["TORCHELASTIC_RUN_ID"]) for env in started} == {("0", job_id)}
    assert {env["MINE"] for env in started} == {"1"}
    assert all(env.keys() >= TORCHRUN and "PLIANT_TASK_TOKEN" not in env for env in started)
    assert [order.sees for order in orders(world, job_id)] == [(0, 1, 2)] * 3


def test_it_runs_when_all_processes_exist_and_completes_when_all_have_ended_well(world: World) -> None:
    job_id = submit(world, 3)
    assert world.job(job_id).state is JobState.RUNNING
    assert [(task.state, task.pid is None) for task in world.tasks(job_id)] == [(TaskState.TRAINING, False)] * 3

    first, *others = world.tasks(job_id)
    world.exit(first.id, 0)
    world.settle(3)
    assert world.job(job_id).state is JobState.RUNNING
    assert names(world.tasks(job_id)) == [task.id for task in others], "nobody takes the place of one that is done"
    finish(world, job_id)

    job = world.job(job_id)
    assert (job.state, job.reason) == (JobState.COMPLETED, "all 3 processes ended with exit code 0")
    assert (job.num_restarts, job.num_slots) == (0, 0)


def test_one_that_has_a_single_process_says_so(world: World) -> None:
    job_id = submit(world, 1)
    finish(world, job_id)

    assert world.job(job_id).reason == "its process ended with exit code 0"
    assert not world.control.jobs()


def test_one_that_fails_ends_all_and_all_start_again_on_another_port(world: World) -> None:
    job_id = submit(world, 3)
    before = names(world.tasks(job_id))
    world.exit(before[1], 1)
    world.settle(3)

    assert [(t.state, t.exit_code) for t in world.store.tasks(job_id)[:3]] == [
        (TaskState.EXITED, -15),
        (TaskState.LOST, 1),
        (TaskState.EXITED, -15),
    ]
    assert len(world.tasks(job_id)) == 3
    assert not set(before) & set(names(world.tasks(job_id)))
    job = world.job(job_id)
    assert (job.state, job.num_restarts) == (JobState.RUNNING, 1)
    ports = [order.env["MASTER_PORT"] for order in orders(world, job_id)]
    assert ports[0] != ports[3]
    assert orders(world, job_id)[3].env["TORCHELASTIC_RESTART_COUNT"] == "1"
    (lost,) = world.said(EventKind.TASK_LOST)
    assert lost.endswith("job-1.2 of job-1 (digits) ended with exit code 1; all processes start again (restart 1 of 3)")


def test_processes_that_had_finished_start_again_with_the_others(world: World) -> None:
    job_id = submit(world, 2)
    first, second = names(world.tasks(job_id))
    world.exit(first, 0)
    world.settle()
    world.exit(second, -9)
    world.settle(3)
    assert len(world.tasks(job_id)) == 2
    finish(world, job_id)
    assert (world.job(job_id).state, world.job(job_id).num_restarts) == (JobState.COMPLETED, 1)


def test_several_lost_together_are_one_restart(world: World) -> None:
    job_id = submit(world, 4)
    for task in world.tasks(job_id):
        world.exit(task.id, -9)
    world.settle(3)
    assert (world.job(job_id).num_restarts, len(world.tasks(job_id))) == (1, 4)


def test_of_a_progress_bar_the_reason_quotes_what_came_last() -> None:
    written = "start\r\n" + "".join(f"\r{percent}%" for percent in range(101)) + "\nRuntimeError: no\n"

    assert lines_of(written) == ["start", "100%", "RuntimeError: no", ""]


def test_too_many_restarts_fail_it_with_the_end_of_stderr(world: World) -> None:
    job_id = submit(world, 2, max_restarts=2)
    for attempt in range(3):
        assert not world.job(job_id).ended
        task = world.tasks(job_id)[1]
        world.leave_behind(task.id, stderr=f"Traceback\nRuntimeError: attempt {attempt}\n")
        world.exit(task.id, 1)
        world.settle(3)
    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert job.reason.startswith(
        "job-1.6 ended with exit code 1 after 2 restarts, and no restart is left; the end of its std"
    )
    assert job.reason.endswith("RuntimeError: attempt 2")
    assert (job.num_restarts, len(world.store.tasks(job_id)), job.num_slots) == (2, 6, 0)


RAISED = "Traceback (most recent call last):\nRuntimeError: "


def test_of_two_that_raise_the_reason_quotes_the_first_though_the_other_ended_before_it(world: World) -> None:
    job_id = submit(world, 3, max_restarts=0)
    ended, cause, _ = (task.id for task in world.tasks(job_id))
    world.leave_behind(cause, stderr=RAISED + "the cause", stderr_at=1.0)
    world.leave_behind(ended, stderr=RAISED + "connection closed by peer", stderr_at=2.0)
    world.exit(ended, 1)
    world.settle()
    reason = world.job(job_id).reason
    assert reason.startswith(
        f"{ended} ended with exit code 1, and no restart is left; {cause} had raised before it; the end of"
    )
    assert reason.endswith("RuntimeError: the cause")


@pytest.mark.parametrize("unheard", [False, True])
def test_a_failure_outlives_a_server_that_dies_before_the_others_have_ended(world: World, *, unheard: bool) -> None:
    job_id = submit(world, 3, max_restarts=0)
    failed = world.tasks(job_id)[0].id
    world.exit(failed, 1)
    while not world.job(job_id).reason:
        world.clock.advance(0.0)
        world.control.tick()
    if unheard:
        world.clock.advance(0.0)  # their exits reach the old server, which dies before it has written them down
    assert (world.job(job_id).state, len(world.tasks(job_id))) == (JobState.RUNNING, 2)
    world.restart()
    world.settle(world.control.settings.timeouts.messages_s)
    assert (world.job(job_id).state, world.job(job_id).reason) == (
        JobState.FAILED,
        f"{failed} ended with exit code 1, and no restart is left",
    )
    assert (world.job(job_id).num_restarts, len(world.store.tasks(job_id))) == (0, 3), "nothing was started again"
    assert not world.cluster.observe().tasks


def test_one_that_is_killed_is_not_explained_by_what_the_others_raise_for_lack_of_it(world: World) -> None:
    job_id = submit(world, 2, max_restarts=0)
    killed, other = (task.id for task in world.tasks(job_id))
    world.leave_behind(killed, stderr="a warning", stderr_at=2.0)
    world.leave_behind(other, stderr=RAISED + "connection closed by peer", stderr_at=1.0)
    world.exit(killed, -9)
    world.settle()
    assert world.job(job_id).reason.endswith("a warning")
    assert other not in world.job(job_id).reason


def test_it_fails_when_the_last_of_its_processes_is_gone_and_nobody_has_its_slots_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(world, 8, max_restarts=0)
    first, *others = (task.id for task in world.tasks(job_id))
    waiting = world.submit()
    monkeypatch.setattr(world.cluster, "kill", lambda _: None)
    world.exit(first, 1)
    world.settle(1)
    assert (world.job(job_id).state, world.job(job_id).num_slots) == (JobState.RUNNING, 7)
    assert names(world.tasks(job_id)) == others
    assert len(world.tasks(waiting)) == 1, "the slot that is free is granted"
    for task_id in others:
        assert world.job(job_id).state is JobState.RUNNING
        world.exit(task_id, -9)
        world.settle(0.1)
    assert (world.job(job_id).state, world.job(job_id).num_restarts) == (JobState.FAILED, 0)


def test_a_process_that_does_not_go_keeps_its_job_from_failing_for_a_moment_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(world, 2, max_restarts=0)
    first, _ = (task.id for task in world.tasks(job_id))
    monkeypatch.setattr(world.cluster, "kill", lambda _: None)
    world.leave_behind(first, stderr=RAISED + "the cause", stderr_at=1.0)
    world.exit(first, 1)
    world.settle(EXITS_S - 0.5)
    assert world.job(job_id).state is JobState.RUNNING
    world.settle(1)
    job = world.job(job_id)
    assert (job.state, job.num_slots) == (JobState.FAILED, 1)
    assert job.reason.endswith("RuntimeError: the cause")


def test_a_person_who_stops_it_while_it_fails_learns_that_it_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(world, 2, max_restarts=0)
    first, second = (task.id for task in world.tasks(job_id))
    monkeypatch.setattr(world.cluster, "kill", lambda _: None)
    world.exit(first, 1)
    world.settle(0.1)
    world.control.requests.stop(job_id, "ann")
    world.exit(second, -9)
    world.settle(0.1)
    assert world.job(job_id).state is JobState.FAILED


def test_without_restarts_the_first_failure_is_the_last(world: World) -> None:
    job_id = submit(world, 2, max_restarts=0)
    world.exit(world.tasks(job_id)[0].id, 3)
    world.settle()
    assert world.job(job_id).state is JobState.FAILED
    assert "ended with exit code 3, and no restart is left" in world.job(job_id).reason


def test_a_process_that_cannot_be_started_fails_it(world: World) -> None:
    world.cluster.refuse("job-1.2", "no such interpreter")
    job_id = submit(world, 2)
    assert world.job(job_id).state is JobState.FAILED
    assert "job-1.2 could not be started: no such interpreter" in world.job(job_id).reason


def test_a_machine_that_cannot_run_it_is_avoided_and_costs_no_restart(world: World) -> None:
    world.cluster.add_node(NodeView(id=NodeId("other"), slots=tuple(range(8))))
    world.cluster.refuse("job-1.2", "its environment was built for aarch64", is_unfit=True)
    job_id = submit(world, 2, max_restarts=0)
    world.settle()
    (refused,) = {order.node_id for order in orders(world, job_id)[:2]}
    assert {task.node_id for task in world.tasks(job_id)} == {"local", "other"} - {refused}
    assert (world.job(job_id).state, world.job(job_id).num_restarts) == (JobState.RUNNING, 0)
    assert world.said(EventKind.WARNING) == [
        f"job-1 (digits): {refused} is avoided from now on, for this job only: its environment was built for aarch64"
    ]


def test_a_machine_that_cannot_run_it_fails_it_if_it_fits_on_no_other(world: World) -> None:
    world.cluster.add_node(NodeView(id=NodeId("other"), slots=(0,)))
    world.cluster.refuse("job-1.2", "its environment was built for aarch64", is_unfit=True)
    job_id = submit(world, 2)
    assert world.job(job_id).state is JobState.FAILED
    assert "job-1.2 could not be started: its environment was built for aarch64" in world.job(job_id).reason


def test_it_waits_for_all_its_slots_and_an_elastic_job_makes_room(world: World) -> None:
    elastic = world.submit(max_tasks=8)
    world.settle(3)
    assert len(world.members(elastic)) == 8
    world.links.obedient = False  # it is told to leave, and takes its time
    fixed = submit(world, 6)
    world.settle(1)
    assert world.job(fixed).state is JobState.PENDING
    assert orders(world, fixed) == []
    leaving = [task for task in world.tasks(elastic) if task.state is TaskState.LEAVING]
    for task in leaving[1:]:
        world.exit(task.id, 0)
    world.settle(1)
    assert orders(world, fixed) == [], "five of six slots are not enough"
    world.exit(leaving[0].id, 0)
    world.settle(1)
    assert (world.job(fixed).state, len(orders(world, fixed))) == (JobState.RUNNING, 6)
    assert len(world.tasks(elastic)) == 2


def test_more_processes_than_slots_wait_and_say_so(make_world: Callable[[int], World]) -> None:
    world = make_world(2)
    job_id = submit(world, 3)
    assert world.job(job_id).state is JobState.PENDING
    assert "needs 3 slots and queue default (group all) has only 2" in world.job(job_id).why


@pytest.mark.parametrize("policy", list(PolicyName))
def test_once_it_runs_nobody_takes_its_slots(make_world: Callable[..., World], policy: PolicyName) -> None:
    world = make_world(4, policy)
    fixed = submit(world, 3)
    urgent = world.submit(min_tasks=2, max_tasks=4, priority=10_000)
    world.settle(3)
    assert world.job(fixed).state is JobState.RUNNING
    assert world.job(urgent).state is JobState.PENDING
    world.exit(world.tasks(fixed)[0].id, 1)
    world.settle(3)
    assert (world.job(fixed).state, world.job(fixed).num_restarts) == (JobState.RUNNING, 1)
    assert world.job(urgent).state is JobState.PENDING, "it keeps its place while it starts again"
    assert "digits" in world.job(urgent).why
    finish(world, fixed)
    world.settle(3)
    assert world.job(urgent).state is JobState.RUNNING


def test_it_cannot_be_resized_but_its_priority_can(world: World) -> None:
    job_id = submit(world, 2)
    for patch in (JobPatch(max_tasks=3), JobPatch(min_tasks=1), JobPatch(priority=7, max_tasks=1)):
        with pytest.raises(Conflict, match=r"job-1 is fixed at 2: .* submit it again with another --fixed"):
            world.control.requests.change(job_id, patch)
    assert world.control.requests.change(job_id, JobPatch(priority=7, max_tasks=2)).priority == 7


def test_stopping_it_ends_its_processes(world: World) -> None:
    job_id = submit(world, 3)
    world.control.requests.stop(job_id, "ann")
    assert world.job(job_id).state is JobState.STOPPING
    world.settle(1)
    assert world.cluster.drained == ["job-1.1", "job-1.2", "job-1.3"]
    assert (world.job(job_id).state, world.job(job_id).num_slots) == (JobState.STOPPED, 0)


def test_a_shutdown_ends_it_and_the_next_server_starts_it_again_uncounted(world: World) -> None:
    job_id = submit(world, 2)
    world.control.ending.drain_all("the server stops")
    world.settle(2)
    assert world.control.ending.is_drained()
    assert world.job(job_id).state is JobState.PAUSED
    world.restart()
    world.settle(2)
    assert (world.job(job_id).state, len(world.tasks(job_id)), world.job(job_id).num_restarts) == (
        JobState.RUNNING,
        2,
        0,
    )


def test_a_killed_server_is_missed_by_nobody(world: World) -> None:
    job_id = submit(world, 3)
    tasks = world.tasks(job_id)
    world.exit(tasks[0].id, 0)
    world.settle()
    world.restart()
    world.settle(120)
    assert names(world.tasks(job_id)) == [task.id for task in tasks[1:]], "silence is no sign of death"
    finish(world, job_id)
    job = world.job(job_id)
    assert (job.state, job.reason) == (JobState.COMPLETED, "all 3 processes ended with exit code 0")


def test_processes_that_vanished_with_the_server_start_again_uncounted(world: World) -> None:
    job_id = submit(world, 2)
    for task in world.tasks(job_id):
        world.cluster.vanish(task.id)
    world.restart()
    world.settle(3)
    assert (world.job(job_id).state, world.job(job_id).num_restarts) == (JobState.RUNNING, 0)
    assert names(world.tasks(job_id)) == ["job-1.3", "job-1.4"]


def test_processes_that_went_with_their_machine_start_again_uncounted(world: World) -> None:
    job_id = submit(world, 2, max_restarts=0)
    world.cluster.lose(world.tasks(job_id)[0].id, "was on a machine of which nothing was heard")
    world.settle()

    assert [task.id for task in world.tasks(job_id)] == [f"{job_id}.3", f"{job_id}.4"]
    assert (world.job(job_id).state, world.job(job_id).num_restarts) == (JobState.RUNNING, 0)


def test_a_lost_node_ends_it_whole_and_it_waits_until_there_is_room(world: World) -> None:
    world.cluster.add_node(NodeView(id=NodeId("other"), slots=(0, 1, 2, 3)))
    job_id = submit(world, 12)
    assert world.job(job_id).state is JobState.RUNNING
    world.cluster.lose_node("other")
    world.settle(3)
    assert (world.job(job_id).state, world.tasks(job_id)) == (JobState.PAUSED, ())
    world.cluster.add_node(NodeView(id=NodeId("third"), slots=(0, 1, 2, 3)))
    world.settle(3)
    assert (world.job(job_id).state, len(world.tasks(job_id))) == (JobState.RUNNING, 12)


def test_ranks_of_a_node_follow_each_other_and_devices_are_numbered_by_local_rank() -> None:
    def at(node: str, *slots: int) -> Placement:
        return Placement(node_id=NodeId(node), slots=slots)

    meeting = Address(host="a", port=1)
    found = assign_ranks((at("a", 0, 1), at("a", 4, 5), at("b", 2, 3)), meeting)

    ranks = [(one.rank, one.local_rank, one.local_size, one.node_rank) for one in found]
    assert ranks == [(0, 0, 2, 0), (1, 1, 2, 0), (2, 0, 1, 1)]
    assert {(s.size, s.num_nodes, s.meeting) for s in found} == {(3, 2, meeting)}
    assert [s.node_slots for s in found] == [(0, 4, 1, 5), (0, 4, 1, 5), (2, 3)]


def test_a_machine_without_a_port_to_meet_at_holds_up_that_job_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_node_id: NodeId) -> Address:
        raise OSError("all are in use; try again")

    with monkeypatch.context() as patch:
        patch.setattr(world.cluster, "free_address", refuse)
        job_id = submit(world, 2)
        other = JobId(world.submit(max_tasks=1))
        assert world.job(job_id).state is JobState.PENDING
        assert len(world.tasks(other)) == 1
        world.settle(5)
    (said,) = world.store.events(EventFilter(kinds=(EventKind.WARNING,)))
    assert "local has no port at which its processes could meet: all are in use; try again" in said.message

    world.settle(2)
    assert len(world.tasks(job_id)) == 2
