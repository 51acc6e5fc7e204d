"""A third kind of workload is one class and its registration: no room knows it, and the loop carries it all the way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.control.conftest import World

from pliant.api.jobs import JobPatch
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.kind import Kind, Kinds, TaskStart
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import complete, fail, job_event, kill_late, put_task, task_event, vacate
from pliant.control.kinds.elastic.kind import Elastic
from pliant.control.kinds.fixed import Fixed
from pliant.core.errors import Conflict
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId, JobSpec, Task, TaskId
from pliant.core.lifecycle import JobEvent, JobState, TaskEvent, TaskState
from pliant.core.plan import Placement
from pliant.core.ports import TaskExit

AGAIN = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrandJob(LiveJob):
    num_runs: int = 0


class Errand(Kind[ErrandJob]):
    """A program that is run until it says that its errand is done; exit code 75 says: not yet."""

    name = "errand"

    def claims(self, spec: JobSpec) -> bool:
        return "ERRAND" in spec.env

    def begin(self, job: Job, now: float) -> ErrandJob:
        return ErrandJob(job=job, adopted_at=now)

    def size(self, spec: JobSpec) -> str:
        return "an errand"

    def check_resize(self, live: ErrandJob, min_tasks: int, max_tasks: int) -> None:
        raise Conflict("one runs an errand, never two")

    def starts(self, draft: Draft, live: ErrandJob, placements: Sequence[Placement]) -> tuple[TaskStart, ...]:
        return tuple(TaskStart(placement=placement, env={"SHOES": "on"}, note="and runs") for placement in placements)

    def observe(self, draft: Draft, live: ErrandJob, pids: Mapping[TaskId, int]) -> None:
        for task in live.running:
            if task.state is TaskState.STARTING and task.id in pids:
                live = put_task(draft, live, replace(task, pid=pids[task.id]))
                live = task_event(draft, live, task.id, TaskEvent.READY)
                live = task_event(draft, live, task.id, TaskEvent.JOIN)
                live = job_event(draft, live, JobEvent.TRAIN, "")

    def take_exit(self, draft: Draft, live: ErrandJob, task: Task, ended: TaskExit) -> None:
        if live.over or task.state is TaskState.LEAVING:
            live = task_event(draft, live, task.id, TaskEvent.EXIT)
            if not live.over:
                vacate(draft, live, task.reason)
        elif ended.exit_code == 0:
            live = task_event(draft, live, task.id, TaskEvent.EXIT)
            complete(draft, live, f"the errand is done, at run {live.num_runs + 1}")
        elif ended.exit_code == AGAIN:
            live = replace(live, num_runs=live.num_runs + 1)
            vacate(draft, task_event(draft, live, task.id, TaskEvent.EXIT), "not yet")
        else:
            live = task_event(draft, live, task.id, TaskEvent.LOSE, "fell")
            fail(draft, live, f"the errand failed: {ended.facts.stderr}")

    def kill_late(self, draft: Draft, live: ErrandJob, task: Task) -> ErrandJob:
        return kill_late(draft, live, task.id)


class ErrandWorld(World):
    kinds = Kinds(Errand(), Fixed(), Elastic())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = ErrandWorld(tmp_path, 4)
    yield world
    world.store.close()


def submit(world: World, **changes: object) -> JobId:
    return world.submit(env={"ERRAND": "bread"}, **changes)


def test_it_is_scheduled_beside_others_started_judged_by_its_kind_and_ends(world: World) -> None:
    training = world.submit(max_tasks=4)
    world.settle(3)
    errand = submit(world, priority=10_000)
    world.settle(3)

    (task,) = world.tasks(errand)
    assert (world.job(errand).state, task.state) == (JobState.RUNNING, TaskState.TRAINING)
    assert len(world.members(training)) == 3, "the scheduler made room for it as for any workload"
    (order,) = [order for order in world.cluster.orders if order.task_id == task.id]
    assert (order.env["SHOES"], order.env["ERRAND"]) == ("on", "bread")
    assert "PLIANT_TASK_TOKEN" not in order.env
    assert [said for said in world.said(EventKind.TASK_STARTED) if said.endswith("and runs")]
    assert "an errand" in world.said(EventKind.JOB_SUBMITTED)[-1]

    world.exit(task.id, AGAIN)
    world.settle(3)
    (again,) = world.tasks(errand)
    assert again.id != task.id
    world.exit(again.id, 0)
    world.settle(3)
    assert (world.job(errand).state, world.job(errand).reason) == (JobState.COMPLETED, "the errand is done, at run 2")
    assert len(world.members(training)) == 4


def test_its_failure_quotes_what_came_with_the_exit(world: World) -> None:
    errand = submit(world)
    (task,) = world.tasks(errand)
    world.leave_behind(task.id, stderr="no bread left")
    world.exit(task.id, 1)
    world.settle()

    assert (world.job(errand).state, world.job(errand).reason) == (
        JobState.FAILED,
        "the errand failed: no bread left",
    )


def test_people_stop_it_and_cannot_resize_it(world: World) -> None:
    errand = submit(world)
    with pytest.raises(Conflict, match="never two"):
        world.control.requests.change(errand, JobPatch(max_tasks=2))
    world.control.requests.stop(errand, "ann")
    world.settle()

    assert world.job(errand).state is JobState.STOPPED


def test_a_new_server_goes_on_with_it(world: World) -> None:
    errand = submit(world)
    (task,) = world.tasks(errand)
    world.restart()
    world.settle(60)
    assert [task.id for task in world.tasks(errand)] == [task.id]
    world.control.ending.drain_all("the server stops")
    world.settle()
    assert (world.job(errand).state, world.control.ending.is_drained()) == (JobState.PAUSED, True)
    world.restart()
    world.settle()

    assert world.job(errand).state is JobState.RUNNING
