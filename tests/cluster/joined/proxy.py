"""A cable that a test can cut: bytes between agents and a server go through it, or do not. Knows no protocol."""

import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

_CHUNK: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(eq=False, kw_only=True)
class Wire:
    """One connection through a proxy."""

    ends: tuple[socket.socket, socket.socket]
    is_whole: threading.Event = field(default_factory=threading.Event)
    """Not set: what is sent waits here."""
    first_over: threading.Lock = field(default_factory=threading.Lock)
    """Of its two ways the one that ends first takes it; the other one closes both ends."""


class Proxy:
    """Listens at a port of its own, and passes on what it gets to the server's."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.wires: list[Wire] = []
        """All that there were, the oldest first."""
        self._is_held = False
        self._is_refusing = False
        self._is_closed = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def hold(self) -> None:
        """Pass nothing on, of these connections and of new ones; nobody learns of it."""
        self._is_held = True
        for wire in self.wires:
            wire.is_whole.clear()

    def refuse(self) -> None:
        """End all connections, and new ones at once: as if nobody listened any more."""
        self._is_refusing = True
        self.reset()

    def release(self) -> None:
        """Pass on what has waited, and all that follows."""
        self._is_held = self._is_refusing = False
        for wire in self.wires:
            wire.is_whole.set()

    def reset(self) -> None:
        """End all connections at once, so that both ends see it."""
        for wire in list(self.wires):
            _end(wire)

    def close(self) -> None:
        """End."""
        self._is_closed = True
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.reset()
        for thread in self._threads:
            thread.join(10.0)
        for wire in self.wires:
            for end in wire.ends:
                end.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                arrived, _ = self._listening.accept()
            except OSError:
                return
            if self._is_refusing:
                arrived.close()
                continue
            try:
                wire = Wire(ends=(arrived, socket.create_connection(("127.0.0.1", self._to))))
            except OSError:
                arrived.close()
                continue
            if not self._is_held:
                wire.is_whole.set()
            self.wires.append(wire)
            for source, sink in (wire.ends, wire.ends[::-1]):
                thread = threading.Thread(target=_pass_on, args=(wire, source, sink), daemon=True)
                self._threads.append(thread)
                thread.start()


def _pass_on(wire: Wire, source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            wire.is_whole.wait()
            sink.sendall(data)
    with suppress(OSError):
        wire.is_whole.wait()
        sink.shutdown(socket.SHUT_WR)
    if not wire.first_over.acquire(blocking=False):
        for end in wire.ends:
            end.close()


def _end(wire: Wire) -> None:
    wire.is_whole.set()
    for end in wire.ends:
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.shutdown(socket.SHUT_RDWR)
