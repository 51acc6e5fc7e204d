"""Starts a program that is nobody's child any more. Not for people to call.

`python -P -m pliant.entry.detached LOG PROGRAM ARGUMENT…` writes the number of the new process as a line on standard
output and ends. The program goes on in a session of its own, so that it outlives whoever asked, and what ends their
process group; its output goes to the end of the file LOG, and its input is this process's.

What an actor of Ray hands down is undone: signals that are blocked or ignored, a low priority (which root alone can
raise again), and being the first that the kernel kills when memory runs out.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")


def main(argv: Sequence[str]) -> None:
    """Start the program that the arguments name."""
    log, *command = argv
    if child := os.fork():
        print(child, flush=True)
        os._exit(0)
    os.setsid()
    undo_what_was_handed_down()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.execv(command[0], command)


def undo_what_was_handed_down() -> None:
    """Give this process the signals, the priority and the standing that one has which a person starts."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    with suppress(OSError):  # also where a container has no such file, or may not write it
        _OOM_SCORE.write_text("0")


if __name__ == "__main__":
    main(sys.argv[1:])
