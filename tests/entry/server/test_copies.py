"""What a server brings back when it starts: first what jobs need that are not over, then the rest."""

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.contracts.store import a_job, a_spec
from tests.entry.server.rooms.test_copies import POOL, new_job, until
from tests.objects.test_job_copies import save

from pliant.core.errors import Unavailable
from pliant.core.job import Progress
from pliant.core.lifecycle import JobState
from pliant.core.ports import Writes
from pliant.entry.server.copies import USED, Returns, open_copies
from pliant.entry.server.rooms.copies import CopiesRoom
from pliant.sim.store import MemoryStore

pytestmark = pytest.mark.timeout(60)
PROGRESS = Progress(epoch=1, num_epochs=9, step=100, num_steps=900, samples=1, samples_per_s=1.0)
JOBS = ("job-1", "job-2", "job-3", "job-4")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of four jobs: one that trains, one that begins from the third, and two that are over."""
    home = tmp_path / "home"
    for number, job_id in enumerate(JOBS):
        root = new_job(home, job_id)
        (root / "result" / "checkpoint").mkdir()
        save(root, 100 + number)
    return home


@pytest.fixture
def room(home: Path, tmp_path: Path) -> Iterator[CopiesRoom]:
    """The room, when all four are copied."""
    room = open_copies(f"file://{tmp_path}/objects", home, POOL)
    assert room is not None
    room.start(lambda: JOBS, pytest.fail)
    for job_id in JOBS:
        manifest = tmp_path / "objects" / "jobs" / job_id / "manifest.json"
        until(partial(is_whole, manifest), f"{job_id} is copied")
    yield room
    room.close()


@pytest.fixture
def store(home: Path) -> MemoryStore:
    store = MemoryStore()
    resumed = replace(a_spec(), resume_from=str(home / "jobs" / "job-3" / "result" / "checkpoint"))
    over = [replace(a_job(job_id, state=JobState.COMPLETED), ended_at=200.0) for job_id in JOBS[2:]]
    jobs = (replace(a_job("job-1"), progress=PROGRESS), replace(a_job("job-2"), spec=resumed), *over)
    store.write(Writes(jobs=jobs))
    return store


def is_whole(manifest: Path) -> bool:
    """Tell whether the list of a job names all of it; the first one names its checkpoint alone."""
    return manifest.exists() and "result/model/model.pt" in manifest.read_text()


def there(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "jobs").iterdir())


def test_first_comes_back_what_jobs_need_that_are_not_over_and_then_the_rest(
    room: CopiesRoom, store: MemoryStore, home: Path
) -> None:
    for job_id in JOBS:
        shutil.rmtree(home / "jobs" / job_id)
    returns = Returns(room, store, home)

    returns.bring_needed()
    assert there(home) == ["job-1", "job-2", "job-3"]
    returns.bring_others(threading.Event())
    assert there(home) == [*JOBS]


def test_a_checkpoint_comes_back_where_a_training_goes_on_from_it_and_the_disk_has_none(
    room: CopiesRoom, store: MemoryStore, home: Path
) -> None:
    checkpoints = [home / "jobs" / job_id / "result" / "checkpoint" for job_id in JOBS]
    for folder in checkpoints:
        shutil.rmtree(folder)

    Returns(room, store, home).bring_needed()

    assert [folder.exists() for folder in checkpoints] == [True, False, True, False], "what has not trained needs none"
    assert [path.name for path in checkpoints[0].iterdir()] == ["step-000000000100.ckpt"]


def test_what_was_removed_by_a_clean_up_does_not_come_back(room: CopiesRoom, store: MemoryStore, home: Path) -> None:
    shutil.rmtree(home / "jobs" / "job-4" / "result" / "model")
    returns = Returns(room, store, home)
    returns.bring_needed()
    returns.bring_others(threading.Event())
    assert not (home / "jobs" / "job-4" / "result" / "model").exists()


def test_a_server_that_ends_brings_nothing_back_any_more(room: CopiesRoom, store: MemoryStore, home: Path) -> None:
    shutil.rmtree(home / "jobs" / "job-4")
    stopped = threading.Event()
    stopped.set()
    Returns(room, store, home).bring_others(stopped)
    assert not (home / "jobs" / "job-4").exists()


def test_a_job_whose_files_are_not_here_keeps_a_server_from_starting_while_the_store_is_away(
    store: MemoryStore, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    (home / USED).write_text(f"file://{tmp_path}/file")
    room = open_copies(f"file://{tmp_path}/file", home, POOL)
    assert room is not None
    try:
        Returns(room, store, home).bring_needed()
        shutil.rmtree(home / "jobs" / "job-1")
        with pytest.raises(Unavailable, match="the files of job-1 are not here, and cannot be brought back"):
            Returns(room, store, home).bring_needed()
    finally:
        room.close()
