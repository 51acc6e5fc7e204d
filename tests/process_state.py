"""Processes that a test looks at from outside, and Ctrl-C for one that waits."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 30.0


def state_of(pid: int) -> str:
    """Return the letter of the state of a process (of its main thread); X if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def has_ended(pid: int) -> bool:
    """Tell whether a process is gone, but for what its parent has not read of it."""
    return state_of(pid) in "ZX"


def interrupt(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Send Ctrl-C to a process as soon as it sleeps.

    CPython only notes a signal, and acts on it between two steps of the program, or when it has cut a system call
    short. One that comes after the last such step and before the call is noted, and the call waits all the same: a
    person presses the keys again. A test that answers what the process has just written comes at this very moment, once
    in some hundred times on a busy machine.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while state_of(process.pid) not in "SZX":
        assert time.monotonic() < deadline, f"process {process.pid} never sleeps"
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
