"""Records survive as a whole or not at all, and a new term shuts out the one before."""

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.cluster.zygote import records
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId


def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    @given(
        pid=st.none() | st.integers(1, 4_000_000),
        code=st.none() | st.integers(-64, 255),
        error=st.text(),
        slots=st.lists(st.integers(0, 63), max_size=4),
    )
    def law(pid: int | None, code: int | None, error: str, slots: list[int]) -> None:
        record = Record(task_id=TaskId("job-1.1"), slots=tuple(slots), pid=pid, exit_code=code, error=error)
        records.write(folder, record)
        assert records.read(folder, record.task_id) == record
        assert records.read_all(folder) == [record]

    folder = tmp_path_factory.mktemp("records")
    law()


def test_only_the_owner_reads_a_record_and_no_draft_is_left(tmp_path: Path) -> None:
    records.write(tmp_path, Record(task_id=TaskId("job-1.1"), slots=(0,)))

    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_record_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    record = Record(task_id=TaskId("job-1.1"), slots=(0,))
    records.write(tmp_path, record)
    os.mkdir(tmp_path / f".job-1.1.json.{os.getpid()}")

    with pytest.raises(OSError, match="directory"):
        records.write(tmp_path, Record(task_id=TaskId("job-1.1"), slots=(1,)))

    assert records.read(tmp_path, record.task_id) == record


def test_terms_count_up_and_none_begins_while_one_is_held(tmp_path: Path) -> None:
    assert [records.new_term(tmp_path) for _ in range(3)] == [1, 2, 3]
    began: list[int] = []
    thread = threading.Thread(target=lambda: began.append(records.new_term(tmp_path)))

    with records.lock_term(tmp_path) as term:
        thread.start()
        assert term == 3
        assert began == []
    thread.join(10)

    assert began == [4]
