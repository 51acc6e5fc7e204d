"""Tasks that are lost again and again: what the job is told, and where it is placed from then on."""

from typing import Any

import pytest

from pliant.api.jobs import JobPatch
from pliant.control.kinds.elastic.exits import RECOVERY_S
from pliant.core.event import EventKind
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.link import Hello
from pliant.core.plan import NodeView
from pliant.core.ports import EventFilter

World = Any
BAD, GOOD = NodeId("bad"), NodeId("good")


def lose(world: World, task_id: TaskId, *, step: int | None = None, code: int = -9, settle_s: float = 10.0) -> None:
    if step is not None:
        world.leave_behind(task_id, step=step)
    world.leave_behind(task_id, stderr=f"last words of {task_id}\n")
    world.exit(task_id, code)
    world.settle(settle_s)


def nodes_of(world: World, job_id: JobId) -> list[NodeId]:
    return [task.node_id for task in world.tasks(job_id)]


def newest(world: World, job_id: JobId) -> TaskId:
    task_id: TaskId = world.tasks(job_id)[-1].id
    return task_id


def test_a_lone_worker_that_dies_at_the_same_step_three_times_fails_its_job(world: World) -> None:
    job_id = world.submit()
    for number in (1, 2, 3):
        assert world.job(job_id).state is JobState.RUNNING
        lose(world, TaskId(f"job-1.{number}"), step=7, code=-11)

    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert job.reason.startswith("step 7 kills whoever computes it: 3 times in a row workers were lost at it")
    assert all(f"job-1.{number} on local was killed by SIGSEGV" in job.reason for number in (1, 2, 3))
    assert "what to do: a native library crashed" in job.reason
    assert job.reason.endswith("last words of job-1.3")
    assert not world.cluster.observe().tasks


def test_a_step_that_kills_one_survivor_after_another_fails_the_job(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    world.train(job_id, steps=7)
    for number in (3, 1, 2):
        assert world.job(job_id).state is JobState.RUNNING
        lose(world, TaskId(f"job-1.{number}"), step=7, settle_s=0.2)

    assert world.job(job_id).state is JobState.FAILED
    assert world.job(job_id).reason.startswith("step 7 kills")


def test_who_noted_a_step_and_died_before_it_could_tell_that_it_trains_was_a_member(world: World) -> None:
    job_id = world.submit()
    lose(world, TaskId("job-1.1"), step=7)
    world.links.obedient = False  # nobody hears any more that a task trains
    lose(world, newest(world, job_id), step=7)
    lose(world, newest(world, job_id), step=7)

    assert world.job(job_id).reason.startswith("step 7 kills")


def test_losses_between_which_the_training_went_on_are_forgiven(world: World) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle(3)
    for number in range(8):
        world.train(job_id)
        lose(world, world.members(job_id)[number % 2])

    assert world.job(job_id).state is JobState.RUNNING
    assert len(world.members(job_id)) == 2


def test_a_step_that_a_task_noted_and_nobody_told_counts_as_progress(world: World) -> None:
    job_id = world.submit()
    for step in range(1, 9):
        lose(world, newest(world, job_id), step=step)

    assert world.job(job_id).state is JobState.RUNNING


def test_the_survivors_of_a_loss_do_a_step_before_anybody_starts_in_its_place(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    world.train(job_id)
    lose(world, TaskId("job-1.2"), settle_s=0.2)
    assert world.members(job_id) == ("job-1.1", "job-1.3")
    assert newest(world, job_id) == "job-1.3"

    world.train(job_id, steps=0)  # a report from before the loss, late
    assert newest(world, job_id) == "job-1.3"
    world.train(job_id, steps=1)
    assert newest(world, job_id) == "job-1.4"


def test_steps_that_take_long_do_not_keep_a_lost_tasks_place_empty(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    world.train(job_id)
    lose(world, TaskId("job-1.2"), settle_s=RECOVERY_S - 0.1)
    assert newest(world, job_id) == "job-1.3"
    world.settle(0.2)
    assert newest(world, job_id) == "job-1.4"


def test_a_job_below_its_minimum_is_filled_up_at_once(world: World) -> None:
    job_id = world.submit(min_tasks=2, max_tasks=2)
    world.settle(3)
    world.train(job_id)
    lose(world, TaskId("job-1.2"), settle_s=0.2)
    assert newest(world, job_id) == "job-1.3"


@pytest.fixture
def two_nodes(world: World) -> World:
    """The only node is `good`, with two slots; `bad` is still to come."""
    world.cluster.add_node(NodeView(id=GOOD, slots=(0, 1)))
    world.cluster.lose_node(NodeId("local"))
    return world


def test_a_host_on_which_newcomers_die_is_avoided_and_people_are_told(two_nodes: World) -> None:
    world = two_nodes
    job_id = world.submit(max_tasks=4)
    other = world.submit(max_tasks=1, min_tasks=1)
    world.settle(3)
    assert nodes_of(world, job_id) == [GOOD]
    world.links.obedient = False
    world.cluster.add_node(NodeView(id=BAD, slots=(0, 1)))
    world.settle(1)
    lost = 0
    while BAD in nodes_of(world, job_id):
        lost += 1
        for task in [t for t in world.tasks(job_id) if t.node_id == BAD]:
            lose(world, task.id, settle_s=0.0)
        world.settle(20)

    assert lost == 3
    assert world.job(job_id).state is JobState.RUNNING
    assert len(world.cluster.observe().tasks) == 2, "nothing more is started on it"
    (said,) = world.said(EventKind.WARNING)
    assert said.startswith("job-1 (digits): bad is avoided from now on, for this job only: tasks were lost 3 times")
    assert "kept off bad, where its tasks were lost" in world.control.queries.why(job_id).sentence
    assert "kept off" not in world.control.queries.why(other).sentence


def test_a_job_that_dies_wherever_it_runs_fails_after_another_host_was_tried(two_nodes: World) -> None:
    world = two_nodes
    world.cluster.add_node(NodeView(id=BAD, slots=(0, 1)))
    job_id = world.submit()
    tried = []
    while not world.job(job_id).ended:
        tried += nodes_of(world, job_id)
        lose(world, newest(world, job_id), step=7, settle_s=30.0)

    assert len(tried) == 4
    assert len(set(tried[:3])) == 1
    assert set(tried) == {GOOD, BAD}
    assert world.job(job_id).reason.startswith("step 7 kills whoever computes it: 4 times in a row")


@pytest.mark.parametrize("drained", [False, True], ids=["excluded", "drained"])
def test_a_host_is_not_avoided_for_one_that_is_out_of_use(two_nodes: World, drained: bool) -> None:
    world = two_nodes
    world.cluster.add_node(NodeView(id=BAD, slots=(0, 1)))
    out_of_use = world.control.inquiries.machines.out_of_use
    if drained:
        out_of_use.drain(GOOD, "ada")
    else:
        out_of_use.exclude(GOOD, (0, 1), "ECC errors", "ada")
    job_id = world.submit()
    for _ in range(3):
        assert nodes_of(world, job_id) == [BAD]
        lose(world, newest(world, job_id), step=7, settle_s=30.0)

    assert world.job(job_id).reason.startswith("step 7 kills whoever computes it: 3 times in a row")
    assert world.said(EventKind.WARNING) == []


def test_a_training_that_nobody_can_join_goes_on_with_those_it_has(world: World) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle(3)
    world.train(job_id)
    world.links.obedient = False
    world.control.requests.change(job_id, JobPatch(max_tasks=3))
    world.settle(1)
    for lost in range(5):
        assert world.job(job_id).max_tasks == 3, f"given up after {lost} losses"
        newcomer = newest(world, job_id)
        world.say(newcomer, Hello(task_id=newcomer, pid=1))
        lose(world, newcomer, settle_s=15.0)

    job = world.job(job_id)
    assert (job.state, job.max_tasks) == (JobState.RUNNING, 2)
    assert len(world.members(job_id)) == 2
    assert [t.state for t in world.tasks(job_id)] == [TaskState.TRAINING] * 2
    said = world.said(EventKind.JOB_CHANGED)[-1]
    assert "max_tasks is lowered to 2" in said
    assert "5 times in a row a task was lost before it could join" in said
    assert "last words of" in said


def test_the_kernel_is_not_blamed_for_what_pliant_killed(world: World) -> None:
    job_id = world.submit()
    world.links.obedient = False
    world.control.requests.stop(job_id)
    world.settle(61)

    events = world.store.events(EventFilter(kinds=(EventKind.TASK_LEFT, EventKind.TASK_LOST)))
    assert [event.message for event in events] == [
        "job-1.1 did not end in time, was killed by Pliant and has left slot 0 of local"
    ]


def test_who_killed_a_task_is_said_if_it_was_not_pliant(world: World) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle(3)
    world.train(job_id)
    lose(world, world.members(job_id)[1])

    assert (
        "was killed by SIGKILL (not by Pliant; often the kernel, out of memory)" in world.said(EventKind.TASK_LOST)[0]
    )


def test_a_machine_that_cannot_start_a_process_is_avoided_by_a_job_that_trains_elsewhere(two_nodes: World) -> None:
    world = two_nodes
    job_id = world.submit(max_tasks=4)
    world.settle(3)
    world.links.obedient = False
    for number in range(3, 20):
        world.cluster.refuse(TaskId(f"job-1.{number}"), "No space left on device")
    world.cluster.add_node(NodeView(id=BAD, slots=(0, 1)))
    world.settle(60)

    assert world.job(job_id).state is JobState.RUNNING
    assert nodes_of(world, job_id) == [GOOD, GOOD]
    assert "could not be started: No space left on device" in world.said(EventKind.TASK_LOST)[0]
    (said,) = world.said(EventKind.WARNING)
    assert said.startswith("job-1 (digits): bad is avoided from now on, for this job only")


def test_a_job_whose_first_task_a_machine_cannot_start_fails_if_there_is_no_other_one_to_try(two_nodes: World) -> None:
    world = two_nodes
    world.cluster.refuse(TaskId("job-1.1"), "No space left on device")
    world.cluster.refuse(TaskId("job-2.1"), "No space left on device")
    alone = world.submit()
    world.cluster.add_node(NodeView(id=BAD, slots=(0, 1)))
    other = world.submit()
    world.settle(10)

    assert world.job(alone).state is JobState.FAILED
    assert world.job(alone).reason.startswith("job-1.1 could not be started: No space left on device")
    assert world.job(other).state is JobState.RUNNING


def test_many_machines_that_cannot_run_a_training_are_no_losses_of_it(two_nodes: World) -> None:
    world = two_nodes
    for number in range(7):
        world.cluster.add_node(NodeView(id=NodeId(f"bad-{number}"), slots=(0, 1, 2)))
    for number in range(1, 7):
        world.cluster.refuse(TaskId(f"job-1.{number}"), "its environment was built for aarch64", is_unfit=True)
    job_id = world.submit(max_tasks=4)
    world.settle(10)

    warnings = world.store.events(EventFilter(kinds=(EventKind.WARNING,)))
    avoided = {event.data["node_id"] for event in warnings}
    assert len(avoided) == len(warnings) == 6
    assert world.job(job_id).state is JobState.RUNNING
    assert not avoided & set(nodes_of(world, job_id))
