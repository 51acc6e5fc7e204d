"""An array is one script, run once for every combination of values: all of its jobs are made, or none."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.control.conftest import World, packed, result_names
from tests.control.requests.test_after import fail, state

from pliant.api.arrays import ArrayView
from pliant.api.jobs import JobPatch
from pliant.control.requests import arrays
from pliant.core.access import VisibleJobs
from pliant.core.array import ArraySettings
from pliant.core.errors import Conflict, InvalidInput, NotFound, TooLarge, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.plan import PolicyName
from pliant.core.ports import StartOrder
from pliant.files.folder import plain_files

VALUES = {"lr": (0.1, 0.01), "batch": (32, 64)}
FILES = {"train.py": "import pliant.train\n", "lib/a.py": "A = 1\n"}


def submit(
    world: World,
    values: Mapping[str, Sequence[object]] = VALUES,
    array_max: int | None = None,
    files: Mapping[str, str] = FILES,
    **changes: object,
) -> ArrayView:
    archive = world.home / "code.tar.gz"
    archive.write_bytes(packed(files))
    spec = JobSpec(**{"name": "sweep", "script": "train.py", "virtual_workers": 8, **changes})  # type: ignore[arg-type]
    array = ArraySettings(array=values, array_max=array_max)  # type: ignore[arg-type]
    made = world.control.requests.submit_array(spec, array, archive, "ann")
    world.settle()
    return made


def ids(array: ArrayView) -> list[JobId]:
    return [job.id for job in array.jobs]


@pytest.fixture
def orders(world: World, monkeypatch: pytest.MonkeyPatch) -> list[StartOrder]:
    found: list[StartOrder] = []
    start = world.cluster.start

    def note(order: StartOrder) -> None:
        found.append(order)
        start(order)

    monkeypatch.setattr(world.cluster, "start", note)
    return found


def test_each_combination_is_a_job_whose_script_gets_its_values(world: World, orders: list[StartOrder]) -> None:
    array = submit(world, args=("--epochs", "3"))

    assert (array.id, array.name, array.owner, array.num_jobs) == ("array-1", "sweep", "ann", 4)
    assert ids(array) == ["job-1", "job-2", "job-3", "job-4"]
    assert [job.spec.name for job in array.jobs][1] == "sweep lr=0.1 batch=64"
    assert [job.spec.array.values for job in array.jobs if job.spec.array][2] == {"lr": "0.01", "batch": "32"}
    assert orders[3].argv == ("train.py", "--epochs", "3", "--lr=0.01", "--batch=64")
    env = {name: value for name, value in orders[3].env.items() if "ARRAY" in name or "INDEX" in name}
    assert env == {
        "PLIANT_ARRAY": "array-1",
        "PLIANT_JOB_INDEX": "3",
        "PLIANT_ARRAY_LR": "0.01",
        "PLIANT_ARRAY_BATCH": "64",
    }


def test_every_job_has_code_of_its_own_and_only_what_it_wrote_is_its_result(world: World) -> None:
    array = submit(world)
    folders = [world.control.settings.folders(job_id) for job_id in ids(array)]
    for place in folders:
        assert (place.root / "code/lib/a.py").read_text() == "A = 1\n"

    (folders[0].root / "code/lib/a.py").write_text("A = 2\n")
    (folders[0].root / "code/best.pt").write_bytes(b"best")

    assert (folders[1].root / "code/lib/a.py").read_text() == "A = 1\n"
    results = [result_names(world, job_id) for job_id in ids(array)]
    assert results == [["work/best.pt", "work/lib/a.py"], [], [], []]
    assert sorted(path.name for path in (world.home / "jobs").iterdir()) == ids(array)


def test_all_of_its_jobs_are_made_or_none(world: World) -> None:
    (world.home / "jobs/job-3").mkdir(parents=True)

    with pytest.raises(Unavailable):
        submit(world)

    assert world.store.jobs() == ()
    assert world.control.jobs() == {}
    assert list((world.home / "jobs").iterdir()) == []
    assert len(submit(world).jobs) == 4


def test_none_is_made_if_they_cannot_be_stored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_writes: object) -> None:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(world.store, "write", refuse)
        with pytest.raises(Unavailable):
            submit(world)

    assert list((world.home / "jobs").iterdir()) == []
    assert world.control.jobs() == {}


def test_copies_that_would_fill_the_disk_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_COPIES_BYTES", 4000)

    with pytest.raises(TooLarge, match=r"it is 1\.0 KiB, and 4 jobs, .* would need 4\.1 KiB; 3\.9 KiB is the most"):
        submit(world, files=FILES | {"data.csv": "x" * 1030})

    assert list((world.home / "jobs").iterdir()) == []
    assert len(submit(world).jobs) == 4


def test_only_so_many_run_at_once_and_the_rest_claim_nothing(world: World) -> None:
    array = submit(world, array_max=2)
    first, second, third, fourth = ids(array)
    other = world.submit(min_tasks=6, max_tasks=6)

    assert [state(world, job_id) for job_id in ids(array)] == [JobState.RUNNING] * 2 + [JobState.PENDING] * 2
    assert len(world.tasks(other)) == 6
    assert world.job(fourth).why == "waits: no more than 2 jobs of array-1 may run at once (array_max)"

    world.finish(second)
    assert [bool(world.tasks(job_id)) for job_id in (first, third, fourth)] == [True, True, False]

    world.restart()
    world.settle(5.0)
    assert world.tasks(fourth) == ()
    fail(world, first)
    assert state(world, fourth) is JobState.RUNNING


def test_a_job_of_an_array_that_is_paused_keeps_its_place(make_world: Callable[..., World]) -> None:
    world = make_world(1, PolicyName.PRIORITY)
    array = submit(world, {"a": (1, 2)}, array_max=1)
    first, second = ids(array)
    urgent = world.submit(priority=10_000)
    world.settle(5.0)
    assert state(world, first) is JobState.PAUSED
    world.control.requests.change(second, JobPatch(priority=10_000))
    world.finish(urgent)
    world.settle(5.0)

    assert (state(world, first), state(world, second)) == (JobState.RUNNING, JobState.PENDING)


def test_it_is_stopped_as_one(world: World) -> None:
    array = submit(world, array_max=2)
    fail(world, ids(array)[0])

    stopping = world.control.requests.stop_array("array-1", "ann")
    world.settle(10.0)

    assert stopping.states[JobState.STOPPED] == 1
    assert world.control.queries.array_view("array-1").states == {JobState.FAILED: 1, JobState.STOPPED: 3}
    with pytest.raises(Conflict, match="all jobs of array-1 have ended already"):
        world.control.requests.stop_array("array-1")


def test_a_job_after_an_array_waits_for_all_of_it(world: World) -> None:
    array = submit(world)
    then, however = world.submit(after=("array-1",)), world.submit(after_any=("array-1",))
    for job_id in ids(array)[:3]:
        world.finish(job_id)
    world.restart()
    world.settle(3.0)
    assert (world.job(then).why, state(world, however)) == ("waits for array-1 to complete", JobState.PENDING)

    world.finish(ids(array)[3])

    assert state(world, then) is state(world, however) is JobState.RUNNING


def test_a_job_after_an_array_ends_with_the_first_of_it_that_fails(world: World) -> None:
    array = submit(world)
    then, however = world.submit(after=("array-1",)), world.submit(after_any=("array-1",))

    fail(world, ids(array)[2])

    assert world.job(then).reason == "job-3 of array-1 failed, and job-5 was to run after array-1 had completed"
    assert state(world, however) is JobState.PENDING
    for job_id in ids(array):
        if not world.job(job_id).ended:
            world.finish(job_id)
    assert state(world, however) is JobState.RUNNING


def test_an_array_may_itself_run_after_something(world: World) -> None:
    first = world.submit()
    array = submit(world, after=(first,), array_max=1)
    assert {world.job(job_id).why for job_id in ids(array)} == {"waits for job-1 to complete"}

    world.finish(first)
    assert [bool(world.tasks(job_id)) for job_id in ids(array)] == [True, False, False, False]

    with pytest.raises(InvalidInput, match="it would never start"):
        world.control.requests.change(ids(array)[3], JobPatch(after=("array-1",)))


def test_it_is_seen_by_who_sees_all_of_it(world: World) -> None:
    array = submit(world)
    ann, bob = VisibleJobs(owner="ann"), VisibleJobs(owner="bob", shared=frozenset(ids(array)[:3]))

    assert len(world.control.queries.array_view("array-1", ann).jobs) == 4
    with pytest.raises(NotFound, match="no array is named 'array-1'"):
        world.control.queries.array_view("array-1", bob)
    with pytest.raises(NotFound):
        world.control.queries.array_view("array-2")


def test_a_name_of_a_job_is_one_line_and_not_too_long(world: World) -> None:
    array = submit(world, {"path": ("a/b", "x" * 300, "line\nbreak")})

    names = [job.spec.name for job in array.jobs]
    assert names[0] == "sweep path=a_b"
    assert len(names[1]) == 120
    assert names[2] == "sweep path=line_break"
    assert array.jobs[0].spec.args == ("--path=a/b",)


def test_a_submission_that_is_wrong_makes_no_array(world: World) -> None:
    with pytest.raises(InvalidInput, match=r"other\.py"):
        submit(world, script="other.py")
    with pytest.raises(InvalidInput, match="1,001 jobs"):
        submit(world, {"a": tuple(range(1001))})
    assert submit(world).id == "array-1"
    assert len(world.said(EventKind.JOB_SUBMITTED)) == 4


def test_files_of_somebody_else_are_kept_once(world: World, tmp_path: Path) -> None:
    code = tmp_path / "new/code"
    code.mkdir(parents=True)
    (code / "train.py").write_text("x = 1\n")
    (code.parent / "submitted").mkdir()
    (code.parent / "submitted/files").write_text("")
    (code.parent / "origin/checkpoint").mkdir(parents=True)
    (code.parent / "origin/checkpoint/step-1.ckpt").write_bytes(b"state")

    places = arrays.multiply(code, 3)

    found = [place.parent / "origin/checkpoint/step-1.ckpt" for place in places]
    assert [path.read_bytes() for path in found] == [b"state"] * 3
    assert len({path.stat().st_ino for path in found}) == 1
    assert len({(place / "train.py").stat().st_ino for place in places}) == 3


def test_copies_leave_room_on_the_disk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    monkeypatch.setattr(arrays, "check_room", lambda _folder, num_bytes: checked.append(num_bytes))
    submit(world)
    notes = plain_files(world.home / "jobs" / "job-1" / "submitted")
    copied = sum(len(text) for text in FILES.values()) + sum(path.stat().st_size for path in notes)
    assert checked == [3 * copied]
