"""A job that starts from what another user's job left gets a copy: nothing that is no plain file is copied."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.control.conftest import World

from pliant.control.jobs.inputs import JobInputs
from pliant.control.requests.origin import copy_foreign, with_copies
from pliant.control.settings import JobFolders
from pliant.core.confinement import RunAs
from pliant.core.errors import InvalidInput
from pliant.core.job import JobId, JobSpec

IDS = {"admin": 60706, "bob": 60707}


def job_with_results(root: Path) -> JobFolders:
    folders = JobFolders(root=root)
    for folder in (folders.model, folders.checkpoints):
        Path(str(folder)).mkdir(parents=True, exist_ok=True)
    Path(str(folders.weights)).write_bytes(b"weights")
    for name in ("step-000000000001.ckpt", "step-000000000002.ckpt"):
        Path(str(folders.checkpoints / name)).write_bytes(name.encode())
    return folders


def spec_from(folders: JobFolders, **changes: str) -> JobSpec:
    fields = {"weights": str(folders.weights), "resume_from": str(folders.checkpoints), **changes}
    return JobSpec(name="digits", script="train.py", max_tasks=1, virtual_workers=8, **fields)  # type: ignore[arg-type]


def test_the_files_of_another_user_are_copied_and_named_where_they_will_be(tmp_path: Path) -> None:
    spec = spec_from(job_with_results(tmp_path / "jobs" / "job-1"))

    copied = copy_foreign(spec, tmp_path / "jobs", {"job-1"}.__contains__, tmp_path / "new")
    settled = with_copies(spec, copied, JobFolders(root=tmp_path / "jobs" / "job-2"))

    assert copied == {"weights", "resume_from"}
    assert (tmp_path / "new" / "model.pt").read_bytes() == b"weights"
    assert sorted(os.listdir(tmp_path / "new" / "checkpoint")) == ["step-000000000001.ckpt", "step-000000000002.ckpt"]
    assert settled.weights == str(tmp_path / "jobs" / "job-2" / "origin" / "model.pt")
    assert settled.resume_from == str(tmp_path / "jobs" / "job-2" / "origin" / "checkpoint")


def test_ones_own_are_not_and_neither_is_what_no_job_has(tmp_path: Path) -> None:
    folders = job_with_results(tmp_path / "jobs" / "job-1")
    spec = spec_from(folders, weights=str(tmp_path / "mine.pt"))

    copied = copy_foreign(spec, tmp_path / "jobs", lambda _job: False, tmp_path / "new")

    assert copied == frozenset()
    assert not (tmp_path / "new").exists()
    assert with_copies(spec, copied, folders) == spec


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path)], ids=["pipe", "link"])
def test_what_is_no_plain_file_is_refused_in_words(tmp_path: Path, plant: Callable[[str], None]) -> None:
    folders = job_with_results(tmp_path / "jobs" / "job-1")
    os.unlink(str(folders.weights))
    plant(str(folders.weights))

    with pytest.raises((InvalidInput, OSError)):
        copy_foreign(spec_from(folders), tmp_path / "jobs", lambda _job: True, tmp_path / "new")
    assert not (tmp_path / "new" / "model.pt").exists()


def test_files_of_another_user_that_are_to_come_cannot_be_copied(make_world: Callable[..., World]) -> None:
    world = make_world(8)
    world.inputs = JobInputs(user_of=lambda person: RunAs(uid=IDS[person]))
    world.restart()
    first = world.submit()
    job_with_results(world.control.settings.folders(first).root)
    archive = world.home / "code.tar.gz"

    def submit(owner: str, **origin: str) -> None:
        spec = JobSpec(name="n", script="train.py", virtual_workers=8, after=(first,), **origin)  # type: ignore[arg-type]
        world.control.requests.submit(spec, archive, owner)

    for origin in ({"weights": first}, {"resume_from": first}):
        submit("admin", **origin)
        with pytest.raises(InvalidInput, match="job-1 is another user's, and its files are copied now"):
            submit("bob", **origin)
    world.finish(first)
    submit("bob", weights=first)


def test_a_job_of_another_person_starts_from_its_copy(make_world: Callable[..., World]) -> None:
    world = make_world(8)
    world.inputs = JobInputs(user_of=lambda person: RunAs(uid=IDS[person]))
    world.restart()
    first = world.submit()
    job_with_results(world.control.settings.folders(first).root)

    archive = world.home / "code.tar.gz"
    for owner, place in (("admin", first), ("bob", JobId("job-3"))):
        spec = JobSpec(name="digits", script="train.py", max_tasks=1, virtual_workers=8, weights=first)
        job = world.control.requests.submit(spec, archive, owner)
        world.settle()
        folder = "result/model" if owner == "admin" else "origin"
        assert job.spec.weights == str(world.home / "jobs" / place / folder / "model.pt")
        assert Path(job.spec.weights).read_bytes() == b"weights"
    orders = {str(order.task_id): order.confinement for order in world.cluster.orders}
    assert [orders[task].user for task in ("job-2.1", "job-3.1")] == [RunAs(uid=60706), RunAs(uid=60707)]
    assert job.spec.weights in orders["job-3.1"].named
