"""The parent of every task: imports what tasks need once, then forks a task in milliseconds.

Theory of operation
-------------------

`import torch` takes 1.3 to 2.4 s, and a task that has to do it starts that much later. A fork of a process that has
done it starts in 20 to 40 ms, and shares the memory of all those modules with its siblings. For that the zygote must
have one thread: a fork copies only the thread that calls it, and a lock that another one holds would stay locked in the
child for ever. If a module that it imported has started a thread, it starts every task cold, by a fresh interpreter.

What happens between a `Launch` and its `Started`, some 12 ms:

1. The zygote locks the file `term` and reads it. If a later agent has begun, it drops the launch: that agent has read
   the records already, found this task without a process, and reported that it was never started.
2. It forks. The child opens a session of its own and then waits for one byte on a socket pair, the handshake.
3. The zygote writes the child's pid and stamp to the task's record.
4. It sends the byte and unlocks the file. Only now does the child become the task (`pliant.cluster.zygote.child`).

So whatever runs as a task is in the records. If the zygote is killed before step 4, the child reads the end of the
stream instead of the byte and exits, and a record that names it names a process that has ended. If the record cannot be
written (the disk is full), the zygote closes the handshake, and answers `Ended` with the reason.

An exit becomes known through the child's pidfd. Before the zygote reaps the child, it ends all that the child has left.
Every task is a subreaper: what it starts, and what detaches itself by `setsid` and two forks, stays below it, and
becomes a child of the zygote, which is one as well, when the task's own process is gone. So a child of the zygote that
it did not fork is somebody's remains, and is killed. Then it writes the exit code to the record and sends `Ended`. The
agent frees the task's slots on that message, when nothing of the task is left on them; a process that cannot be killed
keeps them.

A sidecar is a child beside a task: a program of ours within the task's walls and control group. It is launched like a
task, but has no slots and no record, since it ends with its server. When its task is gone it is killed, and the task is
reported after it.

On a machine that has joined a server the zygote ends its children when nothing was heard of that for too long and the
agent, whose task that is, is dead or stopped (`pliant.cluster.zygote.deadline`).

The zygote survives its agent for as long as it has children, so that somebody reaps them and writes their ends down; a
new agent starts a zygote of its own and reads these records. The children survive the zygote; then nobody learns their
exit codes. Knows no torch: the modules to import are an argument.
"""

import gc
import importlib
import logging
import os
import selectors
import signal
import socket
import sys
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pliant.cluster import process
from pliant.cluster.json_lines import LineSocket, decode, encode
from pliant.cluster.zygote import child, deadline, records
from pliant.cluster.zygote.messages import KINDS, Ended, Launch, Ping, Pong, Started, Warm, ZygoteMessage
from pliant.core.job import TaskId
from pliant.core.ports import Clock
from pliant.isolation import control_groups
from pliant.isolation.enter import prepare
from pliant.isolation.system_calls import adopt_orphans

_log = logging.getLogger(__name__)

_SEND_TIMEOUT_S = 10.0
_MAX_ERROR_BYTES = 4096
_SWEEP_S = 0.002
_LOOK_S = 1.0
"""A child of ours that is no task is found after so long at the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteSettings:
    """How one zygote is set up; fixed for its life."""

    state_dir: Path
    term: int
    """Its agent's; it forks only while this is the newest."""
    entry: str
    """`module:function` of the tasks' program."""
    preload: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    record: records.Record
    beside: TaskId | None
    """It is a sidecar of this task; its record is on no disk."""
    pid: int
    pidfd: int
    handshake: socket.socket


class Zygote:
    """One zygote; the process does nothing else."""

    def __init__(self, channel: socket.socket, settings: ZygoteSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._channel: socket.socket | None = channel
        self._agent_gone = False
        self._lines = LineSocket(channel)
        self._children: dict[int, _Child] = {}
        self._gone: list[_Child] = []
        """Those that have ended and are not reported, since something of theirs may live."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._stamp = process.stamp(os.getpid())
        adopt_orphans()
        channel.settimeout(_SEND_TIMEOUT_S)

    def run(self) -> None:
        """Warm up, then serve until the agent is gone and the last child has ended."""
        began = time.monotonic()
        missing = warm_up(self._settings.preload)
        prepare()
        seconds = time.monotonic() - began
        self._send(Warm(seconds=seconds, num_threads=process.num_threads(), missing=missing))
        while self._channel is not None or self._children or self._gone:
            self.tick(self._wait_s())
        self._selector.close()

    def tick(self, timeout_s: float | None) -> None:
        """Wait for something to happen, no longer than this, and deal with it."""
        for key, _ in self._selector.select(timeout_s):
            if self._channel is not None and key.fileobj is self._channel:
                self._receive(self._channel)
            elif key.fd in self._children:
                self._note_gone(self._children.pop(key.fd))
        if self._children or self._gone:
            self._keep_deadline()
            self._end_rest()

    def _keep_deadline(self) -> None:
        """Kill the children if no server has been heard of for too long, and their agent has not done that."""
        if not deadline.is_over(self._settings.state_dir, deadline.ZYGOTE_GRACE_S):
            return
        for one in self._children.values():
            os.kill(one.pid, signal.SIGKILL)  # not waited for yet, so the number is its own

    def _wait_s(self) -> float | None:
        """Return after how many seconds to look again though nothing has happened; None: never."""
        if self._gone:
            return _SWEEP_S
        return _LOOK_S if self._children else None

    def _receive(self, channel: socket.socket) -> None:
        lines = self._lines.receive()
        if lines is None:
            self._selector.unregister(channel)
            channel.close()
            self._channel = None
            return
        for line in lines:
            match decode(line, KINDS):
                case Launch() as launch:
                    self._launch(launch)
                case Ping():
                    self._send(Pong())

    def _launch(self, launch: Launch) -> None:
        try:
            with records.lock_term(self._settings.state_dir) as term:
                if term != self._settings.term:
                    return  # a later agent has reported already that the task was never started
                started = self._fork(launch)
        except OSError as error:
            self._send(Ended(task_id=launch.task_id, exit_code=None, error=f"it could not be started: {error}"))
        else:
            self._send(started)

    def _fork(self, launch: Launch) -> Started:
        """Fork a child, write its record, and only then let it run."""
        is_threaded = process.num_threads() > 1
        handshake, childs_end = socket.socketpair()
        with childs_end:
            try:
                pid = os.fork()
            except OSError:
                handshake.close()
                raise
            if pid == 0:
                handshake.close()  # or it would not see the zygote die
                program = records.program_path(self._settings.state_dir, launch.task_id)
                child.become(program, self._settings.entry, childs_end, cold=is_threaded)
        its_stamp = process.stamp(pid)
        record = self._record_of(launch, pid, its_stamp)
        try:
            if launch.beside is None:
                records.write(self._settings.state_dir, record)
        except OSError:
            handshake.close()  # the child ends when it sees that
            os.waitpid(pid, 0)
            raise
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = _Child(record=record, beside=launch.beside, pid=pid, pidfd=pidfd, handshake=handshake)
        self._selector.register(pidfd, selectors.EVENT_READ)
        with suppress(BrokenPipeError):
            handshake.sendall(b"\n")
        if record.group is not None:  # the kernel may take its time, so the child runs meanwhile; it stays below itself
            control_groups.join(record.group, pid)
        return Started(task_id=launch.task_id, pid=pid, stamp=its_stamp)

    def _record_of(self, launch: Launch, pid: int, its_stamp: str | None) -> records.Record:
        ordered = None if launch.beside is not None else records.read(self._settings.state_dir, launch.task_id)
        return replace(
            ordered or records.Record(task_id=launch.task_id, slots=launch.slots, group=launch.group),
            pid=pid,
            stamp=its_stamp,
            zygote_pid=os.getpid(),
            zygote_stamp=self._stamp,
        )

    def _end_rest(self) -> None:
        """End what the children that are gone have left, and then report them; what is left has become our child.

        Every task is the parent of what it starts and what loses its parent, so a child of ours that is no task's own
        process belongs to a task that is gone, or to one that has turned that off. A zombie keeps its number, so the
        session of a task that was not waited for is certainly its own.
        """
        own = {one.pid for one in (*self._children.values(), *self._gone)}
        strangers = [pid for pid in process.children() if pid not in own]
        for pid in strangers:
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                os.kill(pid, signal.SIGKILL)  # our own child that nobody else waits for: the number is its own
        if strangers:
            return
        beside = {one.beside for one in (*self._children.values(), *self._gone)}
        for gone in self._gone:
            if gone.record.task_id not in beside and not process.end_session(gone.pid):
                self._gone.remove(gone)
                self._report(gone)
                return

    def _note_gone(self, gone: _Child) -> None:
        self._selector.unregister(gone.pidfd)
        os.close(gone.pidfd)
        self._gone.append(gone)
        if gone.beside is not None:
            return
        for sidecar in self._children.values():
            if sidecar.beside == gone.record.task_id:
                os.kill(sidecar.pid, signal.SIGKILL)  # not waited for yet, so the number is its own
        if gone.record.group is not None:
            control_groups.kill(gone.record.group)  # whatever goes on to fork ends at once; the rest is found below us

    def _report(self, gone: _Child) -> None:
        """Record and tell how a child ended of which nothing lives any more."""
        code = os.waitstatus_to_exitcode(os.waitpid(gone.pid, 0)[1])
        task_id, error = gone.record.task_id, _start_error(gone.handshake)
        is_left = code == -signal.SIGKILL and deadline.is_over(self._settings.state_dir)
        cause = deadline.LEFT_ALONE if is_left else ""  # also if its agent did it, which may not live to tell
        ended = Ended(task_id=task_id, exit_code=None if error or cause else code, error=error, cause=cause)
        record = replace(gone.record, ended_at=self._clock.now(), exit_code=ended.exit_code, error=error, cause=cause)
        try:
            if gone.beside is None:
                records.write(self._settings.state_dir, record)
        except OSError as failed:
            _log.error("the end of task %s (%s) could not be recorded: %s", task_id, code, failed)
        self._send(ended)

    def _send(self, message: ZygoteMessage) -> None:
        if self._channel is None or self._agent_gone:
            return
        try:
            self._channel.sendall(encode(message))
        except OSError:
            self._agent_gone = True  # the agent is gone; what it ordered before is still there to be read


def warm_up(modules: Sequence[str]) -> dict[str, str]:
    """Import the modules by name; return those that could not be imported, and why."""
    missing: dict[str, str] = {}
    gc.disable()  # next to nothing of what modules make is garbage; to look for it takes a tenth of the time
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever a module does at import, tasks can still be started
            missing[name] = f"{type(error).__name__}: {error}"
            _log.warning("cannot import %s ahead of the tasks: %s", name, missing[name])
    sys.stdout.flush()  # or every child would say it again
    for finalizer in getattr(weakref.finalize, "_registry", ()):  # without it tasks end as they did, later
        finalizer.atexit = False  # torch has 174, one for each library of operators: 40 to 80 ms at every task's end
    gc.freeze()  # what is here is shared with all children: no look for garbage touches its pages, not even a first one
    gc.enable()
    return missing


def _start_error(handshake: socket.socket) -> str:
    with handshake:
        handshake.setblocking(False)
        with suppress(BlockingIOError, ConnectionResetError):
            return handshake.recv(_MAX_ERROR_BYTES).decode(errors="replace")
    return ""
