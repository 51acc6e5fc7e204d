"""How long the logs of tasks may be, and what their owners are told; what cuts them runs in a process beside the agent.

A task writes its logs itself, as fast as the disk takes them. So they are looked at every second, and of one that holds
too much the middle is given back to the disk (`files.untrusted.gaps`). Its owner is told the first time, and whenever
ten times as much is left out.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.size import size
from pliant.files.untrusted.gaps import cut_middle
from pliant.files.untrusted.path import UntrustedPath

STREAMS: Final = ("stdout", "stderr")
TELL_AGAIN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLogs:
    """Where the logs of a task lie."""

    task_id: TaskId
    folder: str
    """In a folder that is its job's, two levels below one that is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCut:
    """So many bytes of a log were given back to the disk."""

    task_id: TaskId
    stream: str
    num_bytes: int


def logs_of(tasks: Iterable[Record]) -> tuple[TaskLogs, ...]:
    """Return where these tasks write their logs."""
    return tuple(TaskLogs(task_id=task.task_id, folder=task.log_dir) for task in tasks if task.log_dir)


def cut_logs(logs: Iterable[TaskLogs], max_bytes: int) -> tuple[LogCut, ...]:
    """Cut what is too long; what is no plain file of its owner's, or cannot be cut, stays as it is."""
    found = []
    for task in logs:
        for stream in STREAMS:
            with suppress(OSError):
                if num_bytes := cut_middle(_untrusted(task.folder) / stream, max_bytes):
                    found.append(LogCut(task_id=task.task_id, stream=stream, num_bytes=num_bytes))
    return tuple(found)


def _untrusted(folder: str) -> UntrustedPath:
    """Return the folder of a task's logs, `JOB/result/log/TASK`, of which `JOB` is ours."""
    job, inside = Path(folder).parents[2], Path(folder).parts[-3:]
    return UntrustedPath(job, "/".join(inside))


class LogNotes:
    """What owners are told of logs that were cut."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._began_at: dict[TaskId, float] = {}
        self._left_out: dict[tuple[TaskId, str], int] = {}
        self._named: dict[tuple[TaskId, str], int] = {}

    def begin(self, task_ids: Iterable[TaskId], now: float) -> None:
        """Take note of the tasks that there are, and forget the others."""
        self._began_at = {task_id: self._began_at.get(task_id, now) for task_id in task_ids}
        for known in (self._left_out, self._named):
            for key in [key for key in known if key[0] not in self._began_at]:
                del known[key]

    def take(self, cuts: Iterable[LogCut], now: float) -> Mapping[TaskId, str]:
        """Return what is to be told of which task, in words."""
        words: dict[TaskId, str] = {}
        for cut in cuts:
            key = (cut.task_id, cut.stream)
            total = self._left_out[key] = self._left_out.get(key, 0) + cut.num_bytes
            if cut.task_id in self._began_at and total >= TELL_AGAIN * self._named.get(key, 0):
                self._named[key] = total
                words[cut.task_id] = self._words(cut, total, now - self._began_at[cut.task_id])
        return words

    def _words(self, cut: LogCut, total: int, seconds: float) -> str:
        rate = size(round((total + self._max_bytes) / max(1.0, seconds)))
        return (
            f"writes {rate}/s to its {cut.stream}, which may hold {size(self._max_bytes)} (pliant up --max-log): "
            f"its beginning and its end are kept, and {size(total)} between them are left out by now"
        )
