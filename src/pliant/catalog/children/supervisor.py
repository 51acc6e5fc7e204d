"""The process above every child of the server: it ends all that the child started, however that tried to get away.

A process that detaches itself (a session of its own, two forks) leaves its group and its parent; the kernel then gives
it to the next process above that has said that it adopts orphans. That is this one: so whatever a child starts stays
below it. When the child has ended, when the server asks for it (SIGTERM), or when the server is gone, it kills what is
there until nothing is.

It runs as the server's user, outside the walls of its child, which can neither signal it nor outlive it. `supervised`
makes the command line; the process itself imports nothing but the standard library and the system calls.
"""

import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pliant
from pliant.isolation.system_calls import adopt_orphans, end_with_parent

CANNOT_RUN: Final = 127
END_S: Final = 10.0
"""What is not dead by then is left: a process that waits for a disk cannot be ended."""
_PAUSE_S: Final = 0.002
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from pliant.catalog.children.supervisor import main; main()"
)


def supervised(command: Sequence[str], *, niceness: int) -> list[str]:
    """Return a command line that runs a command, and ends with all that it started."""
    packages = str(Path(pliant.__file__).parent.parent)
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, packages, str(os.getpid()), str(niceness), *command]


def main() -> None:
    """Run the command that the arguments name, and end as it did once nothing of it is left."""
    server, niceness, *command = sys.argv[1:]
    adopt_orphans()
    signal.signal(signal.SIGTERM, _end_now)
    end_with_parent(signal.SIGTERM)
    if os.getppid() != int(server):
        sys.exit(128 + signal.SIGTERM)  # the server was gone before we asked to be told
    os.nice(int(niceness))
    child = os.fork()
    if child == 0:
        _become(command)
    status = _wait_for(child)
    _end_all()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # SIGKILL has no other course
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _become(command: Sequence[str]) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"{command[0]} cannot be run: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(CANNOT_RUN)


def _wait_for(child: int) -> int:
    """Return how a child ended; orphans that end before it are let go."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _end_now(number: int, _: object) -> None:
    _end_all()
    os._exit(128 + number)


def _end_all() -> None:
    """Kill all that is below this process until nothing is."""
    deadline = time.monotonic() + END_S
    while time.monotonic() < deadline:
        for pid in _below(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE_S)


def _below(pid: int) -> Iterator[int]:
    """Yield the processes that this one and those below it have started."""
    children = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                children[int(file.read().rpartition(b")")[2].split()[1])].append(int(name))
    found = [pid]
    while found:
        below = children.pop(found.pop(), [])
        yield from below
        found += below
