"""Runs a program and everything that it starts below a supervisor, and ends all of it together.

All of it is ended when the program has ended, at the end of its time, when it is stopped, and when the server is
killed: then the kernel tells the supervisor. A program's standard input is a pipe whose other end this process alone
holds, so that a program of Pliant's can notice the end of the server, too.

Nobody waits for the supervisor before all signals to it are sent: as long as nobody has, its number is not given to
another process, however long it has been dead. A grandchild that keeps the output pipe open is not waited for.
"""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

from pliant.catalog.children.sinks import Sink
from pliant.catalog.children.supervisor import END_S, supervised

NICENESS: Final = 10
"""Tasks and the server come first."""
_END_S: Final = END_S + 10.0
_CHUNK: Final = 1 << 16
_NUM_LEFT: Final = 32
"""Pieces that are read after the end: more than a pipe holds, so that a grandchild that goes on writing is cut off."""


class ChildStopped(Exception):
    """The child was stopped, or the server ends."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        """As it was given to `ChildQueue.stop`; empty if the queue was closed."""
        super().__init__(reason or "the server ends")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProgram:
    """What to run."""

    command: Sequence[str]
    input: bytes = b""
    """Written to its standard input, which then stays open as long as this process lives; at most what a pipe holds
    (64 KiB), so that writing never waits for the program."""
    env: Mapping[str, str] | None = None
    """None: that of this process."""
    limit_s: float | None = None
    """After this time it is ended."""
    niceness: int = NICENESS


class Child:
    """Runs programs for one submission, one after the other, until it is stopped."""

    def __init__(self) -> None:
        self.is_running = False
        """Whether its turn has come."""
        self.future: Future[None] | None = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stop_reason: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether no program is run any more."""
        return self._stop_reason is not None

    def stop(self, reason: str) -> None:
        """End the program that runs and refuse all further ones."""
        with self._lock:
            if self._stop_reason is None:
                self._stop_reason = reason
            if self._process is not None:
                _end(self._process)

    def run(self, program: ChildProgram, out: Sink, err: Sink | None = None) -> int | None:
        """Run a program to its end; return its exit code, or None if it took too long.

        A program that cannot be executed says so on its standard error and ends with exit code 127.

        Args:
            out: gets what it prints.
            err: gets what it prints to standard error; if left out, `out` does.

        Raises:
            ChildStopped: it was stopped, before or meanwhile.
            OSError: no process can be started, or a sink cannot take what it prints.
        """
        with self._start(program, has_err=err is not None) as process:
            sinks = {stream: sink for stream, sink in ((process.stdout, out), (process.stderr, err)) if stream and sink}
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):  # it has ended already; its exit code says why
                    process.stdin.write(program.input)
                is_in_time = _copy_until_end(process, sinks, program.limit_s)
            finally:
                with self._lock:  # the number is the supervisor's as long as nobody has waited for it
                    self._process = None
                    _end(process)
                code = _wait_for(process)
            for stream, sink in sinks.items():
                for _ in range(_NUM_LEFT):
                    if not (data := _read(stream)):
                        break
                    sink(data)
        self._refuse_stopped()
        return code if is_in_time else None

    def _start(self, program: ChildProgram, *, has_err: bool) -> subprocess.Popen[bytes]:
        with self._lock:
            self._refuse_stopped()
            process = subprocess.Popen(
                supervised(program.command, niceness=program.niceness),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if has_err else subprocess.STDOUT,
                cwd="/",
                env=program.env,
                start_new_session=True,
            )
            self._process = process
            return process

    def _refuse_stopped(self) -> None:
        if self._stop_reason is not None:
            raise ChildStopped(self._stop_reason)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a supervisor that was asked to end."""
    try:
        return process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _copy_until_end(process: subprocess.Popen[bytes], sinks: Mapping[IO[bytes], Sink], limit_s: float | None) -> bool:
    """Hand on what a process prints until it has ended, and leave it to be waited for; tell whether it has."""
    deadline = None if limit_s is None else time.monotonic() + limit_s
    pidfd = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(pidfd, selectors.EVENT_READ)
            for stream, sink in sinks.items():
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, (stream, sink))
            while True:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                ready = [key.data for key, _ in selector.select(left)]
                for stream, sink in filter(None, ready):
                    if data := _read(stream):
                        sink(data)
                    elif data is not None:
                        selector.unregister(stream)
                if None in ready:
                    return True
    finally:
        os.close(pidfd)


def _read(stream: IO[bytes]) -> bytes | None:
    """Return a piece of what is there; nothing at the end, None if there is none now."""
    try:
        return os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return None
