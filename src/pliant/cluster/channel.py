"""The adapter's end of what connects it with an agent, and the one of an agent that is a thread of this process."""

import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pliant.cluster.agent.agent import Agent
from pliant.cluster.agent.channel import Mailbox
from pliant.cluster.agent.messages import Close, FromAgent, ToAgent
from pliant.cluster.agent.settings import AgentSettings
from pliant.core.ports import Clock

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
