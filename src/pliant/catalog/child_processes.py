"""Child processes of the server, so many at a time: they import data sets, build environments, try interpreters.

A `ChildQueue` has a few threads. What is submitted waits for one of them and then runs its programs one after the
other, each with `Child.run`. With two threads and three imports of ten minutes each, the third begins after ten
minutes; `stop` takes it out of the queue at once, while `stop` of the first kills its process and waits for its thread.

A program and everything that it starts are one process group, which is killed when the program has ended, at the end of
its time, when it is stopped and when the queue is closed. A server that is killed closes nothing: the program notices
that its standard input ends (this process alone holds the other end), and ends itself and its group.

Whatever a child says is a stranger's: lines are cut, logs are bounded, and nobody waits for a pipe that a grandchild
keeps open. It knows no data set and no environment.
"""

import logging
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

log = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 32 << 20
MAX_LOG_BYTES: Final = 16 << 20
NICENESS: Final = 10
"""Tasks and the server come first."""
_MAX_NICENESS: Final = 19
_CHUNK: Final = 1 << 16
_NUM_LEFT: Final = 32
"""Chunks that are read after the end: more than a pipe holds, so that a grandchild that goes on writing is cut off."""
_LEFT_OUT: Final = b"\n(the log is too long; the rest is left out)\n"

Sink = Callable[[bytes], None]
"""Gets what a program prints, piece by piece."""


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
    order: bytes = b""
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
                _kill_group(self._process)

    def run(self, program: ChildProgram, out: Sink, err: Sink | None = None) -> int | None:
        """Run a program to its end; return its exit code, or None if it took too long.

        Args:
            out: gets what it prints.
            err: gets what it prints to standard error; if left out, `out` does.

        Raises:
            ChildStopped: it was stopped, before or meanwhile.
            OSError: it cannot be started, or a sink cannot take what it prints.
        """
        with self._start(program, has_err=err is not None) as process:
            sinks = {stream: sink for stream, sink in ((process.stdout, out), (process.stderr, err)) if stream and sink}
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):  # it has ended already; its exit code says why
                    process.stdin.write(program.order)
                is_in_time = _copy_until_end(process, sinks, program.limit_s)
            finally:
                with self._lock:  # the number is the group's as long as nobody has waited for its leader
                    _kill_group(process)
                    self._process = None
                code = process.wait()
            for stream, sink in sinks.items():
                _copy_rest(stream, sink)
        self._refuse_stopped()
        return code if is_in_time else None

    def _start(self, program: ChildProgram, *, has_err: bool) -> subprocess.Popen[bytes]:
        with self._lock:
            self._refuse_stopped()
            process = subprocess.Popen(
                list(program.command),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if has_err else subprocess.STDOUT,
                cwd="/",
                env=program.env,
                start_new_session=True,
            )
            with suppress(ProcessLookupError):
                niceness = os.getpriority(os.PRIO_PROCESS, 0) + program.niceness
                os.setpriority(os.PRIO_PGRP, process.pid, min(niceness, _MAX_NICENESS))
            self._process = process
            return process

    def _refuse_stopped(self) -> None:
        if self._stop_reason is not None:
            raise ChildStopped(self._stop_reason)


class ChildQueue:
    """Works on what is submitted under keys, so much at a time. Safe to call from any thread."""

    def __init__(self, max_running: int, name: str) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._children: dict[str, Child] = {}
        """What waits or runs, in the order in which it came."""
        self._pool = ThreadPoolExecutor(max_running, thread_name_prefix=name)

    def submit(self, key: str, work: Callable[[Child], object]) -> None:
        """Call `work` in a thread of the queue as soon as its turn comes; never, if the queue is closed before."""
        with self._lock:
            if not self._is_closed:
                child = self._children[key] = Child()
                child.future = self._pool.submit(self._work, key, child, work)

    def is_active(self, key: str) -> bool:
        """Tell whether something waits or runs under a key."""
        with self._lock:
            return key in self._children

    def num_ahead(self, key: str) -> int:
        """Return how many others run while this one waits; 0 if it does not wait."""
        with self._lock:
            child = self._children.get(key)
            if child is None or child.is_running:
                return 0
            return sum(each.is_running for each in self._children.values())

    def release(self, key: str) -> None:
        """Forget what runs under a key though it has not returned yet, so that the key is free for the next one."""
        with self._lock:
            self._children.pop(key, None)

    def stop(self, key: str, reason: str, wait_s: float) -> bool:
        """Stop what is done under a key and wait until its work has returned; tell whether it had not begun.

        Raises:
            TimeoutError: its work has not returned in time.
        """
        with self._lock:
            child = self._children.get(key)
            if child is None or child.future is None:
                return False
            if child.future.cancel():
                del self._children[key]
                return True
        child.stop(reason)
        child.future.result(wait_s)
        return False

    def close(self) -> None:
        """Stop everything and wait for the threads; what has not begun never does."""
        with self._lock:
            self._is_closed = True
            for child in self._children.values():
                child.stop("")
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(self, key: str, child: Child, work: Callable[[Child], object]) -> None:
        with self._lock:
            child.is_running = True
        try:
            work(child)
        except ChildStopped as stopped:
            log.info("%s is not finished: %s", key, stopped)
        except Exception:
            log.exception("%s could not be finished", key)
        finally:
            with self._lock:
                if self._children.get(key) is child:  # else the key was released, and is another's now
                    del self._children[key]


class LineSink:
    """Hands on what a program prints line by line, without the line breaks; a line that is too long is cut."""

    def __init__(self, on_line: Callable[[bytes], None], max_bytes: int = MAX_LINE_BYTES) -> None:
        self._on_line = on_line
        self._max_bytes = max_bytes
        self._line = bytearray()

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._extend(end)
            line, self._line = bytes(self._line), bytearray()
            self._on_line(line)
        self._extend(rest)

    def _extend(self, data: bytes) -> None:
        self._line += data[: self._max_bytes - len(self._line)]


class TailSink:
    """Keeps the end of what a program prints."""

    def __init__(self, max_bytes: int = _CHUNK) -> None:
        self._max_bytes = max_bytes
        self._data = b""

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        self._data = (self._data + data)[-self._max_bytes :]

    @property
    def text(self) -> str:
        """What is kept, whatever bytes it is."""
        return self._data.decode("utf-8", "replace")


class LogSink:
    """Writes what a program prints into a new file, at most so much of it."""

    def __init__(self, path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
        self._left = max_bytes
        self._file = path.open("wb", buffering=0)  # people read along

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        if self._left >= 0:
            self._file.write(data[: self._left] + (_LEFT_OUT if len(data) > self._left else b""))
            self._left -= len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


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
                ready = selector.select(left)
                for key, _ in ready:
                    if key.data is not None and not _copy(*key.data):
                        selector.unregister(key.fileobj)
                if any(key.data is None for key, _ in ready):
                    return True
    finally:
        os.close(pidfd)


def _copy(stream: IO[bytes], sink: Sink) -> bool:
    """Hand on one piece of what is there; tell whether more may come."""
    try:
        data = os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return True
    if data:
        sink(data)
    return bool(data)


def _copy_rest(stream: IO[bytes], sink: Sink) -> None:
    """Hand on what a process that has ended left in a pipe."""
    for _ in range(_NUM_LEFT):
        try:
            data = os.read(stream.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not data:
            return
        sink(data)
