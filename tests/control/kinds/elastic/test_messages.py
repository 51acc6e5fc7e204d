"""What tasks say to be told to people: a second time, because the server died before it said so; and much."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.control.conftest import World

from pliant.api.jobs import JobPatch
from pliant.core.errors import Unavailable
from pliant.core.event import EventKind
from pliant.core.job import Progress, TaskId
from pliant.core.lifecycle import JobState
from pliant.core.link import (
    EpochFinished,
    Finished,
    Form,
    FromTask,
    Histograms,
    Note,
    Params,
    Point,
    Report,
    Saved,
    SaveFailed,
    ToTask,
)
from pliant.core.ports import EventFilter, Writes
from pliant.core.tensor_histogram import TensorHistogram

NEWS: tuple[FromTask, ...] = (
    EpochFinished(epoch=0, step=10, samples=640),
    Saved(what="checkpoint", step=10, epoch=1, path="checkpoint/a", num_bytes=1, seconds=0.1),
    SaveFailed(step=10, error="the disk is full"),
    Note(message="mind this"),
)


@pytest.mark.parametrize("news", NEWS, ids=lambda news: news.kind)
def test_what_was_stored_and_not_acknowledged_is_one_event(world: World, news: FromTask) -> None:
    job_id = world.submit(max_tasks=1)
    world.settle(3)
    task_id = world.members(job_id)[0]

    def told() -> int:
        """Return how many events were made of what the task said."""
        events = world.store.events(EventFilter(job_id=job_id))
        return sum(event.task_id == task_id for event in events) - num_before

    num_before = 0
    num_before = told()
    world.say(task_id, news, 7)
    world.settle(0.1)
    world.restart()
    world.say(task_id, news, 7)
    world.settle(0.1)
    assert told() == 1
    world.say(task_id, news, 8)
    world.settle(0.1)
    assert told() == 2


def test_a_message_that_could_not_be_written_is_still_news(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = world.submit(max_tasks=1)
    world.settle(3)
    with monkeypatch.context() as broken:
        broken.setattr(world.store, "write", _fail)
        world.say(world.members(job_id)[0], NEWS[0], 7)
        with pytest.raises(OSError, match="the disk is gone"):
            world.control.tick()
    world.restart()
    world.say(world.store.tasks(job_id)[0].id, NEWS[0], 7)
    world.settle(0.1)
    assert sum("epoch 0 is finished" in event.message for event in world.store.events(EventFilter())) == 1


def _fail(writes: object) -> None:
    raise OSError("the disk is gone")


def test_a_task_that_never_stops_talking_does_not_keep_the_loop_from_all_else(world: World) -> None:
    talkative, other = (world.store.tasks(world.submit())[0].id for _ in range(2))
    num_said = 0

    def say_more() -> None:
        nonlocal num_said
        num_said += 1
        assert num_said < 100, "one tick takes in more and more"
        world.control.receive(talkative, Note(message="another epoch"), stored=say_more)

    say_more()
    world.control.receive(other, Note(message="and me?"))
    world.control.tick()

    assert num_said == 2
    assert world.said(EventKind.WARNING) == ["job-1 (digits): another epoch", "job-2 (digits): and me?"]


def test_what_is_only_told_to_people_is_written_together_in_its_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [world.store.tasks(world.submit())[0].id for _ in range(2)]
    write, written, stored = world.store.write, list[int](), list[int]()

    def counted(writes: Writes) -> object:
        written.append(len(writes.events))
        if len(written) == 1:
            raise Unavailable("the database is away")
        return write(writes)

    monkeypatch.setattr(world.store, "write", counted)
    for number in range(120):
        world.control.receive(tasks[number % 2], Note(message=f"{number}"), stored=partial(stored.append, number))
    with pytest.raises(Unavailable):
        world.control.tick()
    assert stored == []
    world.control.tick()

    assert written == [50, 50, 50, 20]
    assert stored == [*range(120)]
    assert [said.rpartition(" ")[2] for said in world.said(EventKind.WARNING)] == [f"{number}" for number in range(120)]


def test_a_model_is_said_to_be_saved_though_others_were_quicker_to_say_that_all_is_done(world: World) -> None:
    job_id = world.submit(max_tasks=3)
    world.settle(3)
    leader, saver, other = world.members(job_id)
    world.links.obedient = False
    world.exit(leader, -9)
    world.settle(0.1)
    world.say(other, Finished(step=10))
    world.say(saver, Saved(what="model", step=10, epoch=1, path="model/model.pt", num_bytes=1, seconds=0.1), 1)
    world.say(saver, Finished(step=10), 2)
    world.settle()
    assert world.job(job_id).state is JobState.COMPLETED
    assert len(world.said(EventKind.MODEL_SAVED)) == 1


def test_hyperparameters_of_arguments_and_of_the_script_are_kept_with_the_job(world: World) -> None:
    job_id = world.submit(args=("--lr", "0.1", "--epochs", "5"))
    assert world.job(job_id).params == {"lr": 0.1, "epochs": 5}
    world.settle(3)
    said = Params(values={"lr": 0.2, "model": "mlp", "hf_token": "abc", "note": "x" * 1000})
    for _ in range(2):
        world.say(world.members(job_id)[0], said)
        world.settle(0.1)
    world.restart()
    kept = {"lr": 0.2, "epochs": 5, "model": "mlp", "hf_token": "(hidden)", "note": "x" * 500}
    assert world.job(job_id).params == kept


def test_histograms_that_make_sense_are_kept_once(world: World) -> None:
    job_id = world.submit()
    world.settle(3)
    now = world.clock.now()
    good = TensorHistogram(name="weights/fc1", step=7, epoch=1, at=now, lowest=-1.0, highest=2.0, counts=(1, 2))
    strange = (replace(good, name="a\nb"), replace(good, step=2**40), replace(good, counts=(1,) * 1000))
    for _ in range(2):
        world.say(world.members(job_id)[0], Histograms(histograms=(*strange, good)))
        world.say(world.members(job_id)[0], Histograms(histograms=strange))
        world.settle(0.1)
    assert world.store.histograms(job_id, "weights/fc1") == (good,)
    assert [one.name for one in world.store.histogram_series(job_id)] == ["weights/fc1"]


def test_points_that_no_database_takes_are_dropped(world: World) -> None:
    job_id = world.submit()
    world.settle(3)
    task_id = world.members(job_id)[0]
    good = Point(name="loss", step=7, epoch=1, at=5.0, value=math.nan)
    strange = (
        replace(good, step=2**70),
        replace(good, step=-1),
        replace(good, epoch=2**31),
        replace(good, name="x" * 501),
        replace(good, name="a\0b"),
        replace(good, name=""),
        replace(good, at=math.inf),
    )
    progress = Progress(epoch=1, num_epochs=2, step=7, num_steps=20, samples=64, samples_per_s=1.0)
    world.say(task_id, Report(generation=1, progress=progress, points=(*strange, good)))
    world.settle(0.1)
    assert [(point.name, point.step) for point in world.store.metrics(job_id)] == [("loss", 7)]


def test_a_point_of_a_machine_whose_clock_is_wrong_is_neither_older_than_its_job_nor_of_the_future(
    world: World,
) -> None:
    job_id = world.submit()
    world.settle(3)
    begun_at, now = world.job(job_id).submitted_at, world.clock.now()
    progress = Progress(epoch=1, num_epochs=2, step=7, num_steps=20, samples=64, samples_per_s=1.0)
    for step, at in enumerate((begun_at - 3600.0, now - 1.0, now + 3600.0)):
        points = (Point(name="loss", step=step, epoch=0, at=at, value=1.0),)
        world.say(world.members(job_id)[0], Report(generation=1, progress=progress, points=points))
        world.settle(0.1)
    first, right, last = (point.at for point in world.store.metrics(job_id))
    assert (first, right) == (begun_at, now - 1.0)
    assert now < last <= world.clock.now()


def test_points_that_cannot_be_kept_are_told_of_once(world: World) -> None:
    job_id = world.submit()
    world.settle(3)
    progress = Progress(epoch=1, num_epochs=2, step=7, num_steps=20, samples=64, samples_per_s=1.0)
    point = Point(name="loss", step=7, epoch=1, at=5.0, value=1.0)
    for name in ("grad\n" + "x" * 600, "y" * 501, "grad\n" + "x" * 600):
        points = (point, replace(point, name=name), replace(point, name=name, step=8))
        world.say(world.members(job_id)[0], Report(generation=1, progress=progress, points=points))
        world.settle(0.1)
    (said,) = world.store.events(EventFilter(kinds=(EventKind.WARNING,)))
    assert (said.job_id, said.message) == (
        job_id,
        f"job-1 (digits): points of the series 'grad\\n{'x' * 55}' are not kept: its name has 605 characters; "
        "give it 1 to 500",
    )


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "x" * 500}, ""),
        ({"name": "x" * 501}, "its name has 501 characters"),
        ({"name": ""}, "its name has 0 characters"),
        ({"name": "a\0b"}, "its name has a character NUL"),
        ({"step": 2**70}, "its step, its epoch or its time"),
        ({"step": -1}, "its step, its epoch or its time"),
        ({"epoch": 2**31}, "its step, its epoch or its time"),
        ({"at": math.inf}, "its step, its epoch or its time"),
    ],
)
def test_a_point_says_why_it_cannot_be_kept(changes: dict[str, Any], fault: str) -> None:
    found = replace(Point(name="loss", step=7, epoch=1, at=5.0, value=math.nan), **changes).fault
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


@pytest.mark.parametrize("is_end", [True, False], ids=["stopped", "paused"])
def test_the_last_tasks_know_whether_the_job_ends(world: World, monkeypatch: pytest.MonkeyPatch, is_end: bool) -> None:
    job_id = world.submit(max_tasks=2)
    world.settle(3)
    sent: list[Form] = []
    send = world.links.send

    def note(task_id: TaskId, message: ToTask) -> None:
        if isinstance(message, Form) and not message.members:
            sent.append(message)
        send(task_id, message)

    monkeypatch.setattr(world.links, "send", note)
    if is_end:
        world.control.requests.stop(job_id)
    else:
        world.control.ending.drain_all("the server goes down")
    world.settle(3)
    assert {form.is_end for form in sent} == {is_end}


def test_a_generation_is_told_what_the_server_that_leads_now_says_of_encryption(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Form] = []
    send = world.links.send

    def note(task_id: TaskId, message: ToTask) -> None:
        sent.extend([message] if isinstance(message, Form) else [])
        send(task_id, message)

    monkeypatch.setattr(world.links, "send", note)
    job_id = world.submit(max_tasks=2)
    world.settle(3)
    assert {form.encrypts for form in sent} == {False}

    sent.clear()
    world.encrypt_state = True
    world.restart()
    world.control.requests.change(job_id, JobPatch(max_tasks=3))
    world.settle(8)
    assert {form.encrypts for form in sent} == {True}
