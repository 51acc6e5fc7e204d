"""The parent of every task: imports what tasks need once, then forks a task in milliseconds.

It has one thread, or a fork would not be safe. It hears orders through one socket, sees exits through pidfds, ends what
a task leaves behind in its session, and writes every end to the task's record. It outlives its agent for as long as it
has children, and its children outlive it. Knows no torch: the modules to import are an argument.
"""

import gc
import importlib
import logging
import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pliant.cluster import process
from pliant.cluster.zygote import child, records
from pliant.cluster.zygote.messages import Ended, Inbox, Launch, Message, Started, Warm, encode
from pliant.core.ports import Clock

_log = logging.getLogger(__name__)

_SEND_TIMEOUT_S = 10.0
_TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteSettings:
    """What a zygote is told at its start."""

    state_dir: Path
    term: int
    """Its agent's; it forks only while this is the newest."""
    entry: str
    """`module:function` of the tasks' program."""
    preload: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    record: records.Record
    launch: Launch
    pid: int
    pidfd: int
    gate: socket.socket


class Zygote:
    """One zygote; the process does nothing else."""

    def __init__(self, channel: socket.socket, settings: ZygoteSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._channel: socket.socket | None = channel
        self._mute = False
        self._inbox = Inbox(channel)
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._stamp = process.stamp(os.getpid())
        channel.settimeout(_SEND_TIMEOUT_S)

    def run(self) -> None:
        """Warm up, then serve until the agent is gone and the last child has ended."""
        began = time.monotonic()
        missing = warm_up(self._settings.preload)
        seconds = time.monotonic() - began
        self._tell(Warm(seconds=seconds, num_threads=process.num_threads(), missing=missing))
        while self._channel is not None or self._children:
            self.tick(None)
        self._selector.close()

    def tick(self, timeout_s: float | None) -> None:
        """Wait for something to happen, no longer than this, and deal with it."""
        for key, _ in self._selector.select(timeout_s):
            if self._channel is not None and key.fileobj is self._channel:
                self._hear(self._channel)
            elif key.fd in self._children:
                self._bury(self._children.pop(key.fd))

    def _hear(self, channel: socket.socket) -> None:
        messages = self._inbox.read()
        if messages is None:
            self._selector.unregister(channel)
            channel.close()
            self._channel = None
            return
        for message in messages:
            if isinstance(message, Launch):
                self._launch(message)

    def _launch(self, launch: Launch) -> None:
        try:
            with records.held_term(self._settings.state_dir) as term:
                if term != self._settings.term:
                    return  # a later server has told the task's fate already
                started = self._fork(launch)
        except OSError as error:
            self._tell(Ended(task_id=launch.task_id, exit_code=None, error=f"it could not be started: {error}"))
        else:
            self._tell(started)

    def _fork(self, launch: Launch) -> Started:
        """Fork a child, write its record, and only then let it run."""
        launch = _as_possible(launch)
        gate, childs_gate = socket.socketpair()
        with childs_gate:
            try:
                pid = os.fork()
            except OSError:
                gate.close()
                raise
            if pid == 0:
                gate.close()  # or it would not see the zygote die
                child.become(launch, self._settings.entry, childs_gate)
        its_stamp = process.stamp(pid)
        record = self._record_of(launch, pid, its_stamp)
        try:
            records.write(self._settings.state_dir, record)
        except OSError:
            gate.close()  # the child ends when it sees that
            os.waitpid(pid, 0)
            raise
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = _Child(record=record, launch=launch, pid=pid, pidfd=pidfd, gate=gate)
        self._selector.register(pidfd, selectors.EVENT_READ)
        with suppress(BrokenPipeError):
            gate.sendall(b"\n")
        return Started(task_id=launch.task_id, pid=pid, stamp=its_stamp)

    def _record_of(self, launch: Launch, pid: int, its_stamp: str | None) -> records.Record:
        ordered = records.read(self._settings.state_dir, launch.task_id)
        return replace(
            ordered or records.Record(task_id=launch.task_id, slots=launch.slots),
            pid=pid,
            stamp=its_stamp,
            zygote_pid=os.getpid(),
            zygote_stamp=self._stamp,
        )

    def _bury(self, gone: _Child) -> None:
        """Note how a child ended; what it left in its session ends with it, so that its slots are truly free."""
        self._selector.unregister(gone.pidfd)
        os.close(gone.pidfd)
        process.sweep_session(gone.pid)
        code = os.waitstatus_to_exitcode(os.waitpid(gone.pid, 0)[1])
        error = _last_words(gone.gate) or _lacks_pliant(gone.launch, code)
        ended = Ended(task_id=gone.launch.task_id, exit_code=None if error else code, error=error)
        record = replace(gone.record, ended_at=self._clock.now(), exit_code=ended.exit_code, error=error)
        try:
            records.write(self._settings.state_dir, record)
        except OSError as failed:
            _log.error("the end of task %s (%s) could not be recorded: %s", ended.task_id, code, failed)
        self._tell(ended)

    def _tell(self, message: Message) -> None:
        if self._channel is None or self._mute:
            return
        try:
            self._channel.sendall(encode(message))
        except OSError:
            self._mute = True  # the agent is gone; what it ordered before is still there to be read


def warm_up(modules: Sequence[str]) -> dict[str, str]:
    """Import the modules by name; return those that could not be imported, and why."""
    missing: dict[str, str] = {}
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever a module does at import, tasks can still be started
            missing[name] = f"{type(error).__name__}: {error}"
            _log.warning("cannot import %s ahead of the tasks: %s", name, missing[name])
    sys.stdout.flush()  # or every child would say it again
    gc.collect()
    gc.freeze()  # what is here now is shared with all children; do not touch its pages again
    return missing


def _as_possible(launch: Launch) -> Launch:
    """Return the order, turned into a cold start if this process has threads that make a warm one unsafe."""
    if launch.python is None and process.num_threads() > 1:
        return replace(launch, python=sys.executable)
    return launch


def _last_words(gate: socket.socket) -> str:
    with gate:
        gate.setblocking(False)
        with suppress(BlockingIOError, ConnectionResetError):
            return gate.recv(_TAIL_BYTES).decode(errors="replace")
    return ""


def _lacks_pliant(launch: Launch, code: int) -> str:
    """Return why a cold start came to nothing, if the reason is that the interpreter has no Pliant."""
    if launch.python is None or code != 1:
        return ""
    tail = _tail(Path(launch.log_dir) / "stderr")
    if "No module named 'pliant'" not in tail and "No module named pliant" not in tail:
        return ""
    return f"Pliant is not installed for {launch.python}; install it there: {launch.python} -m pip install pliant"


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
