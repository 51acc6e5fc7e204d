"""Ends a notebook server that nobody uses, so that its slots are others'.

It is used while a kernel runs a cell, while what was started by a cell or in a terminal computes, and whenever somebody
opens a page, saves, or types into a terminal. An open page alone is no use: it asks for the list of kernels every few
seconds, for days, which is why Jupyter's own limit (`shutdown_no_activity_timeout`) does not end a server whose page is
open.
"""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from pliant.core.duration import duration

_LOOK_S: Final = 15.0
_COMPUTES: Final = 0.05
"""Of one processor. A shell, an editor or a monitor that waits takes less, a training more."""
_SESSION, _USER, _SYSTEM, _FIRST = 6, 14, 15, 3
"""Fields of /proc/PID/stat, counted from 1 as proc(5) does; the name before the third may hold anything."""


class IdleWatch:
    """Knows since when nothing was used.

    Args:
        idle_s: after so long it is idle.
        clock: seconds.
    """

    def __init__(self, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_s = idle_s
        self._clock = clock
        self._used_at = self._looked_at = clock()
        self._processor_s = 0.0

    def note_use(self) -> None:
        """Note that it is used now."""
        self._used_at = self._clock()

    def look(self, *, is_busy: bool, unused_s: float, processor_s: float) -> bool:
        """Tell whether it is idle.

        Args:
            is_busy: a kernel runs something.
            unused_s: a kernel or a terminal has last done something so long ago.
            processor_s: seconds of processor time that kernels and the programs in terminals have used so far.
        """
        now = self._clock()
        used_s, passed_s = processor_s - self._processor_s, now - self._looked_at
        self._processor_s, self._looked_at = processor_s, now
        if is_busy or used_s > _COMPUTES * passed_s:
            self._used_at = now
        self._used_at = max(self._used_at, now - unused_s)
        return now - self._used_at >= self._idle_s


def watch(app: Any, idle_s: float) -> None:
    """Stop a `ServerApp` when nobody has used it for so long."""
    from tornado.ioloop import PeriodicCallback

    state = IdleWatch(idle_s)
    _count_requests(app, state)

    def look() -> None:
        if state.look(is_busy=_is_busy(app), unused_s=_unused_s(app), processor_s=processor_s(_sessions(app))):
            said = "nothing was run, saved or opened in it"
            print(f"pliant: {said} for {duration(idle_s)}; the notebook ends", file=sys.stderr, flush=True)
            app.stop()

    PeriodicCallback(look, 1000 * min(_LOOK_S, idle_s / 4)).start()


def _count_requests(app: Any, state: IdleWatch) -> None:
    """Have pages that are opened, and all that changes something, count as use."""
    settings = app.web_app.settings
    before = settings["log_function"]

    def log(handler: Any) -> None:
        request = handler.request
        is_opened = request.headers.get("Sec-Fetch-Mode") == "navigate"
        if handler.get_status() < 400 and (is_opened or request.method not in ("GET", "HEAD", "OPTIONS")):
            state.note_use()
        before(handler)

    settings["log_function"] = log


def _kernels(app: Any) -> Iterator[Any]:
    manager = app.kernel_manager
    for kernel_id in manager.list_kernel_ids():
        with suppress(KeyError):  # it has ended
            yield manager.get_kernel(kernel_id)


def _is_busy(app: Any) -> bool:
    return any(getattr(kernel, "execution_state", "") == "busy" for kernel in _kernels(app))


def _terminals(app: Any) -> list[Any]:
    manager = app.web_app.settings.get("terminal_manager")
    return [] if manager is None else list(manager.terminals.values())


def _unused_s(app: Any) -> float:
    used = [one.last_activity for one in (*_kernels(app), *_terminals(app)) if getattr(one, "last_activity", None)]
    return float((datetime.now(UTC) - max(used)).total_seconds()) if used else float("inf")


def _sessions(app: Any) -> set[int]:
    """Return the sessions of terminals and kernels: the ids of the processes that lead them."""
    leaders = [getattr(one, "ptyproc", None) for one in _terminals(app)]
    leaders += [getattr(one, "provisioner", None) for one in _kernels(app)]
    return {pid for one in leaders if (pid := getattr(one, "pid", None))}


def processor_s(sessions: Collection[int]) -> float:
    """Return the processor time that the processes in these sessions have used, in seconds."""
    if not sessions:
        return 0.0
    ticks = 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            given = file.read().rpartition(b")")[2].split()
            if int(given[_SESSION - _FIRST]) in sessions:
                ticks += int(given[_USER - _FIRST]) + int(given[_SYSTEM - _FIRST])
    return ticks / os.sysconf("SC_CLK_TCK")
