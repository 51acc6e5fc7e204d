"""Deleting a job removes all that there is of it, unless somebody needs it, and whenever the server dies."""

import os
from pathlib import Path

import pytest
from tests.control.conftest import World
from tests.control.requests.test_after import fail
from tests.control.requests.test_arrays import ids
from tests.control.requests.test_arrays import submit as submit_array

from pliant.api.jobs import JobPatch
from pliant.control.requests import deletion as use_case
from pliant.control.upkeep import deletion
from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import JobId, JobSpec
from pliant.core.link import Finished
from pliant.core.ports import EventFilter, StartOrder, Writes
from pliant.core.tag import read_tags
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove


class Killed(BaseException):
    """The server dies here."""


def completed(world: World, **changes: object) -> JobId:
    """Return a job that has completed and saved its model."""
    job_id = world.submit(**changes)
    world.train(job_id)
    world.finish(job_id)
    result = world.home / "jobs" / job_id / "result"
    for name in ("model/model.pt", "checkpoint/step-1.ckpt", "log/t/stdout"):
        (result / name).parent.mkdir(parents=True, exist_ok=True)
        (result / name).write_bytes(b"x")
    return job_id


def delete(world: World, *job_ids: str, visible: VisibleJobs | None = None) -> None:
    world.control.deletions.delete(job_ids, "ann", visible)


def refusal(world: World, *job_ids: str, visible: VisibleJobs | None = None) -> str:
    with pytest.raises(Conflict) as refused:
        delete(world, *job_ids, visible=visible)
    assert all(world.store.job(JobId(job_id)) for job_id in job_ids), "none, if not all"
    return str(refused.value)


def left(world: World) -> list[str]:
    """Return the names in the folder of all jobs."""
    return sorted(os.listdir(world.home / "jobs"))


def clear(world: World) -> None:
    deletion.remove_what_is_left(world.store, world.clock, world.home / "jobs")


def test_a_deleted_job_is_gone_and_its_id_is_not_given_again(world: World) -> None:
    first, second = completed(world), completed(world)
    delete(world, first)
    assert left(world) == [second]
    assert world.store.events(EventFilter(job_id=first))[0].message == "job-1 was deleted by ann"
    with pytest.raises(NotFound, match=r"^job-1 was deleted by ann at 1970-01-01 00:16:4\d UTC$"):
        world.control.queries.detail(first)
    with pytest.raises(NotFound, match="no job is named 'job-1'"):
        world.control.queries.require_visible(first, VisibleJobs(owner="eve", shared=frozenset({first})))
    with pytest.raises(NotFound, match="was deleted"):
        delete(world, first)
    world.restart()
    assert world.submit() == "job-3"


def test_a_job_that_waits_or_runs_is_not_deleted(world: World) -> None:
    running = world.submit(min_tasks=8, max_tasks=8)
    waiting = world.submit(min_tasks=8, max_tasks=8)
    assert refusal(world, running) == "job-1 is running; stop it first, or wait for its end"
    assert refusal(world, waiting) == "job-2 is pending; stop it first, or wait for its end"
    world.control.requests.stop(waiting)
    assert "job-1 is running" in refusal(world, waiting, running)
    delete(world, waiting)
    assert left(world) == [running]


def test_a_job_whose_last_process_is_not_gone_is_not_deleted(world: World) -> None:
    job_id = world.submit()
    world.train(job_id)
    (task,) = world.tasks(job_id)
    world.say(task.id, Finished(step=world.step))
    world.settle()
    assert world.job(job_id).ended
    assert refusal(world, job_id) == "job-1 is completed, and its last process is not gone yet; try again in a moment"
    world.exit(task.id, 0)
    world.settle()
    delete(world, job_id)


def test_what_others_start_from_is_not_deleted_before_they_have_ended(world: World) -> None:
    first = completed(world)
    then = world.submit(weights=first)
    assert refusal(world, first) == "job-2 starts from job-1; stop that first, or wait for its end"
    stranger = VisibleJobs(owner="eve", shared=frozenset({first}))
    assert refusal(world, first, visible=stranger).startswith("a job of somebody else starts from job-1")
    fail(world, then)
    delete(world, first)
    with pytest.raises(InvalidInput, match="there is no file"):
        world.submit(weights=first)


def test_a_job_that_is_deleted_while_another_one_is_checked_that_starts_from_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = completed(world)
    admit, asked = world.control.queues.admit, iter((False, True))

    def admit_late(spec: JobSpec) -> JobSpec:
        if next(asked):
            delete(world, first)
        return admit(spec)

    monkeypatch.setattr(world.control.queues, "admit", admit_late)
    with pytest.raises(NotFound, match="job-1 was deleted"):
        world.submit(weights=first)
    assert left(world) == []
    assert world.store.jobs() == ()


def test_what_others_wait_for_is_not_deleted(world: World) -> None:
    array = submit_array(world, {"lr": (1, 2)}, min_tasks=4, max_tasks=4)
    waiting = [world.submit(after_any=(array.id,)) for _ in range(6)]
    first, second = ids(array)
    fail(world, first)
    told = refusal(world, first)
    assert told == f"{first} is of array-1, of which {second} has not ended; delete it when all of them have"
    fail(world, second)
    assert not world.job(waiting[0]).after_any, "nobody waits for what is over"
    delete(world, *ids(array))
    assert left(world) == waiting


def test_some_jobs_of_an_array_that_is_over_can_be_deleted(world: World) -> None:
    array = submit_array(world, {"lr": (1, 2, 3)})
    for job_id in ids(array):
        fail(world, job_id)
    delete(world, ids(array)[1])
    shown = world.control.queries.array_view(array.id)
    assert ([job.id for job in shown.jobs], shown.num_jobs) == (["job-1", "job-3"], 3)
    delete(world, "job-1", "job-3")
    with pytest.raises(NotFound, match="no array is named 'array-1'"):
        world.control.queries.array_view(array.id)


@pytest.mark.parametrize("dies", ["before the folder", "within the folder", "after the folder"])
def test_a_server_that_is_killed_while_it_deletes_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    first, second = completed(world), completed(world)
    unlink = os.unlink

    def die(path: UntrustedPath) -> None:
        if dies == "after the folder":
            remove(path)
        if dies == "within the folder":
            monkeypatch.setattr(os, "unlink", die_at_a_file)
            remove(path)
        raise Killed

    def die_at_a_file(name: str, *, dir_fd: int | None = None) -> None:
        if name == "model.pt":
            raise Killed
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(deletion, "remove", die)
    with pytest.raises(Killed):
        delete(world, first)
    monkeypatch.undo()
    world.restart()
    assert [one.id for one in world.store.deleted_jobs()] == [first]
    with pytest.raises(NotFound, match="job-1 was deleted"):
        world.control.queries.job(first)
    clear(world)
    assert left(world) == [second]
    assert world.store.deleted_jobs() == ()
    clear(world)
    assert left(world) == [second]


def test_a_delete_that_cannot_be_written_has_changed_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = completed(world)

    def full(_: Writes) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(world.store, "write", full)
    with pytest.raises(Unavailable):
        delete(world, job_id)
    monkeypatch.undo()
    assert world.control.queries.detail(job_id).tasks
    assert left(world) == [job_id]


def test_files_that_cannot_be_removed_are_told_and_removed_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = completed(world)

    def refuse(_: UntrustedPath) -> None:
        raise PermissionError(1, "Operation not permitted", "/secret/place")

    monkeypatch.setattr(deletion, "remove", refuse)
    delete(world, job_id)
    (told,) = world.said(EventKind.WARNING)
    assert told == "the files of job-1, which was deleted, could not be removed: Operation not permitted"
    monkeypatch.undo()
    assert left(world) == [job_id]
    clear(world)
    assert left(world) == []


def test_what_a_job_left_is_removed_and_nothing_that_it_points_to(world: World, tmp_path: Path) -> None:
    job_id = completed(world)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    result = world.home / "jobs" / job_id / "result"
    (result / "link").symlink_to(precious)
    (result / "code.py").hardlink_to(precious / "file")
    deep = result
    for _ in range(300):
        deep = deep / "d"
        deep.mkdir()
    closed = result / "closed"
    closed.mkdir()
    (closed / "file").write_text("x")
    closed.chmod(0)
    delete(world, job_id)
    assert left(world) == []
    assert (precious / "file").read_text() == "kept"


def test_files_are_removed_while_control_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = completed(world)
    seen: list[bool] = []

    def look(*_: object) -> None:
        lock = world.control._ledger.lock
        seen.append(lock._is_owned())  # type: ignore[attr-defined]

    monkeypatch.setattr(use_case, "remove_files", look)
    delete(world, job_id)
    assert seen == [False], "nobody waits for the disk"


def test_tags_are_changed_one_by_one_also_of_what_has_ended(world: World) -> None:
    job_id = completed(world, tags={"lr": "0.1", "candidate": ""})

    def change(patch: JobPatch) -> None:
        world.control.requests.change(job_id, patch)

    before = world.job(job_id)
    change(JobPatch(tags={"best": "", "lr": 0.25, "candidate": None, "other": None}))
    job = world.job(job_id)
    assert (job.tags, job.revision) == ({"lr": "0.25", "best": ""}, before.revision + 1)
    assert (job.state, job.ended_at, job.spec) == (before.state, before.ended_at, before.spec)
    assert world.said(EventKind.JOB_CHANGED) == ["job-1 (digits): tags lr=0.1, candidate → lr=0.25, best"]
    change(JobPatch(tags={"best": ""}))
    assert world.job(job_id) == job, "nothing has changed"
    with pytest.raises(Conflict, match="has already completed"):
        change(JobPatch(tags={"best": "no"}, priority=3))
    with pytest.raises(InvalidInput, match="tags: it would have 51 tags; 50 at most"):
        change(JobPatch(tags={f"t{n}": n for n in range(49)}))
    assert world.control.jobs() == {}


def test_a_tag_given_to_a_job_that_others_wait_for_lets_them_wait(world: World) -> None:
    array = submit_array(world, {"lr": (1, 2)}, min_tasks=4, max_tasks=4)
    waiter = world.submit(after=(array.id,))
    first, second = ids(array)
    world.finish(first)
    world.control.requests.change(first, JobPatch(tags={"best": ""}))
    assert world.job(waiter).after == (array.id,)
    world.finish(second)
    assert world.job(waiter).after == ()


def test_a_task_is_told_the_tags_that_its_job_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[StartOrder] = []
    start = world.cluster.start

    def note(order: StartOrder) -> None:
        orders.append(order)
        start(order)

    monkeypatch.setattr(world.cluster, "start", note)
    blocker = world.submit(min_tasks=8, max_tasks=8)
    job_id = world.submit(tags={"lr": "0.1"})
    world.control.requests.change(job_id, JobPatch(tags={"size": "groß"}))
    world.finish(blocker)
    told = [order.env.get("PLIANT_TAGS") for order in orders if order.task_id.startswith(job_id)]
    assert [read_tags(text or "") for text in told] == [{"lr": "0.1", "size": "groß"}]
    assert all("PLIANT_TAGS" not in order.env for order in orders if order.task_id.startswith(blocker))


def test_copies_that_an_object_store_has_of_a_deleted_job_are_removed_or_tried_again(world: World) -> None:
    first, second = completed(world), completed(world)
    forgotten: list[JobId] = []

    def forget(job_id: JobId) -> None:
        if is_away:
            raise OSError("its copies are still there: the store is away")
        forgotten.append(job_id)

    world.control.deletions.forget_copies = forget
    is_away = False
    delete(world, first)
    assert (forgotten, world.store.deleted_jobs()) == ([first], ())
    is_away = True
    delete(world, second)
    assert [one.id for one in world.store.deleted_jobs()] == [second]
    (warned,) = world.store.events(EventFilter(kinds=(EventKind.WARNING,)))
    assert "could not be removed: its copies are still there: the store is away" in warned.message
    is_away = False
    deletion.remove_what_is_left(world.store, world.clock, world.home / "jobs", forget)
    assert (forgotten, world.store.deleted_jobs()) == ([first, second], ())
