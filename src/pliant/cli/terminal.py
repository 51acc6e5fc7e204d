"""The terminal of whoever calls, lent to a program elsewhere: raw while it lasts, and as it was before in any case."""

import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from pliant.core.tunnel import WindowSize

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
_NEW_LINE: Final = b"\r\n"


def has_terminal() -> bool:
    """Tell whether somebody sits at a terminal, and sees there what is printed."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def window_size() -> WindowSize:
    """Return how large the terminal is."""
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    return WindowSize(rows=max(1, rows), columns=max(1, columns))


@contextmanager
def raw(on_resize: Callable[[], None]) -> Iterator[None]:
    """Pass on every key as it is for the length of a block; whatever ends it, the terminal is as before.

    Args:
        on_resize: called, in a signal's handler, when the terminal has another size.
    """
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    handlers = {number: signal.signal(number, _leave) for number in _ENDING}
    handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, lambda *_: on_resize())
    try:
        tty.setraw(file, termios.TCSADRAIN)  # what was typed ahead is not lost
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class KeyFilter:
    """What was typed, without what is for us: `~.` at the beginning of a line hangs up, as in ssh; `~~` is one `~`."""

    def __init__(self) -> None:
        self.hangs_up = False
        self._at_start = True
        self._after_tilde = False

    def feed(self, typed: bytes) -> bytes:
        """Return what is to be passed on."""
        passed = bytearray()
        for key in (typed[place : place + 1] for place in range(len(typed))):
            if self._after_tilde:
                self._after_tilde = False
                if key == b".":
                    self.hangs_up = True
                    break
                passed += key if key == b"~" else b"~" + key
            elif self._at_start and key == b"~":
                self._after_tilde = True
                continue
            else:
                passed += key
            self._at_start = key in _NEW_LINE
        return bytes(passed)
