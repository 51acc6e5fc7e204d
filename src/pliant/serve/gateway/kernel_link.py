"""The gateway's end of the connection of one kernel: bytes to frames, frames to bytes. Knows no queue.

What is sent during one turn of the event loop goes out with one write.
"""

import asyncio
import logging
from typing import Any, Final, Protocol

from pliant.core.job import TaskId
from pliant.serve.gateway.dispatch import KernelRoom
from pliant.serve.protocol.frames import (
    MAX_FRAME_BYTES,
    MAX_HEADER_BYTES,
    BadKernelFrame,
    KernelFrame,
    KernelFrameKind,
    KernelFrameReader,
    encode_head,
)

_JOINED_BYTES: Final = 64 << 10
"""Bodies up to this are put together with what else is sent; longer ones are not copied."""
_log = logging.getLogger(__name__)


class KernelEvents(Protocol):
    """Whoever a link belongs to."""

    def take_frame(self, link: "KernelLink", frame: KernelFrame) -> None:
        """A frame has come.

        Raises:
            BadKernelFrame: it makes no sense; the link is cut.
        """
        ...

    def take_loss(self, link: "KernelLink") -> None:
        """The link is gone; no frame comes after this."""
        ...


class KernelLink(asyncio.Protocol):
    """A connection that a kernel has opened, or somebody who says so.

    Args:
        events: hears of frames and of the end; may be replaced.
        now: when it was opened.
    """

    def __init__(self, events: KernelEvents, now: float) -> None:
        self.events = events
        self.opened_at = now
        self.task_id = TaskId("")
        self.room = KernelRoom(0)
        self.is_ready = False
        self.is_draining = False
        """It leaves as soon as it holds nothing."""
        self.received_at = now
        """When anything came last."""
        self.busy_since: float | None = None
        """Since when it holds requests and has answered none; None while it holds none."""
        self.ping_at: float | None = None
        """When the PING was sent that it has not answered yet."""
        self.pinged: frozenset[int] = frozenset()
        """Requests that were cancelled before that PING."""
        self._reader = KernelFrameReader(2 * MAX_HEADER_BYTES)
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def accept(self) -> None:
        """Let it send bodies: it has shown who it is."""
        self._reader.max_bytes = MAX_FRAME_BYTES

    def data_received(self, data: bytes) -> None:
        """Hand on what came."""
        try:
            for frame in self._reader.feed(data):
                if self._transport is None:
                    return  # it was cut because of the frame before
                self.events.take_frame(self, frame)
        except BadKernelFrame as error:
            _log.warning("the connection of kernel %s is closed: %s", self.task_id or "(unknown)", error)
            self.cut()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Say that it is gone, unless it was cut."""
        if self._transport is not None:
            self._transport = None
            self.events.take_loss(self)

    def cut(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            transport, self._transport = self._transport, None
            transport.abort()
            self.events.take_loss(self)

    def send(self, kind: KernelFrameKind, header: dict[str, Any], body: bytes | bytearray = b"") -> None:
        """Send a frame with the others of this turn."""
        if self._transport is None:
            return
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(encode_head(kind, header, len(body)))
        if body:
            self._outgoing.append(bytes(body) if len(body) <= _JOINED_BYTES else body)  # type: ignore[arg-type]

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if self._transport is None:
            return
        small: list[bytes] = []
        for piece in outgoing:
            if len(piece) <= _JOINED_BYTES:
                small.append(piece)
                continue
            self._transport.write(b"".join(small))
            self._transport.write(piece)
            small = []
        if small:
            self._transport.write(b"".join(small))
