"""What the disk lacks comes back as it was, whole or not at all, and nothing that was changed in the store."""

import io
import shutil
import tarfile
from pathlib import Path

import pytest
from tests.objects.test_job_copies import JOB, content, listed, new_copies, root, save  # noqa: F401 (a fixture)

from pliant.control.upkeep.results import note_submitted
from pliant.objects.bringing import MARK, NotBrought, bring_back
from pliant.objects.store import ObjectStore


@pytest.fixture
def job(root: Path) -> Path:  # noqa: F811
    """The folder of a job that has trained."""
    shutil.rmtree(root / "submitted")
    (root / "code" / "data").mkdir()
    (root / "code" / "data" / "x.csv").write_text("1,2\n")
    note_submitted(root / "code", root / "submitted")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(root / "code", arcname=".")
    (root / "submitted" / "archive").write_bytes(packed.getvalue())
    (root / "code" / "data" / "x.csv").write_text("1,2\n3,4\n")
    (root / "code" / "best.pt").write_bytes(b"best")
    (root / "origin" / "checkpoint").mkdir(parents=True)
    (root / "origin" / "checkpoint" / "step-000000000007.ckpt").write_bytes(b"another job's")
    (root / "result" / "model" / "model.pt").write_bytes(b"weights")
    (root / "result" / "odd\n\udcff").write_bytes(b"odd")
    save(root, 200)
    return root


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_is_lost_comes_back_as_it_was(store: ObjectStore, job: Path) -> None:
    new_copies(store, job).copy(1000.0, is_over=False)
    before = tree(job)
    shutil.rmtree(job)

    words = bring_back(store, job.parent, JOB)

    assert words == "9 files, its checkpoint of step 200 among them"
    assert tree(job) == before
    assert (job / "state").is_dir()
    assert [entry.name for entry in job.parent.iterdir()] == [JOB]
    assert bring_back(store, job.parent, JOB) == "", "nothing is missing now"
    assert not new_copies(store, job).copy(1001.0, is_over=False) or listed(store).step == 200


def test_of_a_job_that_is_over_it_is_known_that_all_of_it_is_in_the_store(store: ObjectStore, job: Path) -> None:
    copies = new_copies(store, job)
    copies.copy(1000.0, is_over=True)
    copies.copy(1011.0, is_over=True, is_final=True)
    shutil.rmtree(job)
    bring_back(store, job.parent, JOB)
    assert (job / MARK).read_text() == store.url


def test_a_checkpoint_that_the_disk_lacks_comes_back_and_all_else_stays(folder_store: ObjectStore, job: Path) -> None:
    new_copies(folder_store, job).copy(1000.0, is_over=False)
    before = tree(job)
    (job / "result" / "model" / "model.pt").write_bytes(b"newer")
    shutil.rmtree(job / "result" / "checkpoint")

    assert bring_back(folder_store, job.parent, JOB) == "its checkpoint of step 200"

    assert tree(job) == {**before, "result/model/model.pt": b"newer"}
    save(job, 300)
    assert bring_back(folder_store, job.parent, JOB) == ""


def test_what_the_store_does_not_have_is_said(folder_store: ObjectStore, job: Path) -> None:
    assert bring_back(folder_store, job.parent, JOB) == ""
    with pytest.raises(NotBrought, match="neither the disk nor the store"):
        bring_back(folder_store, job.parent, "job-2")
    with pytest.raises(NotBrought, match="is no job"):
        bring_back(folder_store, job.parent, "../job-2")


@pytest.mark.parametrize("name", ["result/model/model.pt", "submitted/archive"])
def test_what_was_changed_in_the_store_does_not_come_back(
    folder_store: ObjectStore, job: Path, tmp_path: Path, name: str
) -> None:
    new_copies(folder_store, job).copy(1000.0, is_over=False)
    shutil.rmtree(job)
    path = tmp_path / "objects" / "jobs" / JOB / name
    path.write_bytes(path.read_bytes()[::-1])

    with pytest.raises(NotBrought, match="its digest is another"):
        bring_back(folder_store, job.parent, JOB)

    assert list(job.parent.iterdir()) == []


def test_a_changed_checkpoint_does_not_come_back_either(folder_store: ObjectStore, job: Path, tmp_path: Path) -> None:
    new_copies(folder_store, job).copy(1000.0, is_over=False)
    shutil.rmtree(job / "result" / "checkpoint")
    (path,) = (tmp_path / "objects" / "jobs" / JOB / "result" / "checkpoint").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(NotBrought, match="its digest is another"):
        bring_back(folder_store, job.parent, JOB)
    assert not (job / "result" / "checkpoint").exists()


def test_without_its_code_a_job_does_not_come_back(folder_store: ObjectStore, job: Path) -> None:
    (job / "submitted" / "archive").unlink()
    new_copies(folder_store, job).copy(1000.0, is_over=False)
    shutil.rmtree(job)
    with pytest.raises(NotBrought, match="its code is not in the store"):
        bring_back(folder_store, job.parent, JOB)
