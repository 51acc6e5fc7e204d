"""What tasks write arrives at the server, whole, as theirs, and only as long as they are wanted."""

import os
import random
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.mirror.conftest import TASK, Keeper, Machine
from tests.contracts.process_stage import until

from pliant.cluster.mirror.connection import FileConnection
from pliant.cluster.mirror.messages import Put
from pliant.core.errors import Conflict, NotFound, Unavailable

LOG = "log/job-1.1.b"


def test_logs_are_sent_as_they_grow(keeper: Keeper, machine: Machine) -> None:
    job, results, connection = keeper.job(), machine.sent("result"), machine.connect()
    log = machine.home / "jobs" / "job-1" / "result" / LOG
    log.mkdir(parents=True)
    (log / "stdout").write_text("one\n")
    results.send_logs(connection, log_root="log")
    with (log / "stdout").open("a") as out:
        out.write("two\n")
    (log / "stderr").write_text("oh\n")
    (log / ".step").write_text("7")
    results.send_logs(connection, log_root="log")
    results.send_files(connection, log_root="log", is_last=True)

    there = job / "result" / LOG
    assert (there / "stdout").read_text() == "one\ntwo\n"
    assert {path.name for path in there.iterdir()} == {"stdout", "stderr"}
    machine.sent("result").send_logs(connection, log_root="log")
    assert (there / "stdout").read_text() == "one\ntwo\n"


class Counting:
    """Counts the bytes of logs that go over a connection."""

    def __init__(self, connection: FileConnection) -> None:
        self.num_bytes = 0
        self.put, self.remove, self._append = connection.put, connection.remove, connection.append

    def append(self, path: str, name: str, offset: int, content: bytes) -> int:
        self.num_bytes += len(content)
        return self._append(path, name, offset, content)


@pytest.mark.parametrize("num_there", [0, 100, 3 << 20, (4 << 20) - 7, 4 << 20, 5 << 20])
def test_the_next_agent_goes_on_where_the_log_of_the_server_ends(
    keeper: Keeper, machine: Machine, num_there: int
) -> None:
    job, results, connection = keeper.job(), machine.sent("result"), Counting(machine.connect())
    log, there = machine.home / "jobs" / "job-1" / "result" / LOG, job / "result" / LOG
    log.mkdir(parents=True)
    there.mkdir(parents=True)
    content = random.Random(0).randbytes(4 << 20)
    (log / "stdout").write_bytes(content)
    if num_there:
        torn = min(num_there, 1000)  # a server that lost its power may have the length of a file, and not its end
        (there / "stdout").write_bytes(content[: num_there - torn] + bytes(torn))
    results.send_logs(connection, log_root="log")
    assert (there / "stdout").read_bytes()[: 4 << 20] == content
    assert connection.num_bytes <= max(0, (4 << 20) - num_there) + (1 << 18)
    with (log / "stdout").open("ab") as out:
        out.write(b"more")
    results.send_logs(connection, log_root="log")
    assert (there / "stdout").read_bytes()[: (4 << 20) + 4] == content + b"more"


def test_files_are_sent_once_they_rest_and_removed_when_they_are(keeper: Keeper, machine: Machine) -> None:
    job, results, connection = keeper.job(), machine.sent("result"), machine.connect()
    model = machine.home / "jobs" / "job-1" / "result" / "model"
    model.mkdir()
    (model / "model.pt").write_bytes(b"weights")
    (model / "model.pt").chmod(0o640)
    results.send_files(connection, log_root="log", now=lambda: (model / "model.pt").stat().st_mtime)
    assert not (job / "result" / "model").exists(), "it may be half written"
    assert results.send_files(connection, log_root="log") == []
    until(
        lambda: not results.send_files(connection, log_root="log") and (job / "result" / "model").exists(), "it rests"
    )
    facts = (job / "result" / "model" / "model.pt").stat()
    assert stat.S_IMODE(facts.st_mode) == 0o640
    assert facts.st_mtime_ns == (model / "model.pt").stat().st_mtime_ns

    (model / "model.pt").unlink()
    (job / "result" / "others").write_text("of another machine")
    results.send_files(connection, log_root="log")
    assert not (job / "result" / "model" / "model.pt").exists()
    assert (job / "result" / "others").exists()


def test_a_file_that_never_rests_is_sent_now_and_then_as_it_was(keeper: Keeper, machine: Machine) -> None:
    job, results, connection = keeper.job(), machine.sent("result"), machine.connect()
    audit = machine.home / "jobs" / "job-1" / "result" / "audit"
    now = time.time()
    for second in range(25):
        with audit.open("a") as out:
            out.write(f"{second}\n")
        os.utime(audit, (now + second, now + second))
        results.send_files(connection, log_root="log", now=lambda at=now + second: at)  # type: ignore[misc]
    sent = (job / "result" / "audit").read_text()
    assert audit.read_text().startswith(sent)
    assert 10 <= len(sent.splitlines()) < 25


def test_what_a_stranger_left_is_not_sent(keeper: Keeper, machine: Machine, tmp_path: Path) -> None:
    job, code, connection = keeper.job(), machine.sent("code"), machine.connect()
    here = machine.home / "jobs" / "job-1" / "code"
    (tmp_path / "secret").write_text("secret")
    (here / "link").symlink_to(tmp_path / "secret")
    os.link(tmp_path / "secret", here / "twin")
    os.mkfifo(here / "pipe")
    (here / "__pycache__").mkdir()
    (here / "__pycache__" / "a.pyc").write_text("")
    with (here / "hollow").open("wb") as hollow:
        hollow.truncate(1 << 40)
    (here / "fine").write_text("fine")

    (trouble,) = code.send_files(connection, log_root="", is_last=True)

    assert "hollow" in trouble
    assert "write it without holes" in trouble
    assert {path.name for path in (job / "code").iterdir()} == {"fine"}


def test_a_link_in_the_servers_folder_leads_nothing_elsewhere(keeper: Keeper, machine: Machine, tmp_path: Path) -> None:
    job, results, connection = keeper.job(), machine.sent("result"), machine.connect()
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "model.pt").write_text("mine")
    (job / "result" / "model").symlink_to(tmp_path / "victim")
    (job / "result" / "plain").symlink_to(tmp_path / "victim" / "model.pt")
    here = machine.home / "jobs" / "job-1" / "result"
    (here / "model").mkdir()
    (here / "model" / "model.pt").write_text("overwritten")
    (here / "plain").write_text("a file")

    troubles = results.send_files(connection, log_root="log", is_last=True)

    assert (tmp_path / "victim" / "model.pt").read_text() == "mine"
    assert [trouble.partition(":")[0] for trouble in troubles] == ["model/model.pt"]
    assert (job / "result" / "plain").read_text() == "a file"
    assert not (job / "result" / "plain").is_symlink()


def put(path: Path, name: str, content: bytes = b"", digest: str = "0" * 64) -> Put:
    return Put(path=str(path), name=name, num_bytes=len(content), digest=digest, mode=0o7777, mtime_ns=0)


@pytest.mark.parametrize("name", ["../submitted/files", "/etc/passwd", "a/../../x", "", "a//b", "a\0b", "./a"])
def test_no_name_leads_out_of_a_folder(keeper: Keeper, machine: Machine, name: str) -> None:
    job, connection = keeper.job(), machine.connect()
    for act in (
        lambda: connection.put(put(job / "code", name), lambda _offset, _size: b""),
        lambda: connection.append(str(job / "code"), name, 0, b"x"),
        lambda: connection.remove(str(job / "code"), name),
    ):
        with pytest.raises(Conflict, match="no file can be"):
            act()


def test_only_folders_of_the_own_job_are_written_to(keeper: Keeper, machine: Machine) -> None:
    job, other, connection = keeper.job(), keeper.job("job-2"), machine.connect()
    for path in (other / "result", job, job / "submitted", keeper.home, keeper.home / "environments" / "x"):
        with pytest.raises(Conflict, match="is no folder of job-1 that its tasks write to"):
            connection.append(str(path), "x", 0, b"x")


def test_what_comes_from_a_task_that_was_given_up_changes_nothing(keeper: Keeper, machine: Machine) -> None:
    job, results, connection = keeper.job(), machine.sent("result"), machine.connect()
    here = machine.home / "jobs" / "job-1" / "result"
    (here / "kept").write_text("1")
    results.send_files(connection, log_root="log", is_last=True)
    keeper.living.clear()
    (here / "late").write_text("a history that is over")
    (here / "kept").unlink()

    with pytest.raises(NotFound, match="does not live on b any more"):
        results.send_files(connection, log_root="log", is_last=True)
    assert {path.name for path in (job / "result").iterdir()} == {"kept"}
    with pytest.raises(NotFound, match=r"no task 'job-1\.1' lives on b"):
        machine.connect(task=TASK)


def test_a_file_that_is_not_what_was_said_is_not_taken(keeper: Keeper, machine: Machine) -> None:
    job, connection = keeper.job(), machine.connect()
    with pytest.raises(Conflict, match="arrived as something else"):
        connection.put(put(job / "result", "model.pt", b"12345"), lambda offset, size: b"12345"[offset : offset + size])
    assert list((job / "result").iterdir()) == []


def watch(
    connection: FileConnection, patch: pytest.MonkeyPatch, meanwhile: Callable[[int], None] = lambda _offset: None
) -> list[int]:
    """Return the offsets of what is sent by a connection from now on; `meanwhile` is called with each."""
    offsets: list[int] = []
    put = connection.put

    def watched(whole: Put, read: Callable[[int, int], bytes]) -> bool:
        def noted(offset: int, num_bytes: int) -> bytes:
            offsets.append(offset)
            meanwhile(offset)
            return read(offset, num_bytes)

        return put(whole, noted)

    patch.setattr(connection, "put", watched)
    return offsets


def test_a_large_file_is_sent_on_from_where_it_stopped(
    keeper: Keeper, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, results = keeper.job(), machine.sent("result")
    content = os.urandom(5 << 20)
    (machine.home / "jobs" / "job-1" / "result" / "model.pt").write_bytes(content)
    first = machine.connect()
    watch(first, monkeypatch, lambda offset: first.close() if offset >= 3 << 20 else None)
    with pytest.raises(Unavailable, match="is lost"):
        results.send_files(first, log_root="log", is_last=True)
    draft = job / ".arriving"
    until(lambda: draft.is_dir() and sum(path.stat().st_size for path in draft.iterdir()) >= 2 << 20, "a part is there")

    second = machine.connect()
    offsets = watch(second, monkeypatch)
    assert results.send_files(second, log_root="log", is_last=True) == []
    assert offsets[0] >= 2 << 20
    assert (job / "result" / "model.pt").read_bytes() == content
    assert list(draft.iterdir()) == []
