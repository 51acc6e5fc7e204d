"""Several processes that answer requests side by side, and the one that keeps them (`GatewayGroup`).

The keeper is a small process: it holds the ports, forks the others, and forks one again that dies; it answers nothing
itself, runs no event loop and has no thread. All die with it. A signal to end goes on to all of them, and the keeper
ends when they have. One that ends well by itself, since its server wants no gateway any more, takes the others with it.
"""

import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from pliant.isolation.system_calls import end_with_parent

log = logging.getLogger("pliant.gateway")

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_PAUSE_FIRST_S: Final = 0.1
_PAUSE_MOST_S: Final = 10.0
_STABLE_S: Final = 60.0
"""One that has run for so long is started again at once."""


@dataclass(slots=True)
class _Member:
    """One of the processes."""

    number: int
    pid: int = 0
    """0: it does not run."""
    started_at: float = 0.0
    start_at: float = 0.0
    """When it is started again."""
    pause_s: float = _PAUSE_FIRST_S


class GatewayGroup:
    """Keeps processes.

    Args:
        numbers: theirs.
        serve: is one of them; gets its number, and returns its exit code.
        clear: forgets what one has counted that is dead.
    """

    def __init__(self, numbers: Iterable[int], serve: Callable[[int], int], clear: Callable[[int], None]) -> None:
        self._members = [_Member(number) for number in numbers]
        self._serve = serve
        self._clear = clear
        self._is_ending = False
        self._was_asked = False
        """To end, by a signal; one that comes when they end already is no second one, which would hurry them."""

    def run(self) -> int:
        """Keep them until they are told to end; return the exit code."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        gc.freeze()  # what all share is not touched, and so not copied, by any of them
        try:
            while not self._is_ending or any(member.pid for member in self._members):
                self._start_due(before)
                self._wait()
                self._reap()
        finally:
            self._kill()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return 0

    def _start_due(self, mask: set[int]) -> None:
        now = time.monotonic()
        for member in self._members:
            if not self._is_ending and not member.pid and member.start_at <= now:
                self._start(member, mask)

    def _start(self, member: _Member, mask: set[int]) -> None:
        keeper = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            log.error("process %d cannot be started: %s", member.number, error)  # noqa: TRY400 (no use in the trace)
            self._delay(member)
            return
        if not pid:
            self._be(member.number, keeper, mask)
        member.pid, member.started_at = pid, time.monotonic()
        log.info("process %d, one of %d, has started (pid %d)", member.number, len(self._members), pid)

    def _be(self, number: int, keeper: int, mask: set[int]) -> NoReturn:
        """Be one of them, and nothing of the keeper's: none of what it does at its end is done here."""
        code = 1
        try:
            _die_with(keeper)
            for name in (signal.SIGTERM, signal.SIGINT):
                signal.signal(name, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            code = self._serve(number)
        except BaseException:
            log.exception("process %d has a fault", number)
        finally:
            logging.shutdown()
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)

    def _wait(self) -> None:
        """Wait for a signal, or until one is to be started; hand on what is to end."""
        due = [member.start_at for member in self._members if not member.pid and not self._is_ending]
        if due:
            found = signal.sigtimedwait(_SIGNALS, max(0.0, min(due) - time.monotonic()))
        else:
            found = signal.sigwaitinfo(_SIGNALS)
        if found is not None and found.si_signo in (signal.SIGTERM, signal.SIGINT):
            log.info("all processes are to end: %s", signal.Signals(found.si_signo).name)
            if not self._is_ending or self._was_asked:
                self._end()
            self._was_asked = True

    def _end(self) -> None:
        """Tell all to finish; those that are told again end at once."""
        self._is_ending = True
        for member in self._members:
            if member.pid:
                os.kill(member.pid, signal.SIGTERM)

    def _reap(self) -> None:
        """Take note of those that have ended."""
        for member in self._members:
            if not member.pid:
                continue
            pid, status = os.waitpid(member.pid, os.WNOHANG)
            if not pid:
                continue
            member.pid = 0
            self._clear(member.number)
            code = os.waitstatus_to_exitcode(status)
            if self._is_ending:
                continue
            if code == 0:
                log.info("process %d has nothing more to serve (pid %d)", member.number, pid)
                self._end()
            else:
                log.warning("process %d (pid %d) has ended with code %d; it is started again", member.number, pid, code)
                self._delay(member)

    def _delay(self, member: _Member) -> None:
        """Start one again after a pause, which grows as long as it does not live for long."""
        now = time.monotonic()
        if member.started_at and now - member.started_at >= _STABLE_S:
            member.pause_s = _PAUSE_FIRST_S
        member.start_at = now + member.pause_s
        member.pause_s = min(2 * member.pause_s, _PAUSE_MOST_S)

    def _kill(self) -> None:
        for member in self._members:
            if member.pid:
                with suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
                os.waitpid(member.pid, 0)


def _die_with(keeper: int) -> None:
    """Have this process killed when the keeper dies.

    Raises:
        OSError: that is not possible here, or it is dead already.
    """
    end_with_parent(signal.SIGKILL)
    if os.getppid() != keeper:
        raise OSError("the process that keeps this one is dead")
