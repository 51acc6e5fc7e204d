"""Takes the connections of kernels, and asks who they are before anything else.

A connection has 10 s to say HELLO with the token of a job that is served. It may come before the server has said that
there is this job: then it waits for the rest of its time. Strangers are few at once; one more is refused. With its
first bytes a kernel hands over memory for large bodies, which asyncio's transports do not take: so they are read here.
"""

import asyncio
import logging
import os
import re
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakSet

from pliant.core.job import TaskId
from pliant.serve.gateway.accepting import accept_for_ever
from pliant.serve.gateway.kernel_link import KernelLink
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.gateway.remote_kernels import KernelPort, RemoteKernels
from pliant.serve.gateway.version_service import VersionService
from pliant.serve.protocol.frame_bodies import FrameBodies
from pliant.serve.protocol.frames import MAX_HELLO_BYTES, BadKernelFrame, KernelFrame, KernelFrameKind
from pliant.serve.protocol.shared_bodies import BadSharedBody, SharedBodies

HELLO_WITHIN_S: Final = 10.0
MAX_STRANGERS: Final = 1000
MAX_SHARING: Final = 256
"""Connections with memory for large bodies, each of which is an open file more; others do without."""
_TASK: Final = re.compile(r"job-[0-9]{1,18}\.[0-9]{1,18}")
_log = logging.getLogger(__name__)


class KernelListener:
    """Lets kernels in.

    Args:
        find_job: returns what a kernel serves that shows a token.
        clock: seconds that only grow.
        memory: bounds what all connections hold.
    """

    def __init__(
        self,
        find_job: Callable[[TaskId, str], VersionService | None],
        clock: Callable[[], float],
        memory: LinkMemory | None = None,
    ) -> None:
        self._find_job = find_job
        self._clock = clock
        self._memory = memory or LinkMemory()
        self._silent: dict[socket.socket, float] = {}
        """Connections that have sent nothing, and when they were opened."""
        self._strangers: dict[KernelLink, str | None] = {}
        """With the token that they have shown, in the order in which they came."""
        self._sharing: WeakSet[FrameBodies] = WeakSet()
        self._meetings: set[asyncio.Task[None]] = set()
        self.remote = RemoteKernels(self, self._add_stranger, self._strangers.__contains__, clock, self._memory)
        """Those that come over a network."""

    async def listen(self, sock: socket.socket, port: KernelPort | None = None) -> None:
        """Take connections until it is cancelled.

        Args:
            sock: where kernels of this machine connect.
            port: where those of other machines do.
        """
        places = [accept_for_ever(sock, self._hear, "the socket of kernels")]
        if port is not None:
            places.append(self.remote.listen(port))
        try:
            await asyncio.gather(*places)
        finally:
            for channel in list(self._silent):
                self._forget(channel)
            for link in list(self._strangers):
                link.cut()

    def review(self) -> None:
        """Let those in whose job is known by now."""
        for link, token in list(self._strangers.items()):
            if token is not None:
                self._admit(link, token)

    def tick(self, now: float) -> None:
        """Close the connections of those whose time is over."""
        for channel, opened_at in list(self._silent.items()):
            if now - opened_at <= HELLO_WITHIN_S:
                break
            self._forget(channel)
        self.remote.end_overdue(now - HELLO_WITHIN_S)
        for link in list(self._strangers):
            if now - link.opened_at <= HELLO_WITHIN_S:
                break
            _log.warning("a connection of a kernel is closed: it did not show the token of a job in time")
            link.cut()

    def take_frame(self, link: KernelLink, frame: KernelFrame) -> None:
        """Take a HELLO.

        Raises:
            BadKernelFrame: it is none.
        """
        task_id, token = frame.header.get("task"), frame.header.get("token")
        if frame.kind is not KernelFrameKind.HELLO or self._strangers.get(link) is not None:
            raise BadKernelFrame(f"{frame.kind.name} before it was welcome")
        if not isinstance(task_id, str) or not isinstance(token, str) or _TASK.fullmatch(task_id) is None:
            raise BadKernelFrame("HELLO without a task and a token")
        link.task_id = TaskId(task_id)
        self._strangers[link] = token
        self._admit(link, token)

    def take_loss(self, link: KernelLink) -> None:
        """Forget a connection."""
        self._strangers.pop(link, None)

    def take_unread(self, _link: KernelLink) -> None:
        """Strangers are sent nothing."""

    def _hear(self, channel: socket.socket, _address: Any) -> None:
        """Wait for the first bytes of a connection."""
        channel.setblocking(False)
        if len(self._silent) >= MAX_STRANGERS:
            self._forget(next(iter(self._silent)))
        self._silent[channel] = self._clock()
        asyncio.get_running_loop().add_reader(channel.fileno(), self._begin, channel)

    def _forget(self, channel: socket.socket) -> None:
        self._release(channel)
        channel.close()

    def _release(self, channel: socket.socket) -> float:
        asyncio.get_running_loop().remove_reader(channel.fileno())
        return self._silent.pop(channel)

    def _begin(self, channel: socket.socket) -> None:
        """Take the first bytes of a connection, and a file with them; from then on it is a link."""
        opened_at = self._release(channel)
        try:
            data, files, _, _ = socket.recv_fds(channel, MAX_HELLO_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            data, files = b"", []
        bodies = self._share(files)
        if not data:
            channel.close()
            return
        link = KernelLink(self, opened_at, self._memory, bodies)
        self._add_stranger(link)
        meeting = asyncio.get_running_loop().create_task(self._meet(channel, link, data))
        self._meetings.add(meeting)
        meeting.add_done_callback(self._meetings.discard)

    def _add_stranger(self, link: KernelLink) -> None:
        if len(self._strangers) >= MAX_STRANGERS:
            next(iter(self._strangers)).cut()
        self._strangers[link] = None

    async def _meet(self, channel: socket.socket, link: KernelLink, data: bytes) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: link, channel)
        except OSError:  # it is closed by now
            self._strangers.pop(link, None)
            channel.close()
        else:
            link.data_received(data)

    def _share(self, files: Sequence[int]) -> FrameBodies | None:
        """Return the memory that a kernel has handed over, if it is some."""
        try:
            if not files or sum(one.has_memory for one in self._sharing) >= MAX_SHARING:
                return None
            bodies = FrameBodies(SharedBodies.open(files[0]))
        except BadSharedBody as error:
            _log.warning("a connection to the socket of kernels came with %s; it has to do without", error)
            return None
        finally:
            for file in files:
                os.close(file)
        self._sharing.add(bodies)
        return bodies

    def _admit(self, link: KernelLink, token: str) -> None:
        service = self._find_job(link.task_id, token)
        if service is not None:
            del self._strangers[link]
            service.attach(link)
