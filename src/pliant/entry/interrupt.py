"""What Ctrl-C does to a command: it ends by that signal, 130 to a shell, without a traceback. Needs few imports."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

INTERRUPTED: Final = 130
"""The exit code that shells give to what Ctrl-C has ended."""


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """While modules are imported let Ctrl-C end the process on the spot.

    An exception would come out of the middle of somebody's module, or be printed by what cannot raise it. Where Ctrl-C
    is ignored, or another thread calls, everything stays as it is.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    try:
        signal.signal(signal.SIGINT, _leave)
    except ValueError:  # only the main thread may
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def die_interrupted() -> None:
    """End the process by the signal itself: only then does a shell end the loop that the command is called in."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more would come out of the middle of a flush
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # who read it is gone
    _leave()


def exit_with(code: int) -> NoReturn:
    """End the process with what its `main` returned."""
    if code == INTERRUPTED:
        die_interrupted()
    sys.exit(code)


def _leave(_signal: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    os._exit(INTERRUPTED)  # where the signal is blocked
