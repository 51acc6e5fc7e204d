"""How much memory a task uses: it and all that it has started. Pages that processes share count once, divided."""

import time
from collections.abc import Iterable, Iterator
from typing import Final

from pliant.cluster.process import session_members
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId
from pliant.core.size import size
from pliant.isolation.control_groups import members

CHECK_EVERY_S: Final = 0.25


class MemoryCheck:
    """Compares every now and then what tasks use with their limits."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def over_limit(self, tasks: Iterable[Record]) -> Iterator[tuple[TaskId, str]]:
        """Yield the tasks that are over their limit, with why they are ended; nothing before it is time again."""
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + CHECK_EVERY_S
        for task in tasks:
            if task.memory_bytes is None or task.pid is None:
                continue
            if (used := used_bytes(task.pid, task.group)) > task.memory_bytes:
                limit = size(task.memory_bytes)
                yield (
                    task.task_id,
                    f"used {size(used)} of memory, more than its limit of {limit}, and was ended for it",
                )


def used_bytes(session_id: int, group: str | None = None) -> int:
    """Return the proportional set size of a session and of a control group, bytes.

    What ends meanwhile counts as nothing.

    Source: `smaps_rollup` in proc(5).
    """
    inside = () if group is None else members(group)
    return sum(_pss(pid) for pid in {*session_members(session_id), *inside})


def _pss(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:  # it has ended
        return 0
    return 0
