"""A signal from control's threads to the event loop: events were stored. Every stream waits for it.

Nobody polls: a stream reads what there is, then waits for a signal that came after it began to read.
"""

import asyncio
from contextlib import suppress


class EventSignal:
    """Wakes all who wait; belongs to one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._given = asyncio.Event()
        self.num_signals = 0
        self.closed = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop on which streams wait."""
        self._loop = loop

    def notify(self) -> None:
        """Wake all who wait; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notify)

    def close(self) -> None:
        """Wake all who wait for the last time; streams end. From any thread."""
        self.closed = True
        self.notify()

    def _notify(self) -> None:
        self.num_signals += 1
        self._given.set()
        self._given = asyncio.Event()

    async def wait_after(self, num_signals: int, seconds: float | None = None) -> None:
        """Wait until there were more signals than that, or it is closed, or so many seconds have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.num_signals <= num_signals and not self.closed:
                    await self._given.wait()
