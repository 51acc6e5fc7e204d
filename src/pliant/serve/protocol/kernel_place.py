"""Where a gateway takes kernels of other machines: a file beside its socket (`KernelPlace`).

    gateway                 the socket, which only this machine's kernels reach
    gateway.kernels.json    {"host": "10.0.0.5", "port": 40123, "server_name": "pool.example.org"}
    gateway-1.kernels.json  the same of the second gateway of several
    gateway-4.kernels.json  of one on another machine, which shows another certificate: that stands here, too
    server.pem              the certificate that gateways of the server's machine show, and no other counts

The folder belongs to the server, and all machines see it. Knows no socket.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pliant.serve.protocol.pem import MAX_CERTIFICATE
from pliant.serve.protocol.socket_name import socket_name

CERTIFICATE: Final = "server.pem"
_MAX_BYTES: Final = 2 * MAX_CERTIFICATE
MAX_HOST: Final = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlace:
    """What a kernel has to know to connect over a network."""

    host: str
    port: int
    server_name: str | None = None
    """The name that must stand in the certificate; None: the host."""
    certificate: str | None = None
    """The one that counts (PEM); None: the one in `CERTIFICATE` beside the file."""

    def to_json(self) -> bytes:
        said = asdict(self)
        if self.certificate is None:
            del said["certificate"]
        return json.dumps(said).encode()

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place_name(first: str, number: int) -> str:
    """Return the name of the file of a gateway.

    >>> place_name("gateway", 0), place_name("gateway", 2)
    ('gateway.kernels.json', 'gateway-2.kernels.json')
    """
    return f"{socket_name(first, number)}.kernels.json"


def read_place(path: Path) -> KernelPlace:
    """Return what such a file says.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or says something else.
    """
    with path.open("rb") as file:
        text = file.read(_MAX_BYTES)
    try:
        record = json.loads(text)
        place = KernelPlace(
            host=record["host"],
            port=record["port"],
            server_name=record.get("server_name"),
            certificate=record.get("certificate"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OSError(f"{path} does not say where the gateway listens: {error!r}") from error
    if not is_place(place):
        raise OSError(f"{path} does not say where the gateway listens: {record!r:.200}")
    return place


def is_place(place: KernelPlace) -> bool:
    """Tell whether what somebody says is a place, by its form: whether anybody listens there is another question."""
    is_port = type(place.port) is int and 0 < place.port < 1 << 16
    is_name = place.server_name is None or _is_text(place.server_name, MAX_HOST)
    is_certificate = place.certificate is None or _is_text(place.certificate, MAX_CERTIFICATE)
    return _is_text(place.host, MAX_HOST) and is_port and is_name and is_certificate


def _is_text(value: object, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most
