"""What a kernel's conversation with a gateway goes through (`GatewayChannel`), and the one on the gateway's machine.

A channel takes and gives bytes. `LocalChannel` is a UNIX socket, by which memory for large bodies is handed over;
`tls_channel` is for other machines. Knows no meaning of a frame.
"""

import os
import socket
import struct
from pathlib import Path
from typing import Protocol

from pliant.serve.protocol.shared_bodies import SharedBodies, make_shared_bodies


class GatewayChannel(Protocol):
    """A connection to a gateway, as bytes. Every call may raise OSError: then it is lost."""

    @property
    def is_opening(self) -> bool:
        """The gateway has not shown yet who it is; what is sent waits for that."""
        ...

    def fileno(self) -> int:
        """Return what can be read when there is something to do; another one when it is open."""
        ...

    def introduce(self, hello: bytes) -> SharedBodies | None:
        """Send the first frame; return the memory that was handed over with it, if any was."""
        ...

    def send(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of it, and wait for that.

        Raises:
            BlockingIOError: the gateway reads nothing for as long as it may.
            GatewayUnproven: it is no gateway of this server.
        """
        ...

    def receive(self, size: int) -> bytes:
        """Return what has come, about so much at most; nothing at the end.

        Raises:
            BlockingIOError: nothing has come.
            GatewayUnproven: it is no gateway of this server.
        """
        ...

    def bound_sending(self, seconds: float | None) -> None:
        """Wait for a gateway that reads nothing so long at most; None: as long as it takes."""
        ...

    def look(self, now: float) -> float | None:
        """See whether it is still there; return after how many seconds to look again, or None: no need."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class LocalChannel:
    """A connection to a gateway of this machine.

    Args:
        sock: connected.
    """

    is_opening = False

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def fileno(self) -> int:
        return self._sock.fileno()

    def introduce(self, hello: bytes) -> SharedBodies | None:
        try:
            shared, file = make_shared_bodies()
        except OSError:
            self._sock.sendall(hello)
            return None
        try:
            socket.send_fds(self._sock, [hello], [file])
        except OSError:
            shared.close()
            raise
        finally:
            os.close(file)
        return shared

    def send(self, data: bytes | bytearray | memoryview) -> None:
        self._sock.sendall(data)

    def receive(self, size: int) -> bytes:
        return self._sock.recv(size, socket.MSG_DONTWAIT)

    def bound_sending(self, seconds: float | None) -> None:
        set_send_timeout(self._sock, seconds or 0.0)

    def look(self, _now: float) -> float | None:
        return None

    def close(self) -> None:
        self._sock.close()


def connect_local(folder: Path, name: str) -> LocalChannel:
    """Return a connection to a socket; its path may be longer than the 107 bytes of an address.

    Never waits: a gateway that takes no connections for so long that no more can queue up is not there.

    Raises:
        FileNotFoundError: there is no such socket.
        ConnectionRefusedError: nobody on this machine listens there.
        OSError: it cannot be connected now.
    """
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.connect(f"/proc/self/fd/{place}/{name}")
            sock.setblocking(True)
        except OSError:
            sock.close()
            raise
        return LocalChannel(sock)
    finally:
        os.close(place)


def set_send_timeout(sock: socket.socket, seconds: float) -> None:
    """Have a socket that can send nothing for so long raise BlockingIOError; 0: never.

    What is sent in two parts may wait twice.
    """
    whole = int(seconds)
    timeval = struct.pack("@ll", whole, round((seconds - whole) * 1e6))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeval)
