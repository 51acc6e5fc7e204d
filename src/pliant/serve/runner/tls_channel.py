"""A kernel's connection to a gateway on another machine (`TlsChannel`): TCP, and TLS with the server's certificate.

Opening it waits for nothing: the kernel may serve other gateways meanwhile. Steps are taken as `receive` is called:

    connecting   `fileno` is an epoll that becomes readable when TCP is connected
    proving      the gateway shows the server's certificate, and that it has its key
    open         HELLO, which has waited until now, goes out

Law: nothing of this kernel's, and no token above all, is sent before the gateway has proved who it is.
"""

import os
import select
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pliant.serve.protocol.kernel_place import CERTIFICATE, KernelPlace
from pliant.serve.protocol.shared_bodies import SharedBodies
from pliant.serve.protocol.tcp_link import LOOK_EVERY_S, SILENT_S, is_cut_off, num_unacknowledged, prepare_tcp
from pliant.serve.protocol.tls_stream import TlsStream, trust_only
from pliant.serve.runner.channel import set_send_timeout
from pliant.serve.runner.errors import GatewayUnproven

OPEN_S: Final = 3.0
"""So long it may take until a connection is open."""
_READ_BYTES: Final = 256 << 10
_MAX_EARLY_BYTES: Final = 64 << 10
"""Of what waits until then; a HELLO is shorter."""
Address = tuple[socket.AddressFamily, Any]
"""A family, and an address of it as `connect` takes it."""


class TlsChannel:
    """A connection over a network.

    Args:
        place: where the gateway listens.
        certificate: of the server, which the gateway has to show if the place says no other.
        address: of that place.

    Raises:
        OSError: there is no way there, or no certificate.
    """

    def __init__(self, place: KernelPlace, certificate: Path, address: Address) -> None:
        self._place = place
        family, at = address
        self._tls = TlsStream(_trust(place, certificate), place.server_name or place.host)
        self._early = bytearray()
        self._opening_since: float | None = None
        self._bound_s: float | None = None
        self._connecting: select.epoll | None = None
        self._sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            prepare_tcp(self._sock)
            self._sock.setblocking(False)
            with suppress(BlockingIOError):
                self._sock.connect(at)
            self._connecting = select.epoll()
            self._connecting.register(self._sock, select.EPOLLOUT)
        except OSError:
            self.close()
            raise

    @property
    def is_opening(self) -> bool:
        return not self._tls.is_open

    def fileno(self) -> int:
        return (self._connecting or self._sock).fileno()

    def introduce(self, hello: bytes) -> SharedBodies | None:
        self.send(hello)
        return None  # no memory is shared with another machine

    def send(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_opening:
            self._early += data
            if len(self._early) > _MAX_EARLY_BYTES:
                raise OSError("more is sent than can wait until the gateway has shown who it is")
            return
        for piece in self._tls.encrypt(data):
            self._write(piece)

    def receive(self, size: int) -> bytes:
        if self._connecting is not None:
            self._finish_connecting()
        while data := self._sock.recv(min(size, _READ_BYTES), socket.MSG_DONTWAIT):
            plain = self._decrypt(data)
            if plain or self._tls.is_over:
                return plain
        return b""

    def bound_sending(self, seconds: float | None) -> None:
        self._bound_s = seconds
        set_send_timeout(self._sock, LOOK_EVERY_S if seconds is None else min(seconds, LOOK_EVERY_S))

    def look(self, now: float) -> float | None:
        if self.is_opening:
            if self._opening_since is None:
                self._opening_since = now
            if now - self._opening_since >= OPEN_S:
                raise TimeoutError(f"what listens at {self._place} has opened no connection within {OPEN_S:g} s")
            return self._opening_since + OPEN_S - now
        self._check_alive()
        return LOOK_EVERY_S if num_unacknowledged(self._sock) else None  # else the system itself looks

    def close(self) -> None:
        if self._connecting is not None:
            self._connecting.close()
        self._sock.close()

    def _finish_connecting(self) -> None:
        """Begin TLS if TCP is connected by now.

        Raises:
            BlockingIOError: not yet.
        """
        if error := self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, f"{self._place} cannot be reached: {os.strerror(error)}")
        assert self._connecting is not None
        if not self._connecting.poll(0):
            raise BlockingIOError
        self._connecting.close()
        self._connecting = None
        self._sock.setblocking(True)
        self.bound_sending(self._bound_s)
        self._tls.begin()
        self._write(self._tls.take_output())

    def _decrypt(self, data: bytes) -> bytes:
        was_opening = self.is_opening
        try:
            plain = self._tls.feed(data)
        except ssl.SSLCertVerificationError as error:
            is_servers = self._place.certificate is None
            where = CERTIFICATE if is_servers else "its own file"
            raise GatewayUnproven(
                f"what listens at {self._place} does not show the certificate in {where} of the server's state "
                f"folder ({error.verify_message}); it is told nothing. If its certificate is a new one, "
                f"restart {'the server' if is_servers else 'the agent of its machine'}"
            ) from error
        self._write(self._tls.take_output())
        if was_opening and not self.is_opening:
            early, self._early = bytes(self._early), bytearray()
            self.send(early)
        return plain

    def _write(self, data: bytes) -> None:
        """Send bytes as they are, and look meanwhile whether the other machine is there."""
        left, num_waits = memoryview(data), 0
        while left:
            try:
                left, num_waits = left[self._sock.send(left) :], 0
            except BlockingIOError:
                self._check_alive()
                num_waits += 1
                if self._bound_s is not None and num_waits * LOOK_EVERY_S >= self._bound_s:
                    raise

    def _check_alive(self) -> None:
        if is_cut_off(self._sock):
            raise TimeoutError(f"the machine of {self._place} has acknowledged nothing for {SILENT_S:g} s")


def _trust(place: KernelPlace, certificate: Path) -> ssl.SSLContext:
    """Raises OSError: there is no certificate that counts."""
    if place.certificate is None:
        return trust_only(certificate)
    try:
        return trust_only(place.certificate)
    except ValueError as error:
        raise OSError(f"what is said of the gateway at {place} is of no use: {error}") from error


def find_addresses(place: KernelPlace) -> list[Address]:
    """Return the addresses of a place, of IPv4 and IPv6.

    Raises:
        OSError: its name is not known.
    """
    found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    return [(family, at) for family, _, _, _, at in found]
