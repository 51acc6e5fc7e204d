"""A job whose files hold too much of a disk fails for good, whatever its kind."""

from typing import Any

import pytest

from pliant.core.event import EventKind
from pliant.core.job import JobId, TaskId
from pliant.core.lifecycle import JobState
from pliant.core.ports import TaskNote

World = Any


@pytest.fixture(params=["fixed", "elastic"])
def job_id(request: pytest.FixtureRequest, world: World) -> JobId:
    changes: dict[str, Any] = {"fixed": True, "min_tasks": 2} if request.param == "fixed" else {}
    job_id = JobId(world.submit(max_tasks=2, virtual_workers=2, **changes))
    world.settle(3)
    assert len(world.tasks(job_id)) == 2
    return job_id


def end_for_its_files(world: World, job_id: JobId, *, code: int = -9) -> None:
    for task in world.tasks(job_id):
        world.leave_behind(task.id, over_disk=True)
        world.exit(task.id, code)
    world.settle(5)


def test_a_job_that_holds_too_much_of_a_disk_fails_and_is_not_started_again(world: World, job_id: JobId) -> None:
    end_for_its_files(world, job_id)

    job = world.job(job_id)
    assert job.state is JobState.FAILED
    way_on = "; when there is room, `pliant submit --resume-from job-1` goes on from its newest checkpoint"
    kept = f"; its files are as they were, see `pliant result {job_id}`"
    assert job.reason.endswith(kept if job.spec.fixed else kept + way_on)
    assert (job.num_restarts, job.num_slots, world.tasks(job_id)) == (0, 0, ())
    assert len(world.store.tasks(job_id)) == 2
    assert len(world.said(EventKind.TASK_LOST)) == 1


def test_what_the_agent_notes_of_a_live_task_is_a_warning(world: World, job_id: JobId) -> None:
    task = world.tasks(job_id)[0]
    world.cluster.note(TaskNote(task_id=task.id, words="writes 324 MiB/s to its stdout"))
    world.cluster.note(TaskNote(task_id=TaskId("job-9.1"), words="is nobody's"))
    world.settle(1)
    assert world.said(EventKind.WARNING) == [f"{task.id} of {job_id} (digits) writes 324 MiB/s to its stdout"]


def test_a_server_that_restarts_does_not_start_it_again_either(world: World, job_id: JobId) -> None:
    end_for_its_files(world, job_id)
    world.restart()
    world.settle(5)

    assert (world.job(job_id).state, world.tasks(job_id)) == (JobState.FAILED, ())


def test_one_that_had_been_stopped_is_stopped(world: World, job_id: JobId) -> None:
    world.control.requests.stop(job_id, "admin")
    end_for_its_files(world, job_id)

    assert world.job(job_id).state is JobState.STOPPED


def test_other_jobs_go_on(world: World, job_id: JobId) -> None:
    other = world.submit(max_tasks=1)
    world.settle(3)
    before = world.tasks(other)

    end_for_its_files(world, job_id)

    assert [task.id for task in world.tasks(other)] == [task.id for task in before] != []
