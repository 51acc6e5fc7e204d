"""Where the server listens, and what it shows for a certificate. Knows no rooms."""

import errno
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import uvicorn

from pliant.api.trust import Trust
from pliant.core.errors import Conflict, Unavailable
from pliant.entry.settings import DEFAULT_PORT, ServerSettings
from pliant.entry.tls import Tls, prepare

_KEEP_ALIVE_S: Final = 30
"""Longer than clients keep a connection that nobody uses, so that it is they who close it: httpx does after 5 s."""
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""How those on this machine reach a server that listens on all of its addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A bound socket and the certificate behind it."""

    listener: socket.socket
    tls: Tls | None

    @property
    def url(self) -> str:
        """Where this machine's tasks and clients reach the server."""
        port = self.listener.getsockname()[1]
        host = self._host
        return f"{'http' if self.tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def _host(self) -> str:
        host = str(self.listener.getsockname()[0])
        return _LOOPBACK.get(host, host)

    @property
    def trust(self) -> Trust:
        """How they know that it is this server."""
        if self.tls is None:
            return Trust()
        return Trust(certificate=self.tls.trusted, server_name=self.tls.name_for(self._host))

    def describe_tls(self) -> dict[str, str]:
        """Return what `server.json` says about the certificate."""
        if self.tls is None:
            return {}
        name = self.trust.server_name
        described = {"certificate": str(self.tls.trusted), "fingerprint": self.tls.fingerprint}
        return described if name is None else described | {"server_name": name}

    def config(self, app: Callable[..., Any], **options: Any) -> uvicorn.Config:
        """Return how uvicorn serves an application here, over TLS 1.2 or newer if there is a certificate."""
        if self.tls is not None:
            options |= {"ssl_certfile": self.tls.certificate, "ssl_keyfile": self.tls.key}
        options |= {
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "timeout_keep_alive": _KEEP_ALIVE_S,
        }
        config = uvicorn.Config(app, **options)
        config.load()
        if config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        return config

    def close(self) -> None:
        """Let go of the address."""
        self.listener.close()


def open_front(settings: ServerSettings, *, now: float) -> Front:
    """Bind the address and read or make the certificate.

    Raises:
        InvalidInput: the certificate or the key that was given cannot be used.
        Conflict: something listens there.
        Unavailable: there is no such address here.
    """
    tls = None if settings.tls is None else prepare(settings.tls, settings.home, now=now)
    return Front(listener=_bound(settings), tls=tls)


def in_folder(front: Front, settings: ServerSettings, folder: Path, *, now: float) -> Front:
    """Return the same address with the certificate of the folder that the server works in.

    A server that stood by with another folder shows the one that was made for the pool: tasks and people trust that.

    Raises:
        InvalidInput: the certificate or the key that was given cannot be used any more.
    """
    if settings.tls is None or folder == settings.home:
        return front
    return replace(front, tls=prepare(settings.tls, folder, now=now))


def _bind(listener: socket.socket, settings: ServerSettings) -> None:
    """Bind the address; a standby takes any free port if the usual one is the leader's."""
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not settings.standby or settings.port != DEFAULT_PORT:
            raise
        listener.bind((settings.host, 0))


def _bound(settings: ServerSettings) -> socket.socket:
    """Return a socket on the address that the server shall have.

    Raises:
        Conflict: something listens there.
        Unavailable: there is no such address here.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; else each answer waits for an ACK
        _bind(listener, settings)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                f"port {settings.port} of {settings.host} is taken by another process; give another --port, or end it"
            ) from error
        raise Unavailable(
            f"the server cannot listen on port {settings.port} of {settings.host}: {error.strerror}"
        ) from error
    return listener
