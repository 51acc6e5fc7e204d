"""Who may name which files by their whole paths."""

from pathlib import Path

import pytest

from pliant.control.requests.reach import Reach


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for job in ("job-1", "job-2"):
        (tmp_path / "jobs" / job / "result" / "checkpoint").mkdir(parents=True)
        (tmp_path / "jobs" / job / "result" / "model.pt").write_bytes(b"weights")
        (tmp_path / "jobs" / job / "result" / "checkpoint" / "step-000000000001.ckpt").write_bytes(b"")
    (tmp_path / "token").write_bytes(b"token")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_bytes(b"")
    tmp_path.chmod(0o700)
    return tmp_path


def reach(home: Path, *, sees_all: bool = False) -> Reach:
    return Reach(jobs=home / "jobs", sees=lambda job: job == "job-1", sees_all=sees_all, open_folders=(home / "data",))


def test_in_the_folders_of_jobs_only_of_those_that_one_sees(home: Path) -> None:
    own, other = home / "jobs" / "job-1" / "result", home / "jobs" / "job-2" / "result"
    found = reach(home)
    assert found.has_file(str(own / "model.pt"))
    assert found.has_folder(str(own))
    assert found.has_checkpoint(str(own / "checkpoint"))
    assert not found.has_file(str(other / "model.pt"))
    assert not found.has_file(str(own / ".." / ".." / "job-2" / "result" / "model.pt"))
    assert not found.has_folder(str(other))
    assert not found.has_checkpoint(str(other / "checkpoint"))
    assert not found.has_folder(str(home / "jobs"))


@pytest.mark.parametrize("sees_all", [True, False])
def test_a_link_in_the_folder_of_a_job_leads_to_nothing_for_anybody(home: Path, sees_all: bool) -> None:
    own = home / "jobs" / "job-1" / "result"
    (own / "link").symlink_to(home / "token")
    (own / "folder").symlink_to(home / "data")
    found = reach(home, sees_all=sees_all)
    assert not found.has_file(str(own / "link"))
    assert not found.has_folder(str(own / "folder"))
    assert not found.has_file(str(own / "folder" / "file"))


def test_a_link_from_elsewhere_opens_no_job(home: Path) -> None:
    (home / "data" / "link").symlink_to(home / "jobs" / "job-2" / "result" / "model.pt")
    assert not reach(home).has_file(str(home / "data" / "link"))
    (home / "data" / "token").symlink_to(home / "token")
    assert not reach(home).has_file(str(home / "data" / "token"))


def test_what_is_open_to_all_and_what_the_server_alone_reads(home: Path) -> None:
    assert reach(home).has_file(str(home / "data" / "file"))
    assert reach(home).has_file("/etc/passwd")
    assert reach(home).has_program("/bin/sh")
    assert not reach(home).has_file(str(home / "token"))
    assert not reach(home, sees_all=True).has_file(str(home / "token")), "nobody's task is given it"
    for path in ("etc/passwd", "", "\0", "/etc/passwd\0"):
        assert not reach(home, sees_all=True).has_file(path)
        assert not reach(home).has_file(path)
        assert not reach(home).has_folder(path)
        assert not reach(home).has_checkpoint(path)
        assert not reach(home).has_program(path)
