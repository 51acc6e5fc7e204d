"""Where the server listens, what it shows for a certificate, and uvicorn behind it. Knows no rooms."""

import errno
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn

from pliant.api.trust import Trust
from pliant.core.errors import Conflict, Unavailable
from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import HttpLimits, allow_open_files, limits_for
from pliant.entry.server.http.protocol import BoundedProtocol
from pliant.entry.server.http.sockets import CountingSocket
from pliant.entry.server.http.websocket import BoundedWebSocket
from pliant.entry.server.settings import DEFAULT_PORT, ServerSettings
from pliant.entry.server.tls import Tls, prepare
from pliant.server.middleware.secure_headers import headers_of_answer

_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""How those on this machine reach a server that listens on all of its addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A bound socket and the certificate behind it."""

    sock: CountingSocket
    tls: Tls | None
    is_for_all: bool = False
    """Tasks run on other machines, too: all are told the same address."""

    @property
    def url(self) -> str:
        """Where tasks, and this machine's clients, reach the server."""
        return self._url_at(self._host)

    @property
    def public_url(self) -> str:
        """Where people on other machines reach it; as `url`, if none can."""
        bound = str(self.sock.getsockname()[0])
        if self.tls is None or ipaddress.ip_address(bound).is_loopback:
            return self.url
        return self._url_at(self.tls.public_name or self._host)

    @property
    def machines_host(self) -> str | None:
        """By what name or address agents and kernels of other machines reach this one; None: there are none."""
        return self._host if self.is_for_all and self.tls is not None else None

    def _url_at(self, host: str) -> str:
        port = self.sock.getsockname()[1]
        return f"{'http' if self.tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def _host(self) -> str:
        host = str(self.sock.getsockname()[0])
        if self.is_for_all and self.tls is not None and self.tls.public_name is not None:
            return self.tls.public_name
        return _LOOPBACK.get(host, host)

    @property
    def trust(self) -> Trust:
        """How they know that it is this server."""
        if self.tls is None:
            return Trust()
        return Trust(certificate=self.tls.trusted, server_name=self.tls.name_for(self._host))

    def describe(self) -> dict[str, str]:
        """Return what `server.json` says about the certificate, and where others reach the server."""
        if self.tls is None:
            return {}
        name = self.trust.server_name
        described = {"certificate": str(self.tls.trusted), "fingerprint": self.tls.fingerprint}
        if self.public_url != self.url:
            described["public_url"] = self.public_url
        return described if name is None else described | {"server_name": name}

    def config(self, app: Callable[..., Any], **options: Any) -> uvicorn.Config:
        """Return how uvicorn serves an application here, over TLS 1.2 or newer if there is a certificate."""
        if self.tls is not None:
            options |= {"ssl_certfile": self.tls.certificate, "ssl_keyfile": self.tls.key}
        counts = self.sock.counts
        options |= {
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "proxy_headers": False,  # uvicorn would believe everybody on this machine
            "loop": "asyncio",
            "http": partial(BoundedProtocol, counts=counts, headers_of=headers_of_answer),
            "ws": BoundedWebSocket,
            "timeout_keep_alive": counts.limits.idle_s,
        }
        config = uvicorn.Config(app, **options)
        config.load()
        if config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        return config

    def close(self) -> None:
        """Let go of the address."""
        self.sock.close()


class WebServer(uvicorn.Server):
    """Uvicorn that says when it listens, and hands signals on instead of heeding them."""

    def __init__(
        self, config: uvicorn.Config, *, on_listening: Callable[[], None], on_signal: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._on_listening = on_listening
        self._on_signal = on_signal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        self._on_signal(signal.Signals(sig).name)

    def end(self) -> None:
        """Stop to listen; `run` returns soon."""
        self.should_exit = True


def open_listener(
    settings: ServerSettings, *, now: float, limits: HttpLimits | None = None, leads: bool = True
) -> Listener:
    """Bind the address and read or make the certificate.

    Args:
        settings: of the server.
        now: seconds since the epoch.
        limits: None: those that the open files allow.
        leads: no other server does; the certificate of one that does is left as it is.

    Raises:
        InvalidInput: the certificate or the key that was given cannot be used.
        Conflict: something listens there.
        Unavailable: there is no such address here.
    """
    tls = None if settings.tls is None else prepare(settings.tls, settings.home, now=now, is_shared=not leads)
    sock = _open_socket(settings)
    sock.counts = ConnectionCounts(limits or limits_for(allow_open_files()))
    return Listener(sock=sock, tls=tls, is_for_all=settings.cluster is not None)


def use_certificate_of(listener: Listener, settings: ServerSettings, folder: Path, *, now: float) -> Listener:
    """Return the same address with the certificate of the folder that the server works in.

    A server that stood by with another folder shows the one that was made for the pool: tasks and people trust that.

    Raises:
        InvalidInput: the certificate or the key that was given cannot be used any more.
    """
    if settings.tls is None or folder == settings.home:
        return listener
    return replace(listener, tls=prepare(settings.tls, folder, now=now, is_shared=True))


def _bind(sock: socket.socket, settings: ServerSettings) -> None:
    """Bind the address; a standby takes any free port if the usual one is the leader's."""
    try:
        sock.bind((settings.host, settings.port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not settings.standby or settings.port != DEFAULT_PORT:
            raise
        sock.bind((settings.host, 0))


def _open_socket(settings: ServerSettings) -> CountingSocket:
    """Return a socket on the address that the server shall have.

    Raises:
        Conflict: something listens there.
        Unavailable: there is no such address here.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = CountingSocket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; else each answer waits for an ACK
        _bind(sock, settings)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                f"port {settings.port} of {settings.host} is taken by another process; give another --port, or end it"
            ) from error
        raise Unavailable(
            f"the server cannot listen on port {settings.port} of {settings.host}: {error.strerror}"
        ) from error
    return sock
