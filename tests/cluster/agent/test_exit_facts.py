"""What a dead task left behind is read like a stranger's: no link is followed, nothing waits, and little is read."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pliant.cluster.agent.exit_facts import collect
from pliant.cluster.agent.inspection import Inspected
from pliant.cluster.json_lines import encode
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.ports import MAX_STDERR_BYTES, MAX_UNSENT_BYTES, UNSENT_FILE, ExitFacts
from pliant.files import step_file

SECRET = "the server's secret"


@pytest.fixture
def result(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    for name in ("stderr", "model.pt"):
        (tmp_path / "secret" / name).write_text(SECRET)
    (tmp_path / "secret" / step_file.NAME).write_bytes(step_file.pack(9))
    (tmp_path / "secret" / UNSENT_FILE).write_text(SECRET)
    result = tmp_path / "job" / "result"
    (result / "log" / "job-1.1.here").mkdir(parents=True)
    (result / "model").mkdir()
    return result


def log(result: Path) -> Path:
    return result / "log" / "job-1.1.here"


def record(result: Path) -> Record:
    return Record(
        task_id=TaskId("job-1.1"),
        slots=(0,),
        log_dir=str(log(result)),
        result_dir=str(result),
        model=str(result / "model" / "model.pt"),
    )


def facts(result: Path) -> ExitFacts:
    return collect(record(result), out_of_memory=False)


def test_all_that_is_there_is_told(result: Path) -> None:
    (log(result) / "stderr").write_bytes(b"it broke \xff\n")
    os.utime(log(result) / "stderr", (5.5, 5.5))
    (log(result) / step_file.NAME).write_bytes(step_file.pack(12))
    (log(result) / UNSENT_FILE).write_text('{"task": "job-1.1"}\nü\n')
    (result / "model" / "model.pt").write_bytes(b"")

    told = ExitFacts(
        step=12,
        stderr="it broke \ufffd\n",
        stderr_at=5.5,
        unsent='{"task": "job-1.1"}\nü\n',
        saved_model=True,
        out_of_memory=True,
    )
    assert collect(record(result), out_of_memory=True) == told


def test_what_is_missing_is_no_fact(result: Path) -> None:
    assert facts(result) == ExitFacts()
    assert facts(result.parent / "never-made") == ExitFacts()
    of_an_older_agent = replace(record(result), log_dir=None, result_dir=None, model=None)
    assert collect(of_an_older_agent, out_of_memory=False) == ExitFacts()


def test_of_a_huge_file_only_the_end_is_read(result: Path) -> None:
    with (log(result) / "stderr").open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room
        file.seek(0, os.SEEK_END)
        file.write(b"the end")
    (log(result) / step_file.NAME).write_bytes(b"\x01" * 100_000)

    found = facts(result)
    assert len(found.stderr) == MAX_STDERR_BYTES
    assert found.stderr.endswith("\0the end")
    assert found.step is None


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    ("put", "why"),
    [
        ("pipe", "it is a pipe, not a plain file"),
        ("link", "it is a link, not a plain file"),
        ("second_name", "it has a second name, and may be somebody else's file"),
        ("folder", "it is a folder, not a plain file"),
    ],
)
def test_messages_in_what_is_not_a_file_of_the_task_s_are_not_read_and_that_is_told(
    result: Path, put: str, why: str
) -> None:
    PUT[put](log(result) / UNSENT_FILE, result.parents[1] / "secret" / UNSENT_FILE)

    assert facts(result) == ExitFacts(unread=why)


def test_messages_in_a_folder_that_is_a_link_are_not_read(result: Path) -> None:
    log(result).rmdir()
    log(result).symlink_to(result.parents[1] / "secret")

    found = facts(result)
    assert (found.unsent, found.step, found.stderr) == ("", None, "")
    assert found.unread


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            b"x" * (MAX_UNSENT_BYTES + 1),
            f"it has {MAX_UNSENT_BYTES + 1:,} bytes; at most {MAX_UNSENT_BYTES:,} are read",
        ),
        (b"\xff\xfe", "it is no text"),
    ],
    ids=["too long", "bytes"],
)
def test_messages_in_a_file_that_is_too_long_or_no_text_are_not_read(result: Path, content: bytes, why: str) -> None:
    (log(result) / UNSENT_FILE).write_bytes(content)

    assert facts(result) == ExitFacts(unread=why)


def test_the_longest_file_of_messages_is_read_whatever_it_holds_and_fits_a_line(result: Path) -> None:
    (log(result) / UNSENT_FILE).write_bytes(b"\x01" * MAX_UNSENT_BYTES)

    found = facts(result)
    assert len(found.unsent) == MAX_UNSENT_BYTES
    assert encode(Inspected(number=1, facts=found))


def test_a_step_below_zero_is_none(result: Path) -> None:
    (log(result) / step_file.NAME).write_bytes((-1).to_bytes(8, "little", signed=True))

    assert facts(result).step is None


def pipe(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def second_name(path: Path, target: Path) -> None:
    os.link(target, path)


def folder(path: Path, _target: Path) -> None:
    path.mkdir()


PUT = {"pipe": pipe, "link": link, "second_name": second_name, "folder": folder}


@pytest.mark.timeout(5)
@pytest.mark.parametrize("put", [pipe, link, folder])
def test_only_regular_files_count(result: Path, put: Callable[[Path, Path], None]) -> None:
    secret = result.parents[1] / "secret"
    put(log(result) / "stderr", secret / "stderr")
    put(log(result) / step_file.NAME, secret / step_file.NAME)
    put(result / "model" / "model.pt", secret / "model.pt")

    assert facts(result) == ExitFacts()


def test_a_file_with_another_name_elsewhere_is_not_read(result: Path) -> None:
    second_name(log(result) / "stderr", result.parents[1] / "secret" / "stderr")

    assert facts(result) == ExitFacts()


@pytest.mark.parametrize("replaced", ["log/job-1.1.here", "log", "model", "."])
def test_a_folder_on_the_way_that_is_a_link_leads_nowhere(result: Path, replaced: str) -> None:
    elsewhere = result.parents[1] / "elsewhere"
    (elsewhere / "log" / "job-1.1.here").mkdir(parents=True)
    (elsewhere / "model").mkdir()
    (elsewhere / "log" / "job-1.1.here" / "stderr").write_text(SECRET)
    (elsewhere / "model" / "model.pt").write_text(SECRET)
    (result / replaced).rename(result.parent / "moved")
    (result / replaced).symlink_to(elsewhere / replaced)

    found = facts(result)
    assert SECRET not in found.stderr
    assert not found.saved_model


def test_nothing_outside_the_tasks_folder_is_read(result: Path) -> None:
    secret = result.parents[1] / "secret"
    outside = replace(record(result), log_dir=str(secret), model=str(secret / "model.pt"))

    assert collect(outside, out_of_memory=False) == ExitFacts()
