"""Takes the connections of kernels, and asks who they are before anything else.

A connection has 10 s to say HELLO with the token of a job that is served. It may come before the server has said that
there is this job: then it waits for the rest of its time. Strangers are few at once; one more is refused.
"""

import asyncio
import logging
import re
import socket
from collections.abc import Callable
from typing import Final

from pliant.core.job import TaskId
from pliant.serve.gateway.kernel_link import KernelLink
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.gateway.version_service import VersionService
from pliant.serve.protocol.frames import BadKernelFrame, KernelFrame, KernelFrameKind

HELLO_WITHIN_S: Final = 10.0
MAX_STRANGERS: Final = 1000
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
        self._strangers: dict[KernelLink, str | None] = {}
        """With the token that they have shown, in the order in which they came."""

    async def listen(self, sock: socket.socket) -> None:
        """Take connections of a listening socket until it is cancelled."""
        server = await asyncio.get_running_loop().create_unix_server(self._meet, sock=sock)
        try:
            await server.serve_forever()
        finally:
            server.close()
            for link in list(self._strangers):
                link.cut()

    def review(self) -> None:
        """Let those in whose job is known by now."""
        for link, token in list(self._strangers.items()):
            if token is not None:
                self._admit(link, token)

    def tick(self, now: float) -> None:
        """Close the connections of those whose time is over."""
        for link in list(self._strangers):
            if now - link.opened_at <= HELLO_WITHIN_S:
                break
            _log.warning("a connection to the socket of kernels is closed: it did not show the token of a job in time")
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

    def _meet(self) -> KernelLink:
        link = KernelLink(self, self._clock(), self._memory)
        if len(self._strangers) >= MAX_STRANGERS:
            next(iter(self._strangers)).cut()
        self._strangers[link] = None
        return link

    def _admit(self, link: KernelLink, token: str) -> None:
        service = self._find_job(link.task_id, token)
        if service is not None:
            del self._strangers[link]
            service.attach(link)
