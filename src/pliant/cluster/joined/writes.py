"""What other threads have for the connections of one event loop: the loop is woken once for all that waits.

To wake a loop is a system call, at which a thread lets go of Python's interpreter lock and may wait for it again. A
decision that starts a hundred tasks has an order for each: it is to be held up once, not a hundred times.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

Send = Callable[[bytes], None]
"""Sends bytes by a connection, in the loop's thread."""


class LoopWrites:
    """Bytes on their way to connections; what is for one of them goes in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._lock = threading.Lock()
        self._waiting: list[tuple[Send, bytes]] = []

    def put(self, send: Send, data: bytes) -> None:
        """Have the loop send something, from any thread, without waiting."""
        with self._lock:
            is_first = not self._waiting
            self._waiting.append((send, data))
        if is_first:
            self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        parts: dict[Send, list[bytes]] = {}
        for send, data in waiting:
            parts.setdefault(send, []).append(data)
        for send, pieces in parts.items():
            send(b"".join(pieces))
