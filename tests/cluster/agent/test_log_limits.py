"""What owners are told of logs that are too long."""

from pathlib import Path

from pliant.cluster.agent.log_limits import LogCut, LogNotes, TaskLogs, cut_logs
from pliant.core.job import TaskId

ONE, OTHER = TaskId("job-1.1"), TaskId("job-1.2")
MAX = 256 << 20


def cut(num_bytes: int, task_id: TaskId = ONE, stream: str = "stdout") -> LogCut:
    return LogCut(task_id=task_id, stream=stream, num_bytes=num_bytes)


def test_the_first_cut_is_told_with_the_rate_and_then_every_tenfold() -> None:
    notes = LogNotes(MAX)
    notes.begin([ONE], 100.0)
    assert notes.take([cut(1 << 30)], 102.0) == {
        ONE: "writes 640 MiB/s to its stdout, which may hold 256 MiB (pliant up --max-log): its beginning and its end "
        "are kept, and 1.0 GiB between them are left out by now"
    }
    for second in range(3, 11):
        assert notes.take([cut(1 << 30)], 100.0 + second) == {}
    (words,) = notes.take([cut(1 << 30)], 120.0).values()
    assert words.startswith("writes 525 MiB/s")
    assert "10.0 GiB between them" in words


def test_each_stream_of_each_task_is_told_and_those_that_are_gone_are_forgotten() -> None:
    notes = LogNotes(MAX)
    notes.begin([ONE, OTHER], 0.0)
    assert notes.take([cut(10), cut(10, OTHER)], 1.0).keys() == {ONE, OTHER}
    assert "stderr" in notes.take([cut(10, stream="stderr")], 1.0)[ONE]
    notes.begin([OTHER], 2.0)
    assert notes.take([cut(10**9)], 3.0) == {}
    notes.begin([ONE, OTHER], 4.0)
    assert notes.take([cut(10)], 5.0).keys() == {ONE}


def test_logs_are_cut_where_a_task_writes_them(tmp_path: Path) -> None:
    folder = tmp_path / "job-1" / "result" / "log" / "job-1.1.local"
    folder.mkdir(parents=True)
    (folder / "stdout").write_bytes(b"x" * (8 << 20))
    (folder / "stderr").symlink_to(folder / "stdout")
    missing = TaskLogs(task_id=OTHER, folder=str(tmp_path / "job-1" / "result" / "log" / "job-1.2.local"))
    (found,) = cut_logs([missing, TaskLogs(task_id=ONE, folder=str(folder))], 1 << 20)
    assert (found.task_id, found.stream) == (ONE, "stdout")
    assert 7 << 20 <= found.num_bytes < 8 << 20
