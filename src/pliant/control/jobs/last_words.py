"""How a process ended, in words, and what it said last."""

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from pliant.control.settings import ControlSettings
from pliant.core.job import Task

NUM_STDERR_LINES = 10
_TAIL_BYTES = 8192
_TRACEBACK = "Traceback (most recent call last):"


def describe(exit_code: int | None) -> str:
    """Return how a process that Pliant did not kill has ended, in words that follow its name."""
    if exit_code is None:
        return "vanished without anybody seeing how"
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    number = -exit_code
    known = {s.value: s.name for s in signal.Signals}
    hint = " (not by Pliant; often the kernel, out of memory)" if number == signal.SIGKILL else ""
    return f"was killed by {known.get(number, f'signal {number}')}{hint}"


def stderr_of(settings: ControlSettings, task: Task) -> str:
    """Return the last lines of what a task wrote to stderr, to be put behind a reason."""
    path = _stderr(settings, task)
    lines = [line for line in _tail(path)[0].splitlines() if line.strip()][-NUM_STDERR_LINES:]
    return f"; the end of its stderr ({path}):\n" + "\n".join(lines) if lines else "; its stderr is empty"


def stderr_of_first(settings: ControlSettings, failed: Task, others: Iterable[Task]) -> str:
    """Return `stderr_of` the process whose traceback was written first, be it `failed` or one that still ends.

    One process that raises makes its peers raise, and one of them may be gone before it is.
    """
    found = [(_tail(_stderr(settings, task)), task) for task in (failed, *others)]
    raised = [(at, task) for (text, at), task in found if _TRACEBACK in text]
    if failed not in [task for _, task in raised]:
        return stderr_of(settings, failed)
    _, first = min(raised, key=lambda each: each[0])
    before = "" if first is failed else f"; {first.id} had raised before it"
    return before + stderr_of(settings, first)


def _stderr(settings: ControlSettings, task: Task) -> Path:
    return settings.folders(task.job_id).log(task.id, task.node_id) / "stderr"


def _tail(path: Path) -> tuple[str, int]:
    """Return the end of a file and when it was written, ns; nothing and 0 where there is none."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            file.seek(max(0, status.st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode("utf-8", "replace"), status.st_mtime_ns
    except OSError:
        return "", 0
