"""The gateway's end of the connection of one kernel: bytes to frames, frames to bytes. Knows no queue.

What is sent during one turn of the event loop goes out with one write. A kernel runs people's code: it is taken to send
anything, and to read nothing. While much waits that it has not read, it is given no more requests; what it sends
and nobody has asked for is passed over, up to a number.
"""

import asyncio
import logging
import math
from typing import Any, Final, Protocol

from pliant.core.job import TaskId
from pliant.serve.gateway.dispatch import KernelRoom
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.protocol.frame_bodies import FrameBodies
from pliant.serve.protocol.frames import (
    MAX_ANSWER_BYTES,
    MAX_HELLO_BYTES,
    BadKernelFrame,
    KernelFrame,
    KernelFrameKind,
    KernelFrameReader,
    encode_head,
)

_JOINED_BYTES: Final = 64 << 10
"""Bodies up to this are put together with what else is sent; longer ones are not copied."""
MAX_UNREAD_BYTES: Final = 16 << 20
"""So much a kernel may leave unread, and is still given requests."""
MAX_UNASKED: Final = 1000
"""Frames that nobody has asked for; a kernel that keeps to the protocol sends hardly any."""
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

    def take_unread(self, link: "KernelLink") -> None:
        """`is_clogged` of its room has changed: it has left much unread, or has read it."""
        ...


class KernelLink(asyncio.Protocol):
    """A connection that a kernel has opened, or somebody who says so.

    Args:
        events: hears of frames and of the end; may be replaced.
        now: when it was opened.
        memory: bounds what all links hold.
        bodies: what large bodies go by.
    """

    def __init__(self, events: KernelEvents, now: float, memory: LinkMemory, bodies: FrameBodies | None = None) -> None:
        self.events = events
        self.owner = ""
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
        self.progress_at = -math.inf
        """When it said last that it works for other gateways, and what it holds of this one waits."""
        self.ping_at: float | None = None
        """When the PING was sent that it has not answered yet."""
        self.pinged: frozenset[int] = frozenset()
        """Requests that were cancelled before that PING."""
        self._reader = KernelFrameReader(MAX_HELLO_BYTES)
        self._memory = memory
        self._bodies = bodies or FrameBodies(None)
        self._noted = 0
        self._num_unasked = 0
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self._num_outgoing = 0
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=MAX_UNREAD_BYTES)
        self._transport = transport

    def accept(self, owner: str) -> None:
        """Let it send answers: it has shown whose it is."""
        self.owner = owner
        self._reader.max_bytes = MAX_ANSWER_BYTES

    @property
    def shares_memory(self) -> bool:
        """Large bodies do not go through the socket."""
        return self._bodies.has_memory

    @property
    def num_bytes(self) -> int:
        """What it holds: the beginning of a frame, and what the kernel has not read."""
        return 0 if self._transport is None else self._reader.num_held + self._num_outgoing + self._num_unread()

    def note_unasked(self, what: str) -> None:
        """Pass over a frame that nobody has asked for.

        Raises:
            BadKernelFrame: it is one of very many.
        """
        self._num_unasked += 1
        if self._num_unasked > MAX_UNASKED:
            raise BadKernelFrame(f"more than {MAX_UNASKED} frames that nobody has asked for, the last one {what}")

    def note_progress(self, now: float, *, is_answer: bool = True) -> None:
        """Take note that it has done something of what it holds."""
        if not len(self.room):
            self.busy_since = None
        elif is_answer:
            self.busy_since = now

    def ping(self, now: float) -> None:
        """Ask for a sign of life, one at a time."""
        if self.ping_at is None:
            self.ping_at, self.pinged = now, frozenset(self.room.abandoned)
            self.send(KernelFrameKind.PING, {})

    def take_pong(self) -> frozenset[int]:
        """Take a sign of life; return what was cancelled before it was asked for, and is held no more."""
        if self.ping_at is None:
            self.note_unasked("PONG")
        self.ping_at = None
        return self.pinged

    def take_progress(self, now: float, *, is_expected: bool) -> None:
        """Take note that it works for other gateways meanwhile, if there are others and something waits for that.

        Raises:
            BadKernelFrame: it is one of very many that nobody has asked for.
        """
        if self.busy_since is None or not is_expected:
            self.note_unasked("PROGRESS")
        else:
            self.progress_at = now

    def rest(self, now: float) -> None:
        """Give memory back that large bodies have not needed for a while."""
        self._bodies.rest(now)

    def forgive(self, now: float) -> None:
        """Let its clocks begin anew."""
        self.received_at = now
        self.busy_since = None if self.busy_since is None else now

    def data_received(self, data: bytes) -> None:
        """Hand on what came."""
        try:
            for frame in self._reader.feed(data):
                if self._transport is None:
                    return  # it was cut because of the frame before
                self._take(frame)
            if num_copied := self._bodies.num_to_say():
                self.send(KernelFrameKind.COPIED, {"num": num_copied})
        except BadKernelFrame as error:
            _log.warning("the connection of kernel %s is closed: %s", self.task_id or "(unknown)", error)
            self.cut()
        self._note_bytes()

    def pause_writing(self) -> None:
        """Take note that it has left much unread."""
        self._clog(is_clogged=True)

    def resume_writing(self) -> None:
        """Take note that it has read it."""
        self._note_bytes()
        self._unclog()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Say that it is gone, unless it was cut."""
        if self._transport is not None:
            self._transport = None
            self._bodies.close()
            self._note_bytes()
            self.events.take_loss(self)

    def cut(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            transport, self._transport = self._transport, None
            transport.abort()
            self._bodies.close()
            self._note_bytes()
            self.events.take_loss(self)

    def send(self, kind: KernelFrameKind, header: dict[str, Any], body: bytes | bytearray = b"") -> None:
        """Send a frame with the others of this turn."""
        if self._transport is None:
            return
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        header, body = self._bodies.put(header, body)
        self._outgoing.append(encode_head(kind, header, len(body)))
        if body:
            self._outgoing.append(bytes(body) if len(body) <= _JOINED_BYTES else body)  # type: ignore[arg-type]
            self._num_outgoing += len(body)
        if self._num_outgoing + self._bodies.num_held > MAX_UNREAD_BYTES:
            self.room.is_clogged = True

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        self._num_outgoing = 0
        if self._transport is None:
            return
        small: list[bytes] = []
        for piece in outgoing:
            if len(piece) <= _JOINED_BYTES:
                small.append(piece)
                continue
            self._transport.write(b"".join(small))
            # of bytes that wait behind others asyncio copies the rest whenever some went out, from Python 3.12 on
            self._transport.write(memoryview(piece))
            small = []
        if small:
            self._transport.write(b"".join(small))
        self._note_bytes()
        self._unclog()  # all, or nearly all, went out at once

    def _take(self, frame: KernelFrame) -> None:
        number = frame.header.get("id")
        whole = self._bodies.take(frame, is_wanted=isinstance(number, int) and number in self.room.held)
        if whole is not None:
            self.events.take_frame(self, whole)
        else:
            self._unclog()

    def _unclog(self) -> None:
        """Give it requests again, if it has read nearly all."""
        if self._num_unread() <= MAX_UNREAD_BYTES:
            self._clog(is_clogged=False)

    def _clog(self, *, is_clogged: bool) -> None:
        if self.room.is_clogged is not is_clogged and self._transport is not None:
            self.room.is_clogged = is_clogged
            self.events.take_unread(self)

    def _num_unread(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size() + self._bodies.num_held

    def _note_bytes(self) -> None:
        num = self.num_bytes
        if num != self._noted:
            self._noted = num
            self._memory.note(self)
