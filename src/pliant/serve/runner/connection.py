"""A kernel's end of the socket to the gateway: whole frames out, whole frames in.

Sending waits until all is written, or as long as `bound_sending` says; receiving never waits. Knows no meaning of a
frame.
"""

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pliant.serve.protocol.frame_bodies import FrameBodies
from pliant.serve.protocol.frames import BadKernelFrame, KernelFrame, KernelFrameKind, KernelFrameReader, encode_head
from pliant.serve.protocol.shared_bodies import REST_S, SharedBodies, make_shared_bodies
from pliant.serve.protocol.socket_name import socket_name
from pliant.serve.runner.errors import GatewayLost

_READ_BYTES: Final = 256 << 10
_MOST_READ_BYTES: Final = 4 << 20
_JOINED_BYTES: Final = 64 << 10
"""Bodies up to this are put together with what else is sent."""


def connect_gateway(path: Path, number: int = 0) -> socket.socket:
    """Return a connection to a gateway's socket; its path may be longer than the 107 bytes of an address.

    Never waits: a gateway that takes no connections for so long that no more can queue up is not there.

    Args:
        path: of the socket of gateway 0.
        number: of the gateway.

    Raises:
        FileNotFoundError: there is no such socket.
        OSError: nobody listens there.
    """
    name = socket_name(path.name, number)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            channel.setblocking(False)
            channel.connect(f"/proc/self/fd/{folder}/{name}")
            channel.setblocking(True)
        except OSError:
            channel.close()
            raise
        return channel
    finally:
        os.close(folder)


def _pieces(frames: Sequence[KernelFrame]) -> Iterator[bytes | bytearray | memoryview]:
    """Yield the bytes of frames; those of long bodies are not copied."""
    joined: list[bytes | bytearray | memoryview] = []
    for frame in frames:
        joined.append(encode_head(frame.kind, frame.header, len(frame.body)))
        if len(frame.body) <= _JOINED_BYTES:
            joined.append(frame.body)
            continue
        yield b"".join(joined)
        yield frame.body
        joined = []
    if joined:
        yield b"".join(joined)


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("@ll", whole, round((seconds - whole) * 1e6))


class GatewayConnection:
    """One connection; when it is lost, every call raises."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._reader = KernelFrameReader()
        self._bodies = FrameBodies(None)
        self._offered: SharedBodies | None = None
        """Memory that the gateway has not said yet to have taken."""
        self.is_sending = False
        """A frame is written at this moment: whoever interrupts that must not write another one."""

    def fileno(self) -> int:
        return self._channel.fileno()

    def close(self) -> None:
        """End it; the gateway sees that."""
        self._channel.close()
        self.share(is_taken=False)
        self._bodies.close()

    def bound_sending(self, seconds: float | None) -> None:
        """Take a gateway for lost that reads nothing for so long while something is sent to it; None: wait for it.

        A send that is cut in two may wait twice.
        """
        self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(seconds or 0.0))

    def introduce(self, header: dict[str, Any]) -> None:
        """Send HELLO, and memory for large bodies with it, if there is any.

        Raises:
            GatewayLost: the connection is gone.
        """
        hello = encode_head(KernelFrameKind.HELLO, header, 0)
        try:
            self._offered, file = make_shared_bodies()
        except OSError:
            self.send(KernelFrameKind.HELLO, header)
            return
        self.is_sending = True
        try:
            socket.send_fds(self._channel, [hello], [file])
        except OSError as error:
            raise GatewayLost(f"the connection to the gateway is gone: {error}") from error
        finally:
            self.is_sending = False
            os.close(file)

    def share(self, *, is_taken: bool) -> None:
        """Let large bodies go by the memory that was handed over, if the gateway has taken it."""
        offered, self._offered = self._offered, None
        if offered is not None and is_taken:
            self._bodies = FrameBodies(offered)
        elif offered is not None:
            offered.close()

    def rest(self, now: float) -> float | None:
        """Give memory back that large bodies have not needed for a while; return when to look again."""
        self._bodies.rest(now)
        return REST_S if self._bodies.is_warm else None

    def send(self, kind: KernelFrameKind, header: dict[str, Any], body: bytes = b"") -> None:
        """Send one frame.

        Raises:
            GatewayLost: the connection is gone.
        """
        self.send_all([KernelFrame(kind, header, body)])

    def send_all(self, frames: Sequence[KernelFrame]) -> None:
        """Send frames one after another, with as few calls of the system as there can be.

        Raises:
            GatewayLost: the connection is gone.
        """
        self.is_sending = True
        try:
            for piece in _pieces([self._put(frame) for frame in frames]):
                self._channel.sendall(piece)
        except BlockingIOError as error:
            raise GatewayLost("the gateway reads nothing, and holds others up") from error
        except OSError as error:
            raise GatewayLost(f"the connection to the gateway is gone: {error}") from error
        finally:
            self.is_sending = False

    def receive(self) -> list[KernelFrame]:
        """Return the frames that have come by now.

        Raises:
            GatewayLost: the gateway has closed the connection, or sends what is no frame.
        """
        frames = [whole for frame in self._read() if (whole := self._take(frame)) is not None]
        if num_copied := self._bodies.num_to_say():
            self.send(KernelFrameKind.COPIED, {"num": num_copied})
        return frames

    def _put(self, frame: KernelFrame) -> KernelFrame:
        header, body = self._bodies.put(frame.header, frame.body)
        return frame if body is frame.body else KernelFrame(frame.kind, header, body)

    def _take(self, frame: KernelFrame) -> KernelFrame | None:
        try:
            return self._bodies.take(frame)
        except BadKernelFrame as error:
            raise GatewayLost(f"the connection to the gateway is gone: {error}") from error

    def _read(self) -> list[KernelFrame]:
        frames: list[KernelFrame] = []
        while True:
            size = min(max(self._reader.num_missing, _READ_BYTES), _MOST_READ_BYTES)
            try:
                data = self._channel.recv(size, socket.MSG_DONTWAIT)
                frames += self._reader.feed(data)
            except BlockingIOError:
                return frames
            except (OSError, BadKernelFrame) as error:
                raise GatewayLost(f"the connection to the gateway is gone: {error}") from error
            if not data:
                if frames:
                    return frames  # the next call sees the end again
                raise GatewayLost("the gateway has closed the connection")
            if len(data) < size:
                return frames
