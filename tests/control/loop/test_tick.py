"""Control from end to end, over a simulated cluster and tasks that do as they are told."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pliant.api.jobs import JobPatch
from pliant.core.errors import Conflict, InvalidInput, NotFound, Stale, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import JobId, Progress, TaskId
from pliant.core.job_filter import EVERY_JOB
from pliant.core.lifecycle import GenerationState, JobState, TaskState
from pliant.core.link import Dismiss, Failed, Hello, Leaving, Ready, Report
from pliant.core.ports import EventFilter

World = Any


def test_a_job_starts_trains_and_completes(world: World) -> None:
    job_id = world.submit()
    assert world.job(job_id).state is JobState.RUNNING
    assert world.job(job_id).num_slots == 1
    world.finish(job_id)
    job = world.job(job_id)
    assert (job.state, job.num_slots) == (JobState.COMPLETED, 0)
    assert [task.state for task in world.store.tasks(job_id)] == [TaskState.EXITED]
    assert [g.state for g in world.store.generations(job_id)] == [GenerationState.RETIRED]
    assert not world.control.jobs()
    assert [(u.num_slots) for u in world.store.usage()] == [1, 0]


def test_a_job_grows_to_all_slots_and_gives_half_to_the_next(world: World) -> None:
    first = world.submit(max_tasks=8)
    world.settle(3)
    assert len(world.members(first)) == 8
    world.train(first)
    second = world.submit(max_tasks=8)
    world.settle(3)
    assert (len(world.members(first)), len(world.members(second))) == (4, 4)
    world.control.requests.change(second, JobPatch(priority=10_000))
    world.settle(3)
    assert (len(world.members(first)), len(world.members(second))) == (3, 5)
    world.finish(first)
    world.settle(3)
    assert len(world.members(second)) == 8
    decisions = world.store.events(EventFilter(kinds=(EventKind.DECISION,), job_id=second))
    assert [event.data["to"] for event in decisions][-1] == 8
    assert all(event.message for event in decisions)
    assert world.control.queries.why(second).target_tasks == 8


def test_the_slots_in_the_usage_never_exceed_the_pool(world: World) -> None:
    first = world.submit(max_tasks=8)
    world.settle(2)
    second = world.submit(max_tasks=8)
    world.settle(2)
    world.finish(first)
    world.settle(2)
    held: dict[str, int] = {}
    for point in world.store.usage():
        held[point.job_id] = point.num_slots
        assert sum(held.values()) <= 8
    assert held[second] == 8


def test_a_killed_task_is_lost_and_its_slot_granted_again(world: World) -> None:
    job_id = world.submit(max_tasks=4)
    world.settle(3)
    world.train(job_id)
    victim = world.members(job_id)[2]
    world.exit(victim, -9)
    world.settle(3)
    assert len(world.members(job_id)) == 4
    assert victim not in world.members(job_id)
    task = next(t for t in world.store.tasks(job_id) if t.id == victim)
    assert (task.state, task.exit_code) == (TaskState.LOST, -9)
    assert "SIGKILL" in world.said(EventKind.TASK_LOST)[0]
    assert world.job(job_id).state is JobState.RUNNING


def test_a_job_that_loses_its_last_task_is_paused_and_starts_again(world: World) -> None:
    job_id = world.submit()
    world.train(job_id)
    world.exit(world.members(job_id)[0], -9)
    world.settle()
    assert world.job(job_id).state is JobState.RUNNING
    assert any("is paused" in message for message in world.said(EventKind.JOB_STATE))


def test_a_job_lost_five_times_before_it_trains_fails_with_a_diagnosis(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit()
    for _ in range(5):
        assert not world.job(job_id).ended
        task = world.tasks(job_id)[0]
        world.leave_behind(task.id, stderr="about to crash\n")
        world.exit(task.id, -11)
        world.settle(70)
    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert "5 times" in job.reason
    assert "SIGSEGV" in job.reason
    assert "about to crash" in job.reason
    assert str(world.control.settings.folders(job_id).logs) in job.reason


def test_losses_hold_a_job_back_longer_and_longer(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit()
    delays = []
    for _ in range(4):
        world.exit(world.tasks(job_id)[0].id, -9)
        lost_at = world.clock.now()
        while not world.tasks(job_id) or world.tasks(job_id)[0].started_at <= lost_at - 0.06:
            world.settle(0.05)
        delays.append(world.tasks(job_id)[0].started_at - lost_at)
        world.settle(0.2)
    assert delays[0] < 0.2
    assert delays[1:] == pytest.approx([1, 2, 4], abs=0.3)


def test_progress_forgives_losses(world: World) -> None:
    job_id = world.submit()
    for _ in range(8):
        world.exit(world.tasks(job_id)[0].id, -9)
        world.settle(2)
        world.train(job_id)
    assert world.job(job_id).state is JobState.RUNNING


def test_tasks_lost_together_count_once(world: World) -> None:
    job_id = world.submit(max_tasks=8)
    world.settle(3)
    for task_id in world.members(job_id):
        world.exit(task_id, -9)
    world.settle(3)
    assert len(world.members(job_id)) == 8
    assert world.job(job_id).state is JobState.RUNNING


def test_a_plain_script_that_ends_well_completes_its_job_with_a_warning(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit()
    world.exit(world.tasks(job_id)[0].id, 0)
    world.settle()
    job = world.job(job_id)
    assert job.state is JobState.COMPLETED
    assert job.reason.startswith("train.py ended (exit code 0) and never trained elastically: job-1.1 ran it whole")
    assert "`--fixed 1`" in job.reason
    assert world.said(EventKind.WARNING)[-1] == f"job-1 (digits): {job.reason}"


def test_a_plain_script_in_several_tasks_is_done_when_one_of_them_is(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit(min_tasks=3, max_tasks=3)
    world.exit(world.tasks(job_id)[1].id, 0)
    world.settle()
    assert world.job(job_id).state is JobState.COMPLETED
    assert "job-1.2 ran it whole; 2 more of its tasks, which ran the same, were ended" in world.job(job_id).reason
    world.settle(30)
    assert world.tasks(job_id) == (), "nobody computes on for a job that has completed"


def test_a_plain_script_that_ends_badly_fails_its_job(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit()
    world.leave_behind(world.tasks(job_id)[0].id, stderr="no data\n")
    world.exit(world.tasks(job_id)[0].id, 3)
    world.settle()
    assert world.job(job_id).state is JobState.FAILED
    assert "no data" in world.job(job_id).reason


def test_a_task_that_ends_well_while_another_is_ready_to_train_fails_its_job(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit(min_tasks=2, max_tasks=2)
    world.say("job-1.2", Ready(host="h", port=1, virtual_workers=8))
    world.settle(0.1)
    world.exit(world.tasks(job_id)[0].id, 0)
    world.settle()
    assert world.job(job_id).state is JobState.FAILED
    assert "ended (exit code 0) in job-1.1 without training" in world.job(job_id).reason


def test_a_task_that_was_ended_from_outside_before_it_trained_is_not_done(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit()
    world.say("job-1.1", Leaving(reason="SIGTERM before training began"))
    world.exit("job-1.1", 0)
    world.settle()
    assert world.job(job_id).state is JobState.STARTING, "another task has begun in its place"
    assert [task.id for task in world.tasks(job_id)] == ["job-1.2"]


def test_a_script_that_exits_in_mid_training_fails_its_job(world: World) -> None:
    job_id = world.submit()
    world.train(job_id, steps=7)
    world.exit(world.members(job_id)[0], 0)
    world.settle()
    assert world.job(job_id).state is JobState.FAILED
    assert "at step 7" in world.job(job_id).reason


def test_a_nonzero_exit_at_the_same_step_again_fails_the_job_with_its_last_words(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    world.exit(world.members(job_id)[1], 3)
    world.settle(3)
    assert world.job(job_id).state is JobState.RUNNING
    assert "ended with exit code 3" in world.said(EventKind.TASK_LOST)[0]
    victim = world.members(job_id)[1]
    world.leave_behind(victim, stderr="noise\n" * 50 + "usage: train.py --data\n")
    world.exit(victim, 3)
    world.settle()
    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert "exit code 3" in job.reason
    assert "usage: train.py --data" in job.reason
    assert not world.cluster.observe().tasks


def test_why_a_program_ended_is_awaited(world: World) -> None:
    job_id = world.submit()
    task_id = world.members(job_id)[0]
    world.cluster.exit(task_id, 1)
    world.settle(0.2)
    assert not world.job(job_id).ended
    world.say(task_id, Failed(error="ValueError: bad", traceback='File "train.py", line 3\nValueError: bad'))
    world.settle(0.1)
    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert "raised ValueError: bad" in job.reason
    assert "line 3" in job.reason


def test_a_script_that_found_a_full_disk_is_told_how_to_go_on(world: World) -> None:
    job_id = world.submit()
    (task_id,) = world.members(job_id)
    error = "OSError: [Errno 28] No space left on device: 'model.pt'"
    world.say(task_id, Failed(error=error, traceback=f"File train.py, line 3\n{error}"))
    world.settle(0.1)
    first, *more = world.job(job_id).reason.splitlines()
    assert first.endswith(
        "; when there is room, `pliant submit --resume-from job-1` goes on from its newest checkpoint"
    )
    assert more == ["File train.py, line 3", error]


def test_others_train_on_when_a_program_raises_in_one_worker(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    victim = world.members(job_id)[0]
    world.say(victim, Failed(error="KeyError: 'x'", traceback="KeyError: 'x'"))
    world.settle(0.2)
    world.exit(victim, 1)
    world.train(job_id, steps=5)
    assert world.job(job_id).state is JobState.RUNNING
    assert "raised KeyError: 'x'" in world.said(EventKind.TASK_LOST)[0]
    assert victim not in world.members(job_id)


def test_a_worker_that_raised_and_does_not_end_is_killed_and_told_of_as_raised(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    victim = world.members(job_id)[1]
    world.say(victim, Failed(error="KeyError: 'x'", traceback="KeyError: 'x'"))
    world.settle(4)
    assert world.job(job_id).state is JobState.RUNNING
    assert victim not in world.members(job_id)
    assert ["raised KeyError: 'x'" in told for told in world.said(EventKind.TASK_LOST)] == [True]


def test_a_program_that_raises_at_a_step_twice_fails_its_job_and_the_others_are_killed(world: World) -> None:
    job_id = world.submit(max_tasks=4)
    world.settle(3)
    for member in world.members(job_id)[:2]:
        world.say(member, Failed(error="KeyError: 'x'", traceback="\n".join(map(str, range(100)))))
    world.settle()
    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert "99" in job.reason.splitlines()
    assert "50" not in job.reason.splitlines()
    assert not world.cluster.observe().tasks
    assert not world.tasks(job_id)


def test_a_task_that_cannot_be_started_fails_its_job(world: World) -> None:
    world.cluster.refuse("job-1.1", "no such interpreter")
    job_id = world.submit()
    assert world.job(job_id).state is JobState.FAILED
    assert world.job(job_id).reason == "job-1.1 could not be started: no such interpreter"


def test_a_script_that_never_trains_fails_after_its_deadline(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit(start_timeout_s=20.0)
    world.leave_behind("job-1.1", stderr="waiting for data\n")
    world.settle(19)
    assert world.job(job_id).state is JobState.STARTING
    world.settle(2)
    assert world.job(job_id).state is JobState.FAILED
    assert "never started to train" in world.job(job_id).reason
    assert world.job(job_id).reason.endswith("waiting for data"), "it was quoted when its exit had come"
    assert not world.cluster.observe().tasks


def test_a_stopped_job_leaves_at_a_step_boundary(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    assert world.control.requests.stop(job_id, "ann").state is JobState.STOPPING
    world.settle()
    job = world.job(job_id)
    assert (job.state, job.reason, job.num_slots) == (JobState.STOPPED, "ann stopped it", 0)
    assert EventKind.CHECKPOINT_SAVED in {event.kind for event in world.store.events(EventFilter())}


def test_a_stopped_job_that_does_not_leave_is_killed(world: World) -> None:
    job_id = world.submit()
    world.links.obedient = False
    world.control.requests.stop(job_id)
    world.settle(59)
    assert world.job(job_id).state is JobState.STOPPING
    world.settle(2)
    assert world.job(job_id).state is JobState.STOPPED


def test_a_job_stopped_while_it_starts_is_let_go_at_once(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit()
    world.control.requests.stop(job_id)
    world.settle(0.1)
    assert world.cluster.drained == ["job-1.1"]
    world.exit("job-1.1", -15)
    world.settle(0.1)
    assert world.job(job_id).state is JobState.STOPPED
    assert world.store.tasks(job_id)[0].state is TaskState.EXITED


def test_a_waiting_job_stops_at_once(make_world: Callable[[int], World]) -> None:
    world = make_world(1)
    world.submit()
    waiting = world.submit()
    assert world.control.requests.stop(waiting).state is JobState.STOPPED


def test_an_ended_job_cannot_be_changed_or_stopped(world: World) -> None:
    job_id = world.submit()
    world.finish(job_id)
    with pytest.raises(Conflict, match=r"job-1 has already completed at 1970-01-01 00:16"):
        world.control.requests.change(job_id, JobPatch(priority=1))
    with pytest.raises(Conflict, match="already completed"):
        world.control.requests.stop(job_id)


def test_an_unknown_job_is_not_found(world: World) -> None:
    with pytest.raises(NotFound, match="job-77"):
        world.control.requests.stop("job-77")
    with pytest.raises(NotFound, match="job-77"):
        world.control.requests.change("job-77", JobPatch(priority=1))


def test_limits_that_do_not_fit_are_refused_all_at_once(world: World) -> None:
    job_id = world.submit(max_tasks=2)
    with pytest.raises(InvalidInput) as refused:
        world.control.requests.change(job_id, JobPatch(min_tasks=10, max_tasks=9))
    assert [problem.field for problem in refused.value.problems] == ["min_tasks", "max_tasks"]
    assert world.job(job_id).max_tasks == 2


def test_a_change_of_an_older_revision_is_refused(world: World) -> None:
    job_id = world.submit()
    revision = world.job(job_id).revision
    world.control.requests.change(job_id, JobPatch(priority=7), revision=revision)
    with pytest.raises(Stale, match="changed meanwhile"):
        world.control.requests.change(job_id, JobPatch(priority=8), revision=revision)
    assert world.job(job_id).priority == 7


def test_a_script_that_cuts_its_batch_coarser_lowers_the_maximum(world: World) -> None:
    world.virtual_workers = 2
    job_id = world.submit(max_tasks=8)
    world.settle(3)
    assert world.job(job_id).max_tasks == 2
    assert len(world.members(job_id)) == 2
    assert "lowered to 2" in world.said(EventKind.JOB_CHANGED)[0]
    with pytest.raises(InvalidInput, match="virtual_workers 2"):
        world.control.requests.change(job_id, JobPatch(max_tasks=3))


def test_a_job_without_a_number_has_any_maximum_until_its_script_says_its_parts(world: World) -> None:
    world.virtual_workers = 3
    spec = replace(world.job(world.submit()).spec, max_tasks=2, virtual_workers=None)
    job_id = world.control.requests.submit(spec, world.home / "code.tar.gz", "admin").id
    world.control.requests.change(job_id, JobPatch(max_tasks=8))
    world.settle(3)
    assert (world.job(job_id).max_tasks, len(world.members(job_id))) == (3, 3)
    assert "lowered to 3; submit again with `--virtual-workers 8`" in world.said(EventKind.JOB_CHANGED)[-1]
    with pytest.raises(
        InvalidInput,
        match=r"4 is above virtual_workers 3: .*; lower max_tasks, or submit again with `--virtual-workers 4`",
    ):
        world.control.requests.change(job_id, JobPatch(max_tasks=4))


def test_the_next_server_knows_into_how_many_parts_a_script_cuts_its_batch(world: World) -> None:
    world.virtual_workers = 3
    job_id = world.submit(max_tasks=3, virtual_workers=None)
    world.settle(3)
    progress = Progress(epoch=0, num_epochs=1, step=5, num_steps=1000, samples=1, samples_per_s=1.0, virtual_workers=3)
    report = Report(generation=world.job(job_id).generation, progress=progress)
    world.say(world.members(job_id)[0], report)
    world.settle(0.1)
    world.restart()
    with pytest.raises(InvalidInput, match="4 is above virtual_workers 3"):
        world.control.requests.change(job_id, JobPatch(max_tasks=4))


def test_a_server_that_came_before_the_first_report_learns_the_parts_from_it(world: World) -> None:
    world.virtual_workers = 3
    job_id = world.submit(max_tasks=3, virtual_workers=None)
    world.settle(3)
    world.restart()
    world.settle(1)
    world.control.requests.change(job_id, JobPatch(max_tasks=4))
    progress = Progress(epoch=0, num_epochs=1, step=5, num_steps=1000, samples=1, samples_per_s=1.0, virtual_workers=3)
    report = Report(generation=world.job(job_id).generation, progress=progress)
    world.say(world.members(job_id)[0], report)
    world.settle(1)
    assert world.job(job_id).max_tasks == 3


def test_a_task_asked_to_go_is_left_out_and_replaced(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    gone = world.members(job_id)[0]
    world.say(gone, Leaving(reason="SIGTERM"))
    world.settle(3)
    assert gone not in world.members(job_id)
    assert len(world.members(job_id)) == 3
    assert next(t for t in world.store.tasks(job_id) if t.id == gone).state is TaskState.EXITED


def test_strangers_are_dismissed(world: World) -> None:
    world.links.obedient = False
    world.say("job-9.1", Hello(task_id=TaskId("job-9.1"), pid=1))
    job_id = world.submit()
    world.say("job-1.7", Hello(task_id=TaskId("job-1.7"), pid=1))
    world.say("job-1.1", Hello(task_id=TaskId("job-1.1"), pid=1, generation=12, step=4))
    world.settle(0.1)
    dismissed = {task_id for task_id, message in world.links.sent if isinstance(message, Dismiss)}
    assert dismissed == {"job-9.1", "job-1.7", "job-1.1"}
    assert world.tasks(job_id)[0].state is TaskState.LEAVING


def test_a_shutdown_pauses_jobs_and_they_go_on_later(world: World) -> None:
    first, second = world.submit(max_tasks=4), world.submit(max_tasks=4)
    world.settle(3)
    world.train(first)
    world.control.ending.drain_all("SIGTERM")
    with pytest.raises(Unavailable):
        world.submit()
    world.settle()
    assert world.control.ending.is_drained()
    assert {world.job(j).state for j in (first, second)} == {JobState.PAUSED}
    world.restart()
    world.settle(3)
    assert {world.job(j).state for j in (first, second)} == {JobState.RUNNING}
    assert len(world.members(first)) == len(world.members(second)) == 4


def test_a_killed_server_leaves_jobs_that_the_next_one_adopts(world: World) -> None:
    job_id = world.submit(max_tasks=4)
    world.settle(3)
    world.train(job_id)
    before = world.job(job_id)
    members = world.members(job_id)
    world.restart()
    for live in world.cluster.observe().tasks:
        hello = Hello(
            task_id=live.task_id,
            pid=live.pid,
            generation=before.generation,
            step=10,
            ready=True,
            host="127.0.0.1",
            port=live.pid,
        )
        world.say(live.task_id, hello)
    world.settle(3)
    assert world.members(job_id) == members
    assert world.job(job_id).generation == before.generation
    assert len(world.cluster.orders) == 4
    world.finish(job_id)
    assert world.job(job_id).state is JobState.COMPLETED


def test_a_task_that_stays_silent_after_a_restart_is_replaced(world: World) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle(3)
    world.train(job_id)
    silent, speaking = world.members(job_id)
    generation = world.job(job_id).generation
    world.restart()
    pid = next(live.pid for live in world.cluster.observe().tasks if live.task_id == speaking)
    assert pid is not None
    hello = Hello(task_id=speaking, pid=pid, generation=generation, step=10, ready=True, host="h", port=pid)
    world.say(speaking, hello)
    world.settle(5)
    assert silent in world.members(job_id)
    world.settle(20)
    assert silent not in world.members(job_id)
    assert speaking in world.members(job_id)
    assert len(world.members(job_id)) == 2


def test_tasks_that_vanished_with_the_server_are_replaced(world: World) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle(3)
    world.train(job_id)
    victim = world.members(job_id)[1]
    world.cluster.watch(lambda ended: world.cluster.acknowledge(ended.task_id))
    world.exit(victim, -9)
    world.clock.advance(1)
    world.restart()
    for live in world.cluster.observe().tasks:
        hello = Hello(task_id=live.task_id, pid=live.pid, generation=2, step=10, ready=True, host="h", port=1)
        world.say(live.task_id, hello)
    world.settle(15)
    assert next(t for t in world.store.tasks(job_id) if t.id == victim).state is TaskState.LOST
    assert "vanished while the server was away" in world.said(EventKind.TASK_LOST)[0]
    assert len(world.members(job_id)) == 2


def test_a_write_that_fails_changes_nothing_and_is_tried_again(world: World) -> None:
    job_id = world.submit()
    good = world.store.write

    def full(writes: object) -> None:
        raise Unavailable("the disk is full")

    world.store.write = full
    world.exit(world.members(job_id)[0], -9)
    world.clock.advance(0)
    with pytest.raises(Unavailable):
        world.control.tick()
    assert world.job(job_id).num_slots == 1
    assert len(world.control.jobs()[job_id].running) == 1
    world.store.write = good
    world.settle()
    assert next(task.state for task in world.store.tasks(job_id)) is TaskState.LOST


def test_everything_may_be_told_twice(world: World) -> None:
    tell = world.control.receive

    def twice(*said: object) -> None:
        tell(*said)
        tell(*said)

    world.control.receive = twice
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    assert len(world.members(job_id)) == 3
    world.finish(job_id)
    assert world.job(job_id).state is JobState.COMPLETED


def test_a_newcomer_that_never_joined_is_dismissed_when_the_job_completes(world: World) -> None:
    job_id = world.submit(max_tasks=1)
    world.links.obedient = False
    world.control.requests.change(job_id, JobPatch(max_tasks=2))
    world.settle(0.1)
    world.say("job-1.2", Hello(task_id=TaskId("job-1.2"), pid=7))
    world.say("job-1.2", Ready(host="h", port=1, virtual_workers=8))
    world.finish(job_id)
    assert world.job(job_id).state is JobState.COMPLETED
    assert ("job-1.2", Dismiss(reason="the training has completed")) in world.links.sent
    world.settle(31)
    assert not world.cluster.observe().tasks


def test_a_job_that_needs_more_slots_than_there_are_says_so(make_world: Callable[[int], World]) -> None:
    world = make_world(2)
    job_id = world.submit(min_tasks=4, max_tasks=4)
    assert world.job(job_id).state is JobState.PENDING
    assert world.control.queries.why(job_id).sentence


def test_the_pool_shows_who_holds_which_slot(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    view = world.control.queries.cluster()
    assert len(view.slots) == 8
    assert sum(slot.job_id == job_id for slot in view.slots) == 3


def test_job_pages_follow_each_other(world: World) -> None:
    ids = [world.submit() for _ in range(5)]
    page = world.control.queries.page(EVERY_JOB, None, 2)
    seen: list[JobId] = []
    while True:
        seen += [job.id for job in page.jobs]
        if page.next is None:
            break
        page = world.control.queries.page(EVERY_JOB, page.next, 2)
    assert seen == ids[::-1]
