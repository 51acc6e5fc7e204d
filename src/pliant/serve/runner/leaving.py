"""How a kernel hears that it has to go (`LeaveSignal`): SIGTERM, at any moment.

While the model is loaded the process ends at once, with code 0: nobody waits for it. Afterwards the signal is noted,
and whoever waits for the socket wakes up: see `session`.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType


class LeaveSignal:
    """Set once; stays set."""

    def __init__(self) -> None:
        self.is_set = False
        self._is_loading = False
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._on_signal: Callable[[], None] | None = None

    def install(self) -> None:
        """Take SIGTERM; the process ends with it until `loaded` is called."""
        self._is_loading = True
        signal.signal(signal.SIGTERM, self._handle)
        fork = _ForkedChildren()
        os.register_at_fork(before=fork.before, after_in_parent=fork.after, after_in_child=fork.become_ordinary)

    def loaded(self, on_signal: Callable[[], None]) -> None:
        """From now on SIGTERM is noted; then this is called, in the middle of whatever is done."""
        self._on_signal = on_signal
        self._is_loading = False

    def ask(self) -> None:
        """Do what SIGTERM does, but for the call; any thread may."""
        self.is_set = True
        with suppress(BlockingIOError):
            os.write(self._wake, b"x")

    def wait(self, descriptors: Iterable[int], timeout_s: float | None, *, is_leaving: bool = False) -> list[int]:
        """Return those where there is something to read, as soon as there is; none if it is set or the time is over.

        Args:
            descriptors: of what is waited for.
            timeout_s: at most; None: for ever.
            is_leaving: who waits knows that it is set, and waits on.
        """
        poll = select.poll()
        if not is_leaving:  # else the pipe is full for ever
            poll.register(self._woken, select.POLLIN)
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        found = poll.poll(None if timeout_s is None else max(0.0, timeout_s * 1000))
        return [descriptor for descriptor, _ in found if descriptor != self._woken]

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._woken)
        os.close(self._wake)

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        if self._is_loading:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError, RuntimeError):  # it may be in the middle of a line
                    stream.flush()
            os._exit(0)
        self.ask()
        if self._on_signal is not None:
            self._on_signal()


class _ForkedChildren:
    """What the model starts by a fork is no kernel: it ends with SIGTERM as every process does.

    The signal is held back around a fork, or one that comes before the child has changed what it does would be lost.
    """

    def __init__(self) -> None:
        self._masks = threading.local()

    def before(self) -> None:
        self._masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def after(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.before)

    def become_ordinary(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.after()
