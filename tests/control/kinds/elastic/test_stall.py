"""What becomes of a training that does no step: people see it, its tasks are asked, its owner's wish is done."""

import re
from collections.abc import Callable

import pytest
from tests.control.conftest import World

from pliant.control.requests.changes import STACKS_EVERY_S
from pliant.core.errors import Conflict
from pliant.core.event import Event, EventKind
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.link import Note, ShowStacks, Stacks
from pliant.core.plan import PolicyName
from pliant.core.ports import EventFilter


class Quiet(World):
    """Tasks whose answers the test gives."""

    def asked(self) -> list[str]:
        return [task_id for task_id, message in self.links.sent if isinstance(message, ShowStacks)]

    def events(self, kind: EventKind) -> list[Event]:
        return list(self.store.events(EventFilter(kinds=(kind,))))

    def step_for(self, job_id: JobId, seconds: float, every_s: float = 1.0) -> None:
        for _ in range(round(seconds / every_s)):
            self.train(job_id, steps=1)
            self.settle(every_s - 0.1)


@pytest.fixture
def world(make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Quiet:
    quiet = make_world(8)
    quiet.__class__ = Quiet
    assert isinstance(quiet, Quiet)
    obey = quiet.links._obey
    monkeypatch.setattr(quiet.links, "_obey", lambda task, m: None if isinstance(m, ShowStacks) else obey(task, m))
    return quiet


def answer(world: World, task_id: str, at: str, *, waits: bool) -> None:
    world.say(task_id, Stacks(text=f"Thread MainThread:\n  {at}\n", at=at, waits=waits))
    world.settle(0.1)


def test_a_training_without_a_step_is_said_to_be_stalled_and_shows_no_speed(world: Quiet) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle()
    world.step_for(job_id, 10.0)
    assert world.job(job_id).progress.samples_per_s == 1.0  # type: ignore[union-attr]
    world.settle(6.0)
    assert world.job(job_id).progress.samples_per_s == 0.0  # type: ignore[union-attr]
    assert not world.events(EventKind.JOB_STALLED)
    world.settle(25.0)
    (stalled,) = world.events(EventKind.JOB_STALLED)
    assert stalled.data["step"] == 10
    assert "has done no step for 30 s, and usually reports new ones every 1.0 s" in stalled.message
    assert sorted(world.asked()) == sorted(task.id for task in world.tasks(job_id))


def test_why_says_where_its_tasks_are_those_that_do_not_wait_first(world: Quiet) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle()
    world.step_for(job_id, 5.0)
    world.settle(31.0)
    first, second = (task.id for task in world.tasks(job_id))
    answer(world, first, "train.py:20 in step", waits=True)
    answer(world, second, "data.py:7 in\n\x1b[2J__getitem__", waits=False)
    remark = world.control.queries.why(job_id).remark
    assert f"{second} is at data.py:7 in" in remark
    assert remark.index(second) < remark.index(first)
    assert f"`pliant stacks {job_id}`" in remark
    shown = world.events(EventKind.TASK_STACKS)
    assert [event.data["waits"] for event in shown] == [True, False]
    assert all(event.message.isprintable() for event in shown)
    assert "\x1b" not in str(shown[1].data["stacks"])
    assert world.job(job_id).state is JobState.RUNNING  # its owner is warned, and that is all


def test_a_training_that_goes_on_says_so_and_is_not_said_to_be_stalled_again_so_soon(world: Quiet) -> None:
    job_id = world.submit()
    world.settle()
    world.step_for(job_id, 5.0)
    world.settle(40.0)
    world.train(job_id, steps=1)
    (resumed,) = world.events(EventKind.JOB_RESUMED)
    assert resumed.message.startswith(f"{job_id} (digits) goes on after 4")
    assert world.control.queries.detail(job_id).remark == ""
    world.settle(60.0)
    assert len(world.events(EventKind.JOB_STALLED)) == 1


def test_a_report_without_a_step_is_a_sign_too(world: Quiet) -> None:
    job_id = world.submit()
    world.settle()
    world.step_for(job_id, 5.0)
    for _ in range(4):
        world.settle(20.0)
        world.train(job_id, steps=0)
    assert not world.events(EventKind.JOB_STALLED)


def test_the_first_step_has_its_own_limit_which_why_names(world: Quiet) -> None:
    job_id = world.submit(start_timeout_s=120.0)
    world.settle(50.0)
    assert "first step is awaited for 5" in world.control.queries.why(job_id).remark
    assert "stalled after 2 min 00 s" in world.control.queries.why(job_id).remark
    world.settle(71.0)
    (stalled,) = world.events(EventKind.JOB_STALLED)
    assert "has done no step for 2 min" in stalled.message
    assert "since it was ready" in stalled.message


def test_a_task_that_is_starting_is_named_with_its_limit(world: Quiet) -> None:
    world.links.obedient = False
    job_id = world.submit()
    world.settle(30.0)
    assert "has been starting for 3" in world.control.queries.why(job_id).remark
    assert "after 10 min 00 s" in world.control.queries.why(job_id).remark


def test_after_the_last_step_it_may_take_as_long_as_before_the_first(world: Quiet) -> None:
    job_id = world.submit(start_timeout_s=300.0)
    world.settle()
    world.step_for(job_id, 5.0)
    world.train(job_id, steps=995)
    world.settle(200.0)
    assert not world.events(EventKind.JOB_STALLED)
    world.settle(101.0)
    assert len(world.events(EventKind.JOB_STALLED)) == 1


@pytest.mark.parametrize(("stall_after_s", "num_events"), [(0.0, 0), (8.0, 1)])
def test_its_owner_says_when(world: Quiet, stall_after_s: float, num_events: int) -> None:
    job_id = world.submit(stall_after_s=stall_after_s)
    world.settle()
    world.step_for(job_id, 5.0)
    world.settle(60.0 if stall_after_s == 0 else 8.5)
    assert len(world.events(EventKind.JOB_STALLED)) == num_events


def test_what_is_stuck_is_replaced_if_its_owner_wants_that(world: Quiet) -> None:
    job_id = world.submit(max_tasks=2, on_stall="replace")
    world.settle()
    world.step_for(job_id, 5.0)
    world.settle(30.5)
    first, second = (task.id for task in world.tasks(job_id))
    answer(world, first, "train.py:20 in step", waits=True)
    assert world.tasks(job_id)[1].state is TaskState.TRAINING
    answer(world, second, "data.py:7 in load", waits=False)
    (lost,) = world.said(EventKind.TASK_LOST)
    assert re.match(f"{second} of {job_id} .digits. did no step for 3[0-9] s at data.py:7 in load and was killed", lost)
    assert [task.id for task in world.tasks(job_id) if task.state is TaskState.TRAINING] == [first]
    world.settle(3.0)
    assert len(world.members(job_id)) == 2
    assert second not in world.members(job_id)


def test_who_says_nothing_is_stuck_too(world: Quiet) -> None:
    job_id = world.submit(max_tasks=2, on_stall="replace")
    world.settle()
    world.step_for(job_id, 5.0)
    world.settle(30.5)
    first, second = (task.id for task in world.tasks(job_id))
    answer(world, first, "train.py:20 in step", waits=True)
    world.settle(5.5)
    (lost,) = world.said(EventKind.TASK_LOST)
    assert lost.startswith(f"{second} ")
    assert "and did not say where it is" in lost


def test_all_are_replaced_if_each_waits_for_the_others_and_those_that_come_may_take_their_time(world: Quiet) -> None:
    job_id = world.submit(max_tasks=2, on_stall="replace")
    world.settle()
    world.step_for(job_id, 5.0)
    world.settle(30.5)
    both = {task.id for task in world.tasks(job_id)}
    for task_id in both:
        answer(world, task_id, "train.py:20 in step", waits=True)
    assert {message.split()[0] for message in world.said(EventKind.TASK_LOST)} == both
    world.settle(500.0)
    assert not {task.id for task in world.tasks(job_id)} & both
    assert world.tasks(job_id)
    assert len(world.events(EventKind.JOB_STALLED)) == 1
    assert "first step is awaited" in world.control.queries.why(job_id).remark


def test_the_job_fails_if_its_owner_wants_that(world: Quiet) -> None:
    job_id = world.submit(on_stall="end")
    world.settle()
    world.step_for(job_id, 5.0)
    world.settle(30.5)
    (task,) = world.tasks(job_id)
    answer(world, task.id, "train.py:3 in spin", waits=False)
    world.settle(6.0)
    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert job.reason.startswith(f"{task.id} did no step for 3")
    assert "at train.py:3 in spin" in job.reason


def test_nobody_answers_who_was_not_asked_and_no_answer_is_longer_than_a_page(world: Quiet) -> None:
    job_id = world.submit()
    world.settle()
    (task,) = world.tasks(job_id)
    world.say(task.id, Stacks(text="x" * 10**6, at="y" * 10**6, waits=False))
    world.settle(0.1)
    assert not world.events(EventKind.TASK_STACKS)
    asked = world.control.requests.ask_stacks(job_id)
    assert asked.task_ids == (task.id,)
    assert asked.answer == "events"
    world.say(task.id, Stacks(text="x" * 10**6, at="y" * 10**6, waits=False))
    world.say(task.id, Stacks(text="again", at="again", waits=False))
    world.say(task.id, Note(message="said after it"))
    world.settle(0.1)
    (shown,) = world.events(EventKind.TASK_STACKS)
    assert shown.seq > asked.after
    assert len(shown.message) < 400
    assert len(str(shown.data["stacks"])) == 20_000


def test_a_job_is_asked_once_in_a_while_and_only_while_it_has_processes(world: Quiet) -> None:
    job_id = world.submit()
    world.settle()
    world.control.requests.ask_stacks(job_id)
    with pytest.raises(Conflict, match="was asked for its stacks"):
        world.control.requests.ask_stacks(job_id)
    world.settle(STACKS_EVERY_S)
    world.control.requests.ask_stacks(job_id)
    waiting = world.submit(min_tasks=8, max_tasks=8)
    with pytest.raises(Conflict, match="has no process"):
        world.control.requests.ask_stacks(waiting)
    world.finish(job_id)
    with pytest.raises(Conflict, match="already completed"):
        world.control.requests.ask_stacks(job_id)


def test_a_new_server_learns_the_pace_anew(world: Quiet) -> None:
    job_id = world.submit()
    world.settle()
    world.step_for(job_id, 5.0)
    world.restart()
    world.settle(200.0)
    assert not world.events(EventKind.JOB_STALLED)


def test_the_processes_of_a_fixed_job_write_it_to_their_stderr(world: Quiet) -> None:
    job_id = world.submit(fixed=True, min_tasks=2, max_tasks=2)
    world.settle()
    asked = world.control.requests.ask_stacks(job_id)
    assert asked.answer == "stderr"
    assert world.cluster.shown == list(asked.task_ids)
    assert not world.asked()


def test_a_job_that_is_stopped_at_once_does_not_wait_for_a_step(world: Quiet) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle()
    world.train(job_id)
    world.links.obedient = False
    world.control.requests.stop(job_id, "ada", now=True)
    world.settle(0.2)
    job = world.job(job_id)
    assert job.state is JobState.STOPPED
    assert job.reason == "ada stopped it at once"
    assert all("stopped at once" in message for message in world.said(EventKind.TASK_LEFT))


def test_a_job_that_is_stopping_already_can_be_stopped_at_once(world: Quiet) -> None:
    job_id = world.submit()
    world.settle()
    world.train(job_id)
    world.links.obedient = False
    world.control.requests.stop(job_id, "ada")
    world.settle(5.0)
    assert world.job(job_id).state is JobState.STOPPING
    assert world.control.queries.why(job_id).remark == (
        f"Its next step boundary is awaited; what is still there in 55 s is killed. `pliant stop {job_id} --now` does "
        f"not wait."
    )
    world.control.requests.stop(job_id, "ada", now=True)
    world.settle(0.2)
    assert world.job(job_id).state is JobState.STOPPED


def test_a_job_is_stopped_when_it_has_held_slots_for_its_time(make_world: Callable[..., World]) -> None:
    world = make_world(8, PolicyName.PRIORITY)
    job_id = world.submit(time_limit_s=100.0)
    world.settle(60.0)
    rival = world.submit(min_tasks=8, max_tasks=8, priority=10_000)
    world.settle(5.0)
    assert not world.tasks(job_id)
    world.settle(500.0)  # it is paused, which does not count
    world.restart()
    world.settle(1.0)
    world.control.requests.stop(rival)
    world.settle(30.0)
    assert world.tasks(job_id)
    world.settle(20.0)
    job = world.job(job_id)
    assert job.state is JobState.STOPPED
    assert job.reason == "it has held slots for 1 min 40 s, which is its time limit"
