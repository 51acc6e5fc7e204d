"""The listening side of gRPC: its socket, its certificate, and what it bears from strangers.

A connection may be silent for ten minutes, has ten seconds for its handshake, and may have so many calls at once; one
that pings all the time, or whose peer answers none, is closed. Headers are small. A message that is decompressed counts
as what it becomes.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
import grpc.aio

from pliant.serve.gateway.certificate import CertificatePair
from pliant.serve.gateway.grpc.inferring import MAX_MESSAGE_BYTES

MAX_CALLS: Final = 5000
"""Under way at once, of all connections."""
MAX_CONNECTIONS: Final = 2000
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", 1000),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.absolute_max_metadata_size", 32 << 10),
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 600_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 2),
)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcPlace:
    """Where gRPC is spoken."""

    host: str
    port: int
    """0 takes any free one, and so does one that is taken."""
    certificate: Path | None = None
    key_file: Path | None = None
    """Both, PEM, or none: no TLS."""
    is_shared: bool = False
    """Other processes of this gateway speak it at this port, too; else it is shared with nobody who has it."""


class GrpcHandler(Protocol):
    """Answers calls: a generic handler of grpc's."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None: ...


class GrpcServer:
    """Has its port as soon as it is made, in the event loop that it belongs to; then it serves.

    Args:
        place: where it listens.

    Raises:
        OSError: there is no such address here, or the certificate cannot be read.
    """

    def __init__(self, place: GrpcPlace) -> None:
        self._server = grpc.aio.server(
            options=(*_OPTIONS, ("grpc.so_reuseport", int(place.is_shared))), maximum_concurrent_rpcs=MAX_CALLS
        )
        self._newer: Any = None
        """A certificate that grpc has not asked for yet."""
        self.port = self._bind(place)

    async def serve(self, handler: GrpcHandler) -> None:
        """Serve until it is closed.

        Args:
            handler: answers calls.
        """
        self._server.add_generic_rpc_handlers((handler,))
        await self._server.start()
        await self._server.wait_for_termination()

    async def close(self, grace_s: float) -> None:
        """Take no more calls, and end those that are still under way after so long."""
        await self._server.stop(grace_s)

    def renew(self, pair: CertificatePair) -> None:
        """Show another certificate to whoever connects from now on."""
        self._newer = grpc.ssl_server_certificate_configuration([(pair.key, pair.certificate)])

    def _take_newer(self) -> Any:
        """Return a certificate that is new, for a handshake; None: the one before. Called in a thread of grpc's."""
        newer, self._newer = self._newer, None
        return newer

    def _bind(self, place: GrpcPlace) -> int:
        credentials = None
        if place.certificate is not None and place.key_file is not None:
            pair = (place.key_file.read_bytes(), place.certificate.read_bytes())
            first = grpc.ssl_server_certificate_configuration([pair])
            credentials = grpc.dynamic_ssl_server_credentials(first, self._take_newer)
        host = f"[{place.host}]" if ":" in place.host else place.host
        try:
            return self._listen(f"{host}:{place.port}", credentials)
        except RuntimeError as error:
            if not place.port:
                raise OSError(f"gRPC cannot be spoken at {place.host}: {error}") from error
        try:
            port = self._listen(f"{host}:0", credentials)
        except RuntimeError as error:
            raise OSError(f"gRPC cannot be spoken at {place.host}: {error}") from error
        log.warning("port %d of %s is taken; gRPC is spoken at port %d", place.port, place.host, port)
        return port

    def _listen(self, address: str, credentials: Any) -> int:
        if credentials is None:
            return int(self._server.add_insecure_port(address))
        return int(self._server.add_secure_port(address, credentials))
