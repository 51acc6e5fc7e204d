"""The adapter's end of what connects it with an agent: a thread of this process, or a socket to another one."""

import logging
import os
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from pliant.cluster.agent.agent import Agent
from pliant.cluster.agent.channel import Mailbox
from pliant.cluster.agent.messages import FROM_AGENT, Close, FromAgent, ToAgent
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.json_lines import LineSocket, decode, encode
from pliant.core.ports import Clock

_log = logging.getLogger(__name__)

_CLOSE_S: Final = 8.0

Deliver = Callable[[FromAgent | None], None]
"""Takes what the agent sends, in a thread of the channel's; None: the agent is gone, nothing more will come."""


class Channel(Protocol):
    """What an adapter needs of a channel to an agent."""

    def open(self, deliver: Deliver) -> None:
        """Begin to deliver; called once."""
        ...

    def send(self, message: ToAgent) -> None:
        """Send from any thread, without waiting; do nothing if the agent is gone.

        Raises:
            ValueError: the message is too long.
        """
        ...

    def close(self) -> None:
        """End the agent, not its tasks, and wait for that (not in the channel's own thread). Can be called twice."""
        ...


class AgentThread:
    """An agent in a thread of this process; what it sends is delivered in that thread, what is sent to it wakes it."""

    def __init__(self, settings: AgentSettings, *, clock: Clock, base_env: Mapping[str, str]) -> None:
        """Take what the agent is made of; see there."""
        self._settings = settings
        self._clock = clock
        self._base_env = base_env
        self._mailbox: Mailbox | None = None
        self._thread: threading.Thread | None = None

    def open(self, deliver: Deliver) -> None:
        """Begin; the agent's account of its node is delivered before this returns.

        Raises:
            ValueError: fewer than one slot was declared.
        """
        self._mailbox = Mailbox(deliver)
        agent = Agent(self._settings, self._mailbox, clock=self._clock, base_env=self._base_env)
        self._thread = threading.Thread(target=agent.run, name="pliant-agent", daemon=True)
        self._thread.start()

    def send(self, message: ToAgent) -> None:
        if self._mailbox is not None:
            self._mailbox.put(message)

    def close(self) -> None:
        self.send(Close())
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join(_CLOSE_S)


class AgentSocket:
    """An agent in another process, at the other end of a stream socket; a thread delivers what it sends."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._lines = LineSocket(channel)
        self._lock = threading.Lock()
        self._ended = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="pliant-agent-socket", daemon=True)

    def open(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._thread.start()

    def send(self, message: ToAgent) -> None:
        line = encode(message)
        with self._lock:
            if not self._ended:
                self._lines.put(line)
                if self._lines.flush():  # the socket is full: the thread sends the rest
                    os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        self.send(Close())
        if threading.current_thread() is self._thread:
            return
        self._thread.join(_CLOSE_S)
        with self._lock, suppress(OSError):
            if not self._ended:  # the agent does not answer
                self._channel.shutdown(socket.SHUT_RDWR)
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            selector.register(self._lines, selectors.EVENT_READ)
            while self._tick(selector):
                pass
        with self._lock:
            self._ended = True
            self._lines.close()
            os.close(self._wake)
        self._deliver(None)

    def _tick(self, selector: selectors.BaseSelector) -> bool:
        """Wait for something to happen and deal with it; return whether the stream goes on."""
        ready = [key.fileobj for key, _ in selector.select()]
        with self._lock:
            with suppress(BlockingIOError):
                os.eventfd_read(self._wake)
            more = selectors.EVENT_WRITE if self._lines.flush() else 0
        selector.modify(self._lines, selectors.EVENT_READ | more)
        if self._lines not in ready:
            return True
        try:
            lines = self._lines.receive()
            messages = None if lines is None else [decode(line, FROM_AGENT) for line in lines]
        except ValueError as error:
            _log.error("an agent is not listened to any more: %s", error)
            return False
        for message in messages or ():
            try:
                self._deliver(message)
            except Exception:  # noqa: BLE001 - the top of the loop
                _log.exception("an agent's message could not be dealt with: %s", type(message).__name__)
        return messages is not None
