"""Where a gateway takes kernels of other machines: a file beside its socket (`KernelPlace`).

    gateway                 the socket, which only this machine's kernels reach
    gateway.kernels.json    {"host": "10.0.0.5", "port": 40123, "server_name": "pool.example.org"}
    gateway-1.kernels.json  the same of the second gateway of several
    server.pem              the certificate that the gateway shows, and no other counts

The folder belongs to the server, and all machines see it. Knows no socket.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pliant.serve.protocol.socket_name import socket_name

CERTIFICATE: Final = "server.pem"
_MAX_BYTES: Final = 4096
_MAX_HOST: Final = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlace:
    """What a kernel has to know to connect over a network."""

    host: str
    port: int
    server_name: str | None = None
    """The name that must stand in the certificate; None: the host."""

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

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
        host, port, name = record["host"], record["port"], record.get("server_name")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OSError(f"{path} does not say where the gateway listens: {error!r}") from error
    is_host = isinstance(host, str) and 0 < len(host) <= _MAX_HOST
    is_name = name is None or (isinstance(name, str) and 0 < len(name) <= _MAX_HOST)
    if not is_host or not is_name or type(port) is not int or not 0 < port < 1 << 16:
        raise OSError(f"{path} does not say where the gateway listens: {record!r:.200}")
    return KernelPlace(host=host, port=port, server_name=name)
