"""What a server has to say to one agent of another machine: kept until that agent has received it.

The agent may be out of reach, and come back by another connection; then it gets what it has not received, in order.
Once it is given up nothing is kept any more: whatever was ordered there has ended. Safe to call from any thread.
"""

from collections import deque
from collections.abc import Callable
from threading import Lock

from pliant.cluster.agent.messages import Close, FromAgent, ToAgent
from pliant.cluster.channel import Deliver
from pliant.cluster.json_lines import encode

Write = Callable[[bytes], None]
"""Hands bytes to a connection, from any thread, without waiting."""


class Outbox:
    """The server's end of a link, whatever its connection; implements `pliant.cluster.channel.Channel`.

    Args:
        key: names it, so that the agent can say whose messages it has received.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._lock = Lock()
        self._kept: deque[bytes] = deque()
        self._first = 1
        """The number of the oldest that is kept."""
        self._write: Write | None = None
        self._deliver: Deliver = lambda _message: None
        self.is_closed = False
        """Nothing is sent, or kept, until the next connection."""

    def open(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, message: ToAgent) -> None:
        if isinstance(message, Close):
            return  # an agent of another machine outlives its server
        line = encode(message)
        with self._lock:
            if self.is_closed:
                return
            self._kept.append(line)
            if self._write is not None:
                self._write(line)

    def close(self) -> None:
        """Send nothing any more."""
        with self._lock:
            self.is_closed, self._write = True, None
            self._kept.clear()

    def attach(self, write: Write, welcome: Callable[[int], bytes], *, received: int) -> None:
        """Send what is kept by a new connection, and all that follows.

        Args:
            write: to the connection.
            welcome: returns what is sent first, made with the number of the message after it.
            received: so many messages the agent has already.
        """
        with self._lock:
            self._forget(received)
            self._write, self.is_closed = write, False
            write(b"".join((welcome(self._first), *self._kept)))

    def detach(self, write: Write) -> None:
        """Send nothing by this connection any more; do nothing if there is another one."""
        with self._lock:
            if self._write is write:
                self._write = None

    def confirm(self, received: int) -> None:
        """Take note of how many messages the agent has received."""
        with self._lock:
            self._forget(received)

    def drop(self) -> None:
        """Keep nothing until the next connection: the agent is given up."""
        with self._lock:
            self._first += len(self._kept)
            self._kept.clear()
            self.is_closed, self._write = True, None

    def take(self, message: FromAgent) -> None:
        """Deliver what the agent has sent."""
        self._deliver(message)

    def _forget(self, received: int) -> None:
        while self._kept and self._first <= received:
            self._kept.popleft()
            self._first += 1
