"""The process that copies is kept running, answers what it is asked, and says when the store is away."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pliant.control.upkeep.results import note_submitted
from pliant.core.errors import Conflict, Unavailable
from pliant.entry.server.copies import LOG, USED, has_copies, open_copies
from pliant.entry.server.rooms.copies import CopiesRoom
from pliant.files.pack import pack

pytestmark = pytest.mark.timeout(120)
POOL = "pool-one"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "jobs").mkdir(parents=True)
    return home


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/objects"


@pytest.fixture
def room(home: Path, url: str) -> Iterator[CopiesRoom]:
    room = open_copies(url, home, POOL)
    assert room is not None
    yield room
    room.close()


def new_job(home: Path, job_id: str) -> Path:
    root = home / "jobs" / job_id
    for folder in ("code", "result/model", "result/log", "state"):
        (root / folder).mkdir(parents=True)
    (root / "code" / "train.py").write_text("…")
    note_submitted(root / "code", root / "submitted")
    (root / "submitted" / "archive").write_bytes(b"".join(pack(root / "code")))
    (root / "result" / "model" / "model.pt").write_bytes(b"weights")
    return root


def until(condition: Callable[[], Any], what: str, timeout_s: float = 40.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {timeout_s} s for: {what}"
        time.sleep(0.05)
    return value


def copiers() -> list[int]:
    """Return the processes that copy for this one."""
    pids = [int(pid) for task in Path("/proc/self/task").iterdir() for pid in content(task / "children").split()]
    return [pid for pid in pids if b"pliant.entry.copier" in content(Path(f"/proc/{pid}/cmdline"))]


def content(path: Path) -> bytes:
    """Return what is in a file of /proc; nothing, if its thread or process has ended meanwhile."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_jobs_are_copied_brought_back_and_forgotten(room: CopiesRoom, home: Path, tmp_path: Path) -> None:
    root = new_job(home, "job-1")
    objects = tmp_path / "objects" / "jobs" / "job-1"
    room.start(lambda: ["job-1"], pytest.fail)
    until((objects / "manifest.json").exists, "it is copied")
    assert room.words() == f"what jobs write is copied to file://{tmp_path}/objects"

    root.rename(tmp_path / "lost")
    assert room.bring_back("job-1") == "4 files"
    assert (root / "result" / "model" / "model.pt").read_bytes() == b"weights"
    with pytest.raises(Unavailable, match="neither the disk nor the store"):
        room.bring_back("job-2")

    root.rename(tmp_path / "deleted")
    room.forget("job-1")
    assert not objects.exists()


def test_a_process_that_is_killed_is_started_again(room: CopiesRoom, home: Path, tmp_path: Path) -> None:
    room.start(lambda: ["job-1"], pytest.fail)
    (before,) = copiers()
    os.kill(before, signal.SIGKILL)
    new_job(home, "job-1")
    until((tmp_path / "objects" / "jobs" / "job-1" / "manifest.json").exists, "it is copied by another one")
    assert before not in copiers()


def test_what_is_there_at_the_end_is_copied_before_the_process_ends(home: Path, url: str, tmp_path: Path) -> None:
    room = open_copies(url, home, POOL)
    assert room is not None
    root, objects = new_job(home, "job-1"), tmp_path / "objects" / "jobs" / "job-1"
    room.start(lambda: ["job-1"], pytest.fail)
    until((objects / "manifest.json").exists, "it is copied")
    (root / "result" / "last.txt").write_text("saved when everybody left")
    room.close()
    assert (objects / "result" / "last.txt").exists()
    assert copiers() == []


def test_a_store_that_cannot_be_used_is_refused_unless_it_could_be_used_before(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    bad = f"file://{tmp_path}/file"
    with pytest.raises(Unavailable, match=r"--results-to: file://.*/file cannot write \.probe-"):
        open_copies(bad, home, POOL)
    assert not (home / USED).exists()

    (home / USED).write_text(bad)
    room = open_copies(bad, home, POOL)
    assert room is not None
    said: list[str] = []
    room.start(tuple, said.append)
    assert "they go on, and it is tried again" in said[0]
    with pytest.raises(OSError, match="its copies are still there"):
        room.forget("job-1")
    with pytest.raises(Unavailable):
        room.bring_back("job-1")
    (tmp_path / "file").unlink()
    until(lambda: len(said) == 2, "it can be used")
    assert "answers again" in said[1]
    room.close()
    assert (home / LOG).exists()


def test_nothing_is_opened_where_nothing_is_copied(home: Path) -> None:
    assert open_copies(None, home, POOL) is None
    assert not has_copies(None, home, POOL)


def test_a_lost_folder_is_known_by_the_copies_of_its_pool(room: CopiesRoom, url: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert has_copies(url, empty, POOL)
    with pytest.raises(Conflict, match="the results of another pool"):
        has_copies(url, empty, "pool-two")
    assert not has_copies(f"{url}-other", empty, POOL)
