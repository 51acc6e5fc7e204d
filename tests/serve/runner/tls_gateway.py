"""A gateway of the test on another machine: it listens over TLS; the kernel has a folder as its own machine sees it."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.serve.other_machine import make_certificate, make_dead_socket, say_place, shown_by
from tests.serve.runner.fake_gateway import TIMEOUT_S, FakeGateway

from pliant.entry.server.tls import Tls
from pliant.serve.protocol.kernel_place import CERTIFICATE


class TlsListener:
    """Where kernels of other machines connect.

    Args:
        home: of the server.
        folder: as the kernel's machine sees it; the socket in it is dead.
        tls: what is shown; None: the certificate of the server.
        host: where it listens.
    """

    def __init__(
        self, home: Path, folder: Path, number: int = 0, tls: Tls | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.path = folder / "gateway"
        self._context = shown_by(tls or make_certificate(home))
        own = self.path.with_name(f"gateway-{number}") if number else self.path
        if not own.exists():
            make_dead_socket(own)
        if not (folder / CERTIFICATE).exists():
            (folder / CERTIFICATE).symlink_to(home / "address" / CERTIFICATE)
        self._socket = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.port = int(self._socket.getsockname()[1])
        self._accepted: list[socket.socket] = []
        say_place(folder, self.port, number, host)

    def take(self) -> socket.socket:
        """Return the next connection, before TLS."""
        self._socket.settimeout(TIMEOUT_S)
        plain = self._socket.accept()[0]
        plain.settimeout(TIMEOUT_S)
        self._accepted.append(plain)
        return plain

    def accept(self, **settings: Any) -> FakeGateway:
        self._accepted.append(self._context.wrap_socket(self.take(), server_side=True))
        return FakeGateway(self._accepted[-1], **settings)

    def refusal(self) -> str:
        """Return why TLS with the next connection fails."""
        try:
            self._context.wrap_socket(self.take(), server_side=True).close()
        except (ssl.SSLError, ConnectionError) as error:
            return str(error)
        return ""

    def close(self) -> None:
        for one in self._accepted:
            one.close()
        self._socket.close()


@contextmanager
def listening_over_tls(home: Path, folder: Path, **more: Any) -> Iterator[TlsListener]:
    folder.mkdir(exist_ok=True)
    listener = TlsListener(home, folder, **more)
    try:
        yield listener
    finally:
        listener.close()
