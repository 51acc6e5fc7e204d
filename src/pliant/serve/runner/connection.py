"""A kernel's end of the connection to the gateway: whole frames out, whole frames in; how it finds the gateway.

Sending waits until all is written, or as long as `bound_sending` says; receiving never waits. Knows no meaning of a
frame.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pliant.serve.protocol.frame_bodies import FrameBodies
from pliant.serve.protocol.frames import BadKernelFrame, KernelFrame, KernelFrameKind, KernelFrameReader, encode_head
from pliant.serve.protocol.kernel_place import CERTIFICATE, place_name, read_place
from pliant.serve.protocol.shared_bodies import REST_S, SharedBodies
from pliant.serve.protocol.socket_name import socket_name
from pliant.serve.runner.channel import GatewayChannel, connect_local
from pliant.serve.runner.errors import GatewayLost
from pliant.serve.runner.tls_channel import TlsChannel, find_addresses

_READ_BYTES: Final = 256 << 10
_MOST_READ_BYTES: Final = 4 << 20
_JOINED_BYTES: Final = 64 << 10
"""Bodies up to this are put together with what else is sent."""


class GatewayFinder:
    """Connects to the gateways of a server, wherever this kernel runs.

    A gateway of this machine is connected by its socket. A socket that refuses, though its file is there, is another
    machine's, whose folder is shared, or its gateway is dead: then the file beside it says where the gateway listens
    for other machines. To take that way by mistake costs speed alone, since the gateway proves who it is; so what the
    system says of the socket is enough, and no machine has to be told from another by a name.

    Args:
        path: of the socket of gateway 0.
    """

    def __init__(self, path: Path) -> None:
        self._folder, self._first = path.parent, path.name
        self._num_tried = 0

    def connect(self, number: int = 0) -> GatewayChannel:
        """Return a new connection, which may still have to open. Never waits, but for the address of a name.

        Args:
            number: of the gateway.

        Raises:
            FileNotFoundError: there is no such gateway.
            OSError: nobody listens there.
        """
        try:
            return connect_local(self._folder, socket_name(self._first, number))
        except (ConnectionRefusedError, FileNotFoundError) as error:
            try:
                place = read_place(self._folder / place_name(self._first, number))
            except FileNotFoundError:
                raise error from None
        addresses = find_addresses(place)
        address = addresses[self._num_tried % len(addresses)]
        self._num_tried += 1  # not all may work from here: next time it is another one's turn
        return TlsChannel(place, self._folder / CERTIFICATE, address)


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


class GatewayConnection:
    """One connection; when it is lost, every call raises."""

    def __init__(self, channel: GatewayChannel) -> None:
        self._channel = channel
        self._reader = KernelFrameReader()
        self._bodies = FrameBodies(None)
        self._offered: SharedBodies | None = None
        """Memory that the gateway has not said yet to have taken."""
        self.is_sending = False
        """A frame is written at this moment: whoever interrupts that must not write another one."""

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def is_opening(self) -> bool:
        """The gateway has not shown yet who it is; what is sent waits for that."""
        return self._channel.is_opening

    def close(self) -> None:
        """End it; the gateway sees that."""
        self._channel.close()
        self.share(is_taken=False)
        self._bodies.close()

    def bound_sending(self, seconds: float | None) -> None:
        """Take a gateway for lost that reads nothing for so long while something is sent to it; None: wait for it."""
        self._channel.bound_sending(seconds)

    def introduce(self, header: dict[str, Any]) -> None:
        """Send HELLO, and memory for large bodies with it, if there is any.

        Raises:
            GatewayLost: the connection is gone.
        """
        self.is_sending = True
        try:
            self._offered = self._channel.introduce(encode_head(KernelFrameKind.HELLO, header, 0))
        except OSError as error:
            raise GatewayLost(f"the connection to the gateway is gone: {error}") from error
        finally:
            self.is_sending = False

    def share(self, *, is_taken: bool) -> None:
        """Let large bodies go by the memory that was handed over, if the gateway has taken it."""
        offered, self._offered = self._offered, None
        if offered is not None and is_taken:
            self._bodies = FrameBodies(offered)
        elif offered is not None:
            offered.close()

    def rest(self, now: float) -> float | None:
        """Give memory back that large bodies have not needed for a while; return when to look again.

        Raises:
            GatewayLost: the gateway's machine does not answer.
        """
        self._bodies.rest(now)
        try:
            again_s = self._channel.look(now)
        except OSError as error:
            raise GatewayLost(f"the connection to the gateway is gone: {error}") from error
        return again_s or (REST_S if self._bodies.is_warm else None)

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
                self._channel.send(piece)
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
            self.is_sending = True  # TLS may have to say something
            try:
                data = self._channel.receive(size)
                frames += self._reader.feed(data)
            except BlockingIOError:
                return frames
            except (OSError, BadKernelFrame) as error:
                raise GatewayLost(f"the connection to the gateway is gone: {error}") from error
            finally:
                self.is_sending = False
            if not data:
                if frames:
                    return frames  # the next call sees the end again
                raise GatewayLost("the gateway has closed the connection")
            if len(data) < size:
                return frames
