"""Carries streams from a UNIX socket, which all hosts see, to a port out here that none of them reaches.

Whoever makes one decides where it connects: its thread is on the network that the maker's thread is on. What a host
leaves open when it loses its power stays open on the other side, as it does over a network.
"""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_CHUNK = 2**16


class Carrier:
    """Listens at `path` in a `with` block; every connection there becomes one to `address`."""

    def __init__(self, path: Path, address: tuple[str, int]) -> None:
        self.holds = False
        """Ends of streams are kept back from now on: the other side hears nothing of them."""
        self._severed = ""
        self._address = address
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o777)
        self._open: list[socket.socket] = [self._listener]
        self._of_hosts: list[tuple[str, socket.socket]] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._listener.listen(64)
        self._begin(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for one in self._open:
            one.close()

    @contextmanager
    def severed(self, pid: int) -> Iterator[None]:
        """Lose all that the host of a process sends and is sent; then its streams, which lack a part, end."""
        self._severed = host = host_of(pid)
        try:
            yield
        finally:
            self._severed = ""
            for one in [one for its, one in self._of_hosts if its == host]:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _begin(self, what: object, *args: object) -> None:
        assert callable(what)
        thread = threading.Thread(target=what, args=args, name="carrier", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                there, _ = self._listener.accept()
                host = host_of(struct.unpack("3i", there.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
                here = socket.create_connection(self._address)
                self._open += [there, here]
                self._of_hosts += [(host, there), (host, here)]
                self._begin(self._carry, there, here, host)
                self._begin(self._carry, here, there, host)

    def _carry(self, source: socket.socket, goal: socket.socket, host: str) -> None:
        was_severed = False
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                was_severed = was_severed or self._severed == host
                if not was_severed:
                    goal.sendall(data)
        if not self.holds and self._severed != host:
            with suppress(OSError):
                goal.shutdown(socket.SHUT_RDWR)


def host_of(pid: int) -> str:
    """Return what tells the host of a process, by its number out here, from others."""
    return os.readlink(f"/proc/{pid}/ns/pid")
