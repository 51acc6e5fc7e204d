"""A time by which something has to be over, moved with every request (`Deadline`).

Nearly all deadlines are moved or lifted before they come. So the timer below is left to run: when it fires too early it
is started again for what is left.
"""

import asyncio
from collections.abc import Callable


class Deadline:
    """At most one deadline at a time.

    Args:
        loop: has the time.
    """

    __slots__ = ("_act", "_at", "_fires_at", "_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._act: Callable[[], None] | None = None
        self._at = 0.0
        self._fires_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def act(self) -> Callable[[], None] | None:
        """What is done when it comes; None: there is no deadline."""
        return self._act

    def set(self, seconds: float, act: Callable[[], None]) -> None:
        """Do this after so many seconds; a deadline before it is lifted."""
        self._act, self._at = act, self._loop.time() + max(0.0, seconds)
        if self._timer is None or self._fires_at > self._at:
            self._start()

    def lift(self) -> None:
        """Do nothing."""
        self._act = None

    def end(self) -> None:
        """Do nothing, and give the timer back."""
        self._act = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = self._at
        self._timer = self._loop.call_later(self._at - self._loop.time(), self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._act is None:
            return
        if self._at > self._fires_at:
            self._start()
            return
        act, self._act = self._act, None
        act()
