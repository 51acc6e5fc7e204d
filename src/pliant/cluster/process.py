"""Facts about processes, from /proc, and signals that cannot hit the wrong one.

A process is named by its number and its stamp; numbers are used again, stamps are not. Knows no tasks.
"""

import errno
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NO_PROCESS = (errno.ESRCH, errno.ENOENT, errno.EINVAL)
"""Of a number that nobody has, and of one that a thread has: ENOENT since Linux 6.15, EINVAL before."""
_SWEEP_S = 1.0
_SWEEP_PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """Which process started which, and which are of one session; all that ran at one look."""

    children: Mapping[int, Sequence[int]]
    """By the number of their parent."""
    sessions: Mapping[int, Sequence[int]]

    def family(self, pid: int) -> frozenset[int]:
        """Return the leader of a session, the others in it, all that they have started, and so on.

        What loses its parent is found all the same if the leader is a subreaper.
        """
        found: set[int] = set()
        waiting = list(self.sessions.get(pid, ()))
        while waiting:
            if (one := waiting.pop()) not in found:
                found.add(one)
                waiting += self.children.get(one, ())
        return frozenset(found)


def stamp(pid: int) -> str | None:
    """Return what no other process with this number has had or will have; None if the process has ended."""
    fields = _stat(pid)
    if fields is None or fields[0] in "ZX":
        return None
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot_id}/{fields[19]}"


def open_process(pid: int, its_stamp: str | None) -> int | None:
    """Return a pidfd of the process that has this number and this stamp; None if it has ended."""
    pidfd = _pidfd_of(pid)
    if pidfd is None:
        return None
    if stamp(pid) != its_stamp:
        os.close(pidfd)
        return None
    return pidfd


def send_signal(pidfd: int, number: int) -> None:
    """Send a signal; does nothing if the process has ended."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler of its own for a signal, which would end it otherwise."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(caught >> (number - 1) & 1)


def sweep_session(session_id: int) -> None:
    """End by SIGKILL all that is left of a session whose leader has ended; does nothing while the leader lives.

    Best called while the leader is a zombie: its number cannot be in use again then.
    """
    deadline = time.monotonic() + _SWEEP_S
    while end_session(session_id) and time.monotonic() < deadline:
        time.sleep(_SWEEP_PAUSE_S)


def end_session(session_id: int) -> bool:
    """Send SIGKILL to all that is left of a session whose leader has ended; return whether there was something."""
    if stamp(session_id) is not None:
        return False
    left = session_members(session_id)
    for pid in left:
        _kill_if(pid, session_id)
    return bool(left)


def children() -> tuple[int, ...]:
    """Return the children of this process, which has one thread, also those that have ended."""
    with suppress(OSError):
        return tuple(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))
    return tuple(pid for pid in _pids() if (fields := _stat(pid)) is not None and int(fields[1]) == os.getpid())


def session_members(session_id: int) -> tuple[int, ...]:
    """Return the processes of a session that run."""
    return tuple(pid for pid in _pids() if _in_session(pid, session_id))


def process_table() -> ProcessTable:
    """Look once at all processes that run."""
    children: dict[int, list[int]] = {}
    sessions: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(pid)
            sessions.setdefault(int(fields[3]), []).append(pid)
    return ProcessTable(children, sessions)


def close_files(*, but: int) -> None:
    """Close every file of this process except the standard three and one more."""
    for file in map(int, os.listdir("/proc/self/fd")):
        if file > 2 and file != but:
            with suppress(OSError):  # the listing's own is closed already
                os.close(file)


def num_threads() -> int:
    """Return how many threads this process has, Python's own and others'."""
    return len(os.listdir("/proc/self/task"))


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def _in_session(pid: int, session_id: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX" and int(fields[3]) == session_id


def _pidfd_of(pid: int) -> int | None:
    """Return a pidfd of the process with this number; None if there is none: a thread may have the number by now."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in _NO_PROCESS:
            return None
        raise


def _kill_if(pid: int, session_id: int) -> None:
    pidfd = _pidfd_of(pid)
    if pidfd is None:
        return
    with suppress(ProcessLookupError, PermissionError):
        try:
            if _in_session(pid, session_id):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on: [0] state, [3] session, [19] start time in ticks."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()
