"""What a task could not say over its link is taken in with its exit: once, first, and of that task alone."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.control.conftest import World, packed
from tests.control.requests.test_trials_machine import DiedError, MortalWorld
from tests.tune.searches.world import ANNA, InlineAsker, settings_of

from pliant.api.link import encode
from pliant.api.unsent import pack
from pliant.control.kinds.elastic.kind import Elastic
from pliant.core.event import EventKind
from pliant.core.job import JobId, JobSpec, Progress, TaskId
from pliant.core.lifecycle import JobState
from pliant.core.link import EpochFinished, Failed, Finished, FromTask, Hello, Note, Params, Point, Report, Saved
from pliant.core.ports import EventFilter
from pliant.core.search import TrialState
from pliant.server.search_jobs import SearchRoom, make_searches
from pliant.sim.searches import MemorySearches
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.searches.ports import AdviserSource

Numbered = Sequence[tuple[int, FromTask]]
FAILED = Failed(error="ValueError: no", traceback='Traceback:\n  File "train.py", line 3\nValueError: no\n', step=10)


def report(step: int, epoch: int, **values: float) -> Report:
    progress = Progress(epoch=epoch, num_epochs=2, step=step, num_steps=20, samples=step, samples_per_s=1.0)
    points = tuple(Point(name=name, step=step, epoch=epoch, at=5.0, value=value) for name, value in values.items())
    return Report(generation=1, progress=progress, points=points)


LAST: tuple[FromTask, ...] = (
    report(10, 1, loss=0.9, val_loss=0.8),
    EpochFinished(epoch=0, step=10, samples=640),
    Note(message="mind this"),
    Params(values={"lr": 0.1}),
    report(20, 2, loss=0.5, val_loss=0.4),
    EpochFinished(epoch=1, step=20, samples=640),
    Saved(what="model", step=20, epoch=2, path="model/model.pt", num_bytes=1, seconds=0.1),
    Finished(step=20, digest="abc"),
)
NUMBERED = tuple(enumerate(LAST, start=3))


def training(world: World, **changes: Any) -> tuple[JobId, tuple[TaskId, ...]]:
    """Return a job that trains, and its tasks."""
    world.links.obedient = True
    job_id = world.submit(**changes)
    world.settle(3)
    world.links.obedient = False  # what its tasks say from now on, the test says
    return job_id, world.members(job_id)


def leave(world: World, task_id: TaskId, messages: Numbered, code: int | None = 0) -> None:
    """Let a task end that leaves these messages."""
    world.leave_behind(task_id, unsent=pack(task_id, messages)[0].decode())
    world.exit(task_id, code)


def seen(world: World, job_id: JobId, since: int) -> object:
    """Return all that is known of a job, without the instants."""
    job = world.job(job_id)
    events = [event for event in world.store.events(EventFilter(job_id=job_id)) if event.seq > since]
    told = sorted((event.kind, event.message) for event in events if event.kind not in UNTOLD)
    return job.state, job.reason, job.progress, job.params, job.digest, told, world.store.metrics(job_id)


UNTOLD = (EventKind.JOB_STATE, EventKind.SERVER_STARTED)


# once, and before the exit is judged


def test_a_training_that_ended_while_its_server_was_dead_has_said_all_and_is_complete(world: World) -> None:
    job_id, (task_id,) = training(world)
    leave(world, task_id, NUMBERED)
    world.restart()
    world.settle(3)

    job = world.job(job_id)
    assert (job.state, job.digest, job.params, job.num_slots) == (JobState.COMPLETED, "abc", {"lr": 0.1}, 0)
    assert job.progress is not None
    assert (job.progress.step, job.progress.epoch) == (20, 2)
    points = {(point.name, point.step): point.value for point in world.store.metrics(job_id)}
    assert points == {("loss", 10): 0.9, ("val_loss", 10): 0.8, ("loss", 20): 0.5, ("val_loss", 20): 0.4}
    assert len(world.said(EventKind.EPOCH_FINISHED)) == 2
    assert world.said(EventKind.WARNING) == [f"{job_id} (digits): mind this"]


@pytest.mark.parametrize("code", [1, None], ids=["seen", "not seen"])
def test_a_script_that_raised_while_its_server_was_dead_is_quoted(world: World, code: int | None) -> None:
    job_id, (task_id,) = training(world)
    leave(world, task_id, [(3, FAILED)], code)
    world.restart()
    world.settle(3)

    job = world.job(job_id)
    assert job.state is JobState.FAILED
    assert job.reason.startswith(f"train.py raised ValueError: no (in {task_id}, see ")
    assert 'File "train.py", line 3' in job.reason


def test_of_two_that_finished_the_exit_of_either_may_be_seen_first(world: World) -> None:
    for first in (0, 1):
        job_id, members = training(world, max_tasks=2)
        ordered = (members[first], members[1 - first])
        for task_id in ordered:
            leave(world, task_id, NUMBERED if task_id == members[0] else NUMBERED[-1:])
        world.restart()
        world.settle(3)

        assert (world.job(job_id).state, world.job(job_id).digest) == (JobState.COMPLETED, "abc")
        assert world.tasks(job_id) == ()


def test_what_the_leader_left_is_kept_though_another_s_word_completed_the_job(world: World) -> None:
    """Exits are told one after the other; a member that has left takes the generation, and its leader, along."""
    job_id, (leader, gone, other) = training(world, max_tasks=3)
    world.exit(gone, 0)
    leave(world, other, [(3, Finished(step=20))])
    world.settle(3)
    assert world.job(job_id).state is JobState.COMPLETED
    leave(world, leader, NUMBERED)
    world.settle(3)

    assert (world.job(job_id).state, world.job(job_id).digest, world.job(job_id).params) == (
        JobState.COMPLETED,
        "abc",
        {"lr": 0.1},
    )
    assert len(world.store.metrics(job_id)) == 4
    assert len(world.said(EventKind.EPOCH_FINISHED)) == 2
    assert len(world.said(EventKind.JOB_STATE)) == 3, "it starts, trains, and has completed, once"
    assert world.tasks(job_id) == ()


def test_without_the_file_the_same_training_has_failed(world: World) -> None:
    job_id, (task_id,) = training(world)
    world.train(job_id)
    world.exit(task_id, 0)
    world.restart()
    world.settle(3)

    assert world.job(job_id).state is JobState.FAILED, "what the file is for"


def played(folder: Path, num_heard: int, num_stored: int, dies: str, *, restarts: bool) -> object:
    """Return what is known at the end of a training whose server has heard some of its messages when it goes away.

    Args:
        num_heard: so many messages came over the link.
        num_stored: of these the task knows so many to be stored; it leaves the others.
        dies: the server that takes the exit dies then: before or after it has written it, or not at all.
        restarts: another server takes the exit than has heard the messages.
    """
    world = MortalWorld(folder, 2)
    try:
        job_id, (task_id,) = training(world)
        since = world.store.events(EventFilter())[-1].seq
        for number, message in NUMBERED[:num_heard]:
            world.say(task_id, message, number)
            world.control.tick()
        leave(world, task_id, NUMBERED[num_stored:])
        if restarts:
            world.restart()
        world.clock.advance(0.0)
        world.mortal.dies = dies
        with suppress(DiedError):
            world.settle(3)
        if dies:
            world.restart()
        world.settle(3)
        return seen(world, job_id, since)
    finally:
        world.store.close()


@cache
def calm() -> object:
    """Return what is known if all came over the link, and no server died."""
    with tempfile.TemporaryDirectory() as folder:
        return played(Path(folder), len(LAST), len(LAST), "", restarts=False)


@given(st.integers(0, len(LAST)), st.integers(0, len(LAST)), st.sampled_from(("", "before", "after")), st.booleans())
@example(len(LAST), 0, "", False)
@example(len(LAST) - 1, 0, "before", True)
@example(3, 1, "after", True)
@settings(max_examples=40, deadline=None)
def test_whatever_was_heard_and_whenever_a_server_dies_all_is_known_once(
    num_heard: int, num_stored: int, dies: str, restarts: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert played(Path(folder), num_heard, min(num_heard, num_stored), dies, restarts=restarts) == calm()


def test_an_error_that_was_survived_and_is_left_as_well_is_one_error(world: World) -> None:
    job_id, members = training(world, max_tasks=2)
    world.say(members[1], FAILED, 3)
    world.settle(0.1)
    leave(world, members[1], [(3, FAILED)], 1)
    world.settle(3)

    assert world.job(job_id).state is JobState.RUNNING, "the same error a second time would end it"
    assert len(world.said(EventKind.TASK_LOST)) == 1


# what a search learns


def searches_over(world: World, kept: MemorySearches) -> SearchRoom:
    """Return the searches of a server that has just come up."""
    return make_searches(
        kept,
        world.clock,
        world.control,
        lambda _name: True,
        advisers=AdviserSource(open=OptunaAdviser),
        new_name=lambda: "s",
        run_asker=InlineAsker,
    )


def test_a_search_decides_with_the_value_of_a_trial_that_ended_while_the_server_was_dead(world: World) -> None:
    archive, kept = world.home / "code.tar.gz", MemorySearches()
    archive.write_bytes(packed({"train.py": "import pliant.train\n"}))
    room = searches_over(world, kept)
    job = JobSpec(name="s", script="train.py", max_tasks=1, virtual_workers=8)
    room.requests.create(ANNA, "s", settings_of(max_trials=1), job, archive, None)
    room.keeper.look()  # values are chosen
    room.keeper.look()  # and their job is queued
    world.settle(3)
    (task_id,) = world.members(kept.trials("s")[0].job_id)
    world.links.obedient = False

    leave(world, task_id, NUMBERED)
    world.restart()
    world.settle(3)
    searches_over(world, kept).keeper.look()

    (trial,) = kept.trials("s")
    assert (trial.state, trial.reports, trial.results) == (TrialState.COMPLETED, ((1, 0.8), (2, 0.4)), (0.4,))


# a stranger's file


@pytest.mark.parametrize(
    "facts",
    [
        {"unsent": "junk"},
        {"unsent": '{"task": "job-1.9"}\n' + encode(LAST[-1], 9) + "\n"},
        {"unsent": '{"task": "job-2.1"}\n' + encode(LAST[-1], 9) + "\n"},
        {"unsent": '{"task": "job-1.1"}\n' + encode(Hello(task_id=TaskId("job-2.1"), pid=1)) + "\n"},
        {"unsent": '{"task": "job-1.1"}\n' + encode(LAST[-1], 9) + "\n{}\n"},
        {"unread": "it is a link, not a plain file"},
    ],
    ids=["junk", "of another task", "of another job", "a hello of another task", "bad at its end", "a link"],
)
def test_a_bad_file_is_ignored_with_a_note_and_nothing_else_is_said_by_it(world: World, facts: dict[str, str]) -> None:
    job_id, (task_id,) = training(world)
    other, (others,) = training(world)
    assert (task_id, others) == ("job-1.1", "job-2.1")
    before = world.job(other)
    world.leave_behind(task_id, **facts)
    world.exit(task_id, -9)
    world.settle(3)

    (note,) = world.said(EventKind.WARNING)
    assert note.startswith(f"what {task_id} of {job_id} (digits) left in its LOG_DIR for the server is not taken: ")
    assert (world.job(job_id).digest, world.job(other), others in world.members(other)) == ("", before, True)


def test_what_a_bad_file_holds_does_not_hide_in_the_note(world: World) -> None:
    _, (task_id,) = training(world)
    world.leave_behind(task_id, unread="\x1b[2Jall is well" + "x" * 9999)
    world.exit(task_id, -9)
    world.settle(3)

    (note,) = world.said(EventKind.WARNING)
    assert "\\x1b[2Jall is well" in note
    assert len(note) < 500


def test_messages_that_cannot_be_dealt_with_hold_up_no_exit(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a fault of ours")

    job_id, (task_id,) = training(world)
    monkeypatch.setattr(Elastic, "receive", fail)
    leave(world, task_id, NUMBERED, 1)
    world.settle(3)

    assert (world.job(job_id).state, world.tasks(job_id)) == (JobState.FAILED, ())
    assert f"what {task_id} left for the server cannot be dealt with" in caplog.text


@pytest.mark.parametrize("unread", ["", "it is a link, not a plain file"], ids=["a good one", "a bad one"])
def test_a_fixed_job_has_no_link_and_says_nothing_by_a_file(world: World, unread: str) -> None:
    job_id = world.submit(max_tasks=1, fixed=True, max_restarts=0)
    world.settle(1)
    (task,) = world.tasks(job_id)
    world.leave_behind(task.id, unread=unread)
    leave(world, task.id, NUMBERED, 1)
    world.settle(6)

    job = world.job(job_id)
    assert (job.state, job.digest, job.progress, world.store.metrics(job_id)) == (JobState.FAILED, "", None, ())
    assert world.said(EventKind.WARNING) == []


def test_a_task_that_was_fenced_says_nothing_any_more_by_a_file_either(world: World) -> None:
    job_id, members = training(world, max_tasks=2)
    while len(world.members(job_id)) == 2:
        assert world.clock.now() < 1100, "it is never fenced"
        world.control.note_listening()
        world.say(members[0], Note(message="I live"))
        world.settle(0.5)
    leave(world, members[1], NUMBERED, -9)
    world.settle(3)

    assert world.job(job_id).digest == ""
