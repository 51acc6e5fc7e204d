"""Ctrl-C in a script that nobody manages: the first one saves at the next step boundary, the second one ends at once.

Between two boundaries the state is half of one step and half of the next; nothing could go on from it.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType


def save_on_interrupt(interrupt: Callable[[], bool]) -> Callable[[], None]:
    """Make SIGINT call `interrupt`, and raise KeyboardInterrupt if that returns False; return what undoes it.

    Does nothing outside of the main thread, and where the program has a handler of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return lambda: None

    def handle(number: int, frame: FrameType | None) -> None:
        undo()
        if not interrupt():
            signal.default_int_handler(number, frame)
        os.write(2, b"pliant: saving at the end of this step; press Ctrl-C again to end without\n")  # print may be busy

    def undo() -> None:
        if signal.getsignal(signal.SIGINT) is handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, handle)
    return undo
