"""A bell between control's threads and the event loop: rung when events were stored, waited for by every stream.

Nobody polls: a stream reads what there is, then waits for a ring that came after it began to read.
"""

import asyncio
from contextlib import suppress


class Bell:
    """Wakes all who wait; belongs to one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rung = asyncio.Event()
        self.num_rings = 0
        self.closed = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell the loop on which streams wait."""
        self._loop = loop

    def ring(self) -> None:
        """Wake all who wait; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ring)

    def close(self) -> None:
        """Wake all who wait for the last time; streams end. From any thread."""
        self.closed = True
        self.ring()

    def _ring(self) -> None:
        self.num_rings += 1
        self._rung.set()
        self._rung = asyncio.Event()

    async def wait_beyond(self, num_rings: int, seconds: float | None = None) -> None:
        """Wait until it was rung more often than that, or is closed, or so many seconds have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.num_rings <= num_rings and not self.closed:
                    await self._rung.wait()
