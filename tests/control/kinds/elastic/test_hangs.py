"""Tasks that show no sign of life are fenced; those of a server that slept itself are not."""

from collections.abc import Collection
from typing import Any

import pytest

from pliant.api.jobs import JobPatch
from pliant.control.jobs.inbox import ControlInbox
from pliant.control.kinds.elastic.exits import RECOVERY_S
from pliant.core.event import EventKind
from pliant.core.job import JobId, TaskId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.link import Dismiss, Finished, Hello, Pulse
from pliant.core.ports import EventFilter

World = Any
BEAT_S = 0.1


def live(world: World, seconds: float, silent: Collection[TaskId] = ()) -> None:
    """Let time pass in which the links are read and all tasks but these show life."""
    for _ in range(round(seconds / BEAT_S)):
        for task in world.cluster.observe().tasks:
            if task.task_id not in silent:
                world.say(task.task_id, Pulse())
        world.control.note_listening()
        world.settle(BEAT_S)


def started(world: World, num_tasks: int, **changes: object) -> JobId:
    job_id: JobId = world.submit(max_tasks=num_tasks, **changes)
    live(world, 3.0)
    assert len(world.members(job_id)) == num_tasks
    world.train(job_id)
    live(world, BEAT_S)
    return job_id


def state(world: World, task_id: TaskId) -> TaskState:
    found: TaskState = next(t.state for t in world.store.tasks() if t.id == task_id)
    return found


def test_a_silent_worker_is_killed_its_slot_granted_again_and_the_others_train_on(world: World) -> None:
    job_id = started(world, 3)
    victim = world.members(job_id)[1]
    silent_from = world.clock.now()

    live(world, 4.0, {victim})

    assert state(world, victim) is TaskState.LOST
    assert len(world.members(job_id)) == 3
    assert victim not in world.members(job_id)
    assert world.said(EventKind.TASK_LOST) == [
        f"{victim} of job-1 (digits) gave no sign of life for 2.0 s and was killed by Pliant; its share goes on "
        f"elsewhere and its slot is granted again"
    ]
    events = world.store.events(EventFilter(kinds=(EventKind.GENERATION_SWITCHED,)))
    assert next(e.at for e in events if e.at > silent_from) <= silent_from + 3.0


def test_the_leader_is_fenced_like_any_other(world: World) -> None:
    job_id = started(world, 3)
    leader = world.members(job_id)[0]

    live(world, 4.0, {leader})

    assert state(world, leader) is TaskState.LOST
    assert world.job(job_id).state is JobState.RUNNING
    assert len(world.members(job_id)) == 3


def test_all_workers_silent_at_once_are_one_loss_and_the_job_starts_again(world: World) -> None:
    job_id = started(world, 3)
    members = world.members(job_id)

    live(world, 2.5, members)
    live(world, 4.0)

    assert not set(members) & set(world.members(job_id))
    assert len(world.members(job_id)) == 3
    assert len(world.training(job_id).losses) == 1


def test_a_newcomer_that_hangs_while_it_starts_disturbs_nobody(world: World) -> None:
    job_id = started(world, 2)
    generation = world.job(job_id).generation
    world.links.obedient = False
    world.control.requests.change(job_id, JobPatch(max_tasks=3))
    live(world, 0.2)
    newcomer = next(t.id for t in world.tasks(job_id) if t.state is TaskState.STARTING)
    world.say(newcomer, Hello(task_id=newcomer, pid=1))

    live(world, 29.0, {newcomer})
    assert state(world, newcomer) is TaskState.STARTING
    live(world, 2.0, {newcomer})

    assert state(world, newcomer) is TaskState.LOST
    assert world.job(job_id).generation == generation
    assert len(world.members(job_id)) == 2


def hello_of(world: World, task_id: TaskId, job_id: JobId) -> Hello:
    generation = world.job(job_id).generation
    pid = next(task.pid for task in world.cluster.observe().tasks if task.task_id == task_id)
    return Hello(task_id=task_id, pid=pid, generation=generation, step=world.step, ready=True, host="h", port=pid)


def test_a_link_that_was_cut_and_comes_back_within_the_lease_changes_nothing(world: World) -> None:
    job_id = started(world, 3)
    members, generation = world.members(job_id), world.job(job_id).generation
    for _ in range(5):
        world.control.disconnect(members[1])
        live(world, 1.5, {members[1]})
        world.say(members[1], hello_of(world, members[1], job_id))
        live(world, 0.5)

    assert (world.members(job_id), world.job(job_id).generation) == (members, generation)
    assert world.said(EventKind.TASK_LOST) == []


def test_a_task_whose_link_was_cut_and_stays_away_is_fenced(world: World) -> None:
    job_id = started(world, 3)
    cut = world.members(job_id)[1]
    world.control.disconnect(cut)

    live(world, 4.0, {cut})

    assert state(world, cut) is TaskState.LOST
    assert cut not in world.members(job_id)


def test_a_fenced_task_that_speaks_again_is_not_listened_to(world: World) -> None:
    job_id = started(world, 2)
    victim = world.members(job_id)[1]
    world.cluster.kill = lambda task_id: None  # a process in the kernel's hands for a while
    live(world, 2.2 + RECOVERY_S, {victim})
    assert state(world, victim) is TaskState.LEAVING
    members = world.members(job_id)

    world.say(victim, Hello(task_id=victim, pid=1, generation=1, step=99, ready=True, host="h", port=1))
    live(world, 1.0)

    assert victim not in members
    assert world.members(job_id) == members
    assert any(task == victim and isinstance(message, Dismiss) for task, message in world.links.sent)
    assert world.job(job_id).num_slots == 2, "its slot is not free while its process is there"
    world.exit(victim, -9)
    live(world, 2.0)
    assert state(world, victim) is TaskState.LOST


@pytest.mark.parametrize("asleep_s", [4.0, 3600.0])
def test_a_server_that_stood_still_kills_nobody(world: World, asleep_s: float) -> None:
    job_id = started(world, 3)
    members = world.members(job_id)

    world.clock.advance(asleep_s)
    world.control.tick()
    world.control.tick()  # however often it looks before the links are read again
    live(world, 5.0)

    assert world.members(job_id) == members
    assert world.said(EventKind.TASK_LOST) == []


def test_a_task_that_hung_before_the_server_slept_is_still_found(world: World) -> None:
    job_id = started(world, 3)
    victim = world.members(job_id)[2]
    live(world, 1.0, {victim})
    world.clock.advance(600.0)

    live(world, 2.0, {victim})

    assert state(world, victim) is TaskState.LOST


def test_a_start_deadline_does_not_pass_while_the_server_sleeps(world: World) -> None:
    world.links.obedient = False
    job_id = world.submit(start_timeout_s=20.0)
    live(world, 5.0)
    world.clock.advance(100.0)
    live(world, 14.0)
    assert world.job(job_id).state is JobState.STARTING
    live(world, 3.0)
    assert world.job(job_id).state is JobState.FAILED


def test_a_start_deadline_does_not_pass_if_a_tick_and_the_links_wake_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.links.obedient = False
    job_id = world.submit(start_timeout_s=20.0)
    live(world, 5.0)
    world.clock.advance(100.0)
    count = ControlInbox.__len__

    def read_just_then(inbox: ControlInbox) -> int:
        """Count what the tick will take; right after that the links are read."""
        num_items = count(inbox)
        world.control.note_listening()
        return num_items

    with monkeypatch.context() as during:
        during.setattr(ControlInbox, "__len__", read_just_then)
        world.control.tick()
    live(world, 1.0)

    assert world.job(job_id).state is JobState.STARTING


def test_a_task_that_said_nothing_since_the_server_came_back_has_until_then(world: World) -> None:
    job_id = started(world, 2)
    silent, speaking = world.members(job_id)
    world.restart()
    hello = Hello(
        task_id=speaking, pid=1, generation=world.job(job_id).generation, step=10, ready=True, host="h", port=1
    )
    world.say(speaking, hello)

    live(world, 5.0, {silent})
    assert state(world, silent) is TaskState.TRAINING
    live(world, 2.0, {silent})

    assert state(world, silent) is TaskState.LOST
    assert (
        "said nothing for 6 s after the server came back and was killed by Pliant"
        in (world.said(EventKind.TASK_LOST)[0])
    )
    assert not world.training(job_id).losses


def test_a_step_at_which_whoever_computes_it_hangs_is_known_by_what_the_exits_tell(world: World) -> None:
    job_id = started(world, 1)
    for _ in range(3):
        assert world.job(job_id).state is not JobState.FAILED
        (victim,) = [task.id for task in world.tasks(job_id)]
        world.leave_behind(victim, step=40, stderr="computes\n")
        live(world, 3.0, {victim})
        live(world, 5.0)

    assert world.job(job_id).state is JobState.FAILED
    assert world.job(job_id).reason.startswith("step 40 ")
    assert world.job(job_id).reason.endswith("computes")


def test_a_task_that_ends_well_and_takes_its_time_is_not_lost(world: World) -> None:
    job_id = started(world, 1)
    (member,) = world.members(job_id)
    world.say(member, Finished(step=10))
    world.control.disconnect(member, True)

    live(world, 20.0, {member})
    assert world.job(job_id).state is JobState.COMPLETED
    live(world, 15.0, {member})

    assert state(world, member) is TaskState.EXITED
    assert world.said(EventKind.TASK_LOST) == []
    assert not world.cluster.observe().tasks


def test_pulses_write_nothing_and_wake_nobody(world: World) -> None:
    job_id = started(world, 3)
    seq, revision = world.store.last_seq(), world.job(job_id).revision
    written: list[object] = []
    world.store.write = written.append

    live(world, 5.0)

    assert written == []
    assert (world.store.last_seq(), world.job(job_id).revision) == (seq, revision)


def test_a_task_is_told_its_lease(world: World) -> None:
    world.submit()
    assert world.cluster.orders[0].env["PLIANT_LEASE_S"] == "2"
