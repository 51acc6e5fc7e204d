"""What Ctrl-C does to a command: it ends with code 130, and nobody sees a traceback. Imports as good as nothing."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

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


def ignore_more() -> None:
    """Let further Ctrl-C do nothing: the process ends already, and would say so with a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
