"""Takes the connections of kernels on other machines (`RemoteKernels`), and bounds those of strangers.

Whoever reaches the port can connect. Until a connection has shown the token of a job it is a stranger's: it has 10 s in
all, can send 4 KiB after TLS, costs no thread, and before its first byte nothing but a socket. There are so many of one
machine, and so many in all; one more takes the place of the oldest that has said nothing, else of the oldest. A kernel
speaks as soon as it is connected, so those that do not speak never keep it out, however many they are.

Each guess of a token is a connection, and wrong ones wait for their 10 s: at most 26 guesses a second from one machine,
of a number with 256 bits.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from pliant.core.address import network_of
from pliant.serve.gateway.accepting import accept_for_ever
from pliant.serve.gateway.kernel_link import KernelEvents, KernelLink
from pliant.serve.gateway.kernel_tls import KernelTls
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.protocol.tcp_link import prepare_tcp

MOST_OF_ONE: Final = 256
"""Strangers from one machine."""
MOST: Final = 512
"""Strangers in all, which are fewer than those that the listener keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPort:
    """Where kernels of other machines connect."""

    sock: socket.socket
    """Of TCP; it listens."""
    context: ssl.SSLContext
    """Shows the server's certificate, and a newer one as soon as there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Silent:
    """A connection that has sent nothing."""

    network: str
    opened_at: float


class RemoteKernels:
    """Lets them in, as strangers.

    Args:
        events: hears what they say.
        meet: takes a link whose first bytes have come.
        is_stranger: tells whether a link has shown no token of a job, and is there.
        clock: seconds that only grow.
        memory: bounds what all connections hold.
    """

    def __init__(
        self,
        events: KernelEvents,
        meet: Callable[[KernelLink], None],
        is_stranger: Callable[[KernelLink], bool],
        clock: Callable[[], float],
        memory: LinkMemory,
    ) -> None:
        self._events = events
        self._meet = meet
        self._is_stranger = is_stranger
        self._clock = clock
        self._memory = memory
        self._silent: dict[socket.socket, _Silent] = {}
        self._spoken: WeakKeyDictionary[KernelLink, str] = WeakKeyDictionary()
        """Of which network each is; those that are strangers no longer are forgotten when there is no room."""
        self._meetings: set[asyncio.Task[None]] = set()

    @property
    def num_silent(self) -> int:
        """Connections that have sent nothing."""
        return len(self._silent)

    async def listen(self, port: KernelPort) -> None:
        """Take connections until it is cancelled."""
        try:
            await accept_for_ever(port.sock, partial(self._hear, port.context), "the port of kernels")
        finally:
            for channel in list(self._silent):
                self._forget(channel)

    def end_overdue(self, opened_before: float) -> None:
        """Close the connections that have sent nothing since then."""
        for channel, silent in list(self._silent.items()):
            if silent.opened_at >= opened_before:
                break
            self._forget(channel)

    def _hear(self, context: ssl.SSLContext, channel: socket.socket, address: Any) -> None:
        """Wait for the first bytes of a connection."""
        network = network_of(str(address[0]))
        self._make_room(network)
        channel.setblocking(False)
        self._silent[channel] = _Silent(network=network, opened_at=self._clock())
        asyncio.get_running_loop().add_reader(channel.fileno(), self._begin, channel, context)

    def _begin(self, channel: socket.socket, context: ssl.SSLContext) -> None:
        """Begin with TLS; from now on it is a link."""
        silent = self._release(channel)
        link = KernelLink(self._events, silent.opened_at, self._memory)
        self._spoken[link] = silent.network
        self._meet(link)
        meeting = asyncio.get_running_loop().create_task(self._connect(channel, link, context))
        self._meetings.add(meeting)
        meeting.add_done_callback(self._meetings.discard)

    async def _connect(self, channel: socket.socket, link: KernelLink, context: ssl.SSLContext) -> None:
        try:
            prepare_tcp(channel)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: KernelTls(link, context), channel)
        except OSError:  # it is closed by now
            channel.close()
            self._events.take_loss(link)

    def _make_room(self, network: str) -> None:
        """End a stranger's connection if there are too many, one of the same network rather than another one's."""
        if len(self._silent) + len(self._spoken) < MOST_OF_ONE:
            return
        for link in [link for link in self._spoken if not self._is_stranger(link)]:
            del self._spoken[link]
        silent = [channel for channel, one in self._silent.items() if one.network == network]
        spoken = [link for link, whose in self._spoken.items() if whose == network]
        if len(silent) + len(spoken) < MOST_OF_ONE:
            if len(self._silent) + len(self._spoken) < MOST:
                return
            silent, spoken = list(self._silent), list(self._spoken)
        if silent:
            self._forget(silent[0])
        else:
            del self._spoken[spoken[0]]
            spoken[0].cut()

    def _forget(self, channel: socket.socket) -> None:
        self._release(channel)
        channel.close()

    def _release(self, channel: socket.socket) -> _Silent:
        asyncio.get_running_loop().remove_reader(channel.fileno())
        return self._silent.pop(channel)
