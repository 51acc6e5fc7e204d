"""The agent's end of what connects it with its adapter, and the one of an adapter, or a link, of this process."""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Protocol

from pliant.cluster.agent.messages import FromAgent, ToAgent


class AgentChannel(Protocol):
    """What the agent needs of a channel. No call waits."""

    def fileno(self) -> int:
        """Return a file that can be read when there is something to receive."""
        ...

    def receive(self) -> list[ToAgent] | None:
        """Return what has arrived; None once the adapter is gone.

        Raises:
            ValueError: what has arrived is no message.
        """
        ...

    def send(self, message: FromAgent) -> None: ...

    def flush(self) -> bool:
        """Send what waits; return whether something is left until the file can be written."""
        ...

    def close(self) -> None: ...


class Mailbox:
    """A channel to an adapter of this process; `deliver` is called for what the agent sends, in the agent's thread."""

    def __init__(self, deliver: Callable[[FromAgent], None]) -> None:
        self.send = deliver
        self._arrived: deque[ToAgent] = deque()
        self._lock = Lock()
        self._is_over = False
        self._event: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def put(self, message: ToAgent) -> None:
        """Leave a message for the agent and wake it, from any thread; do nothing if it has closed this."""
        with self._lock:
            if self._event is not None:
                self._arrived.append(message)
                os.eventfd_write(self._event, 1)

    def hang_up(self) -> bool:
        """Let the agent know, from any thread, that nothing will come any more; return whether that is news."""
        with self._lock:
            is_news = self._event is not None and not self._is_over
            if self._event is not None:
                self._is_over = True
                os.eventfd_write(self._event, 1)
            return is_news

    def fileno(self) -> int:
        assert self._event is not None, "the mailbox is closed"
        return self._event

    def receive(self) -> list[ToAgent] | None:
        with self._lock:
            if self._is_over:
                return None
            if self._event is not None:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._event)
            arrived = list(self._arrived)
            self._arrived.clear()
            return arrived

    def flush(self) -> bool:
        return False

    def close(self) -> None:
        with self._lock:
            if self._event is not None:
                os.close(self._event)
                self._event = None
