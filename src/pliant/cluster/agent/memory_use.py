"""How much memory a task uses: it and all that it has started. Pages that processes share count once, divided.

A process of the same user can keep others from looking at its pages (`PR_SET_DUMPABLE`). Then all that it has in memory
counts, shared or not, which everybody can see.
"""

import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Final

from pliant.cluster.process import ProcessTable, process_table
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.size import size
from pliant.isolation.control_groups import members

CHECK_EVERY_S: Final = 0.25
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class MemoryCheck:
    """Compares every now and then what tasks use with their limits."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def over_limit(self, tasks: Iterable[tuple[Record, Collection[int]]]) -> Iterator[tuple[TaskId, str]]:
        """Yield the tasks that are over their limit, with why they are ended; nothing before it is time again.

        With every task come the numbers of its sidecars' processes, which count.
        """
        limited = [(task, beside, task.pid, task.memory_bytes) for task, beside in tasks]
        if time.monotonic() < self._next_at or all(limit is None for *_, limit in limited):
            return
        self._next_at = time.monotonic() + CHECK_EVERY_S
        table = process_table()
        for task, beside, pid, limit in limited:
            if limit is None or pid is None:
                continue
            if (used := used_bytes(pid, task.group, table, beside)) > limit:
                yield (
                    task.task_id,
                    f"used {size(used)} of memory, more than its limit of {size(limit)}, and was ended for it",
                )


def used_bytes(session_id: int, group: str | None, table: ProcessTable, beside: Collection[int] = ()) -> int:
    """Return how much memory a task uses, bytes: its session, what that has started, and its control group.

    What ends meanwhile counts as nothing.

    Args:
        session_id: the task's, which is the number of its process, too.
        group: its control group, if there is one.
        table: a look at all processes.
        beside: further sessions that count as its own, by the numbers of their leaders.
    """
    return sum(map(_held, processes_of(session_id, group, table, beside)))


def processes_of(session_id: int, group: str | None, table: ProcessTable, beside: Collection[int] = ()) -> set[int]:
    """Return the processes of a task; the arguments are those of `used_bytes`."""
    inside = () if group is None else members(group)
    sessions = (table.family(leader) for leader in (session_id, *beside))
    return {*inside, *(pid for session in sessions for pid in session)}


def _held(pid: int) -> int:
    """Return the proportional set size of a process, or what it has in memory if others may not see that.

    Source: `smaps_rollup` and `statm` in proc(5).
    """
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                return next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:")), 0)
        except PermissionError:
            with open(f"/proc/{pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * _PAGE_BYTES
    return 0
