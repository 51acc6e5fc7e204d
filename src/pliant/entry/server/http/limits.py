"""How long and how many: the limits of connections, and how many files the process may open for them."""

import resource
from dataclasses import dataclass
from typing import Final

_MOST: Final = 4096
"""Connections at once where the system would allow more."""
_OPEN_FILES: Final = 4 * _MOST
"""More than the usual soft limit of 1,024, which is one for programs that are older than `poll`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What one connection may take, and how many there may be."""

    total: int = _MOST
    """Connections at once, links of tasks included."""
    per_address: int = _MOST // 8
    """Of these from one address (IPv6: one /64), links of tasks not included."""
    per_loopback: int = _MOST // 2
    """The same from this machine: all of its people and tasks share one address."""
    head_s: float = 10.0
    """From the connection, or from the first byte of a further request, to the end of its head; the handshake of TLS
    is in it."""
    max_head_bytes: int = 64 << 10
    body_window_s: float = 30.0
    """In each such time a body has to bring `body_bytes_per_s` on average."""
    body_bytes_per_s: float = 1024.0
    idle_s: float = 30.0
    """Between two requests: longer than clients keep a connection that nobody uses, so that it is they who close it;
    httpx does after 5 s."""
    stalled_write_s: float = 60.0
    """So long the receiver of an answer may take for what the server holds ready for it: 64 KiB, or the last rest."""


def limits_for(open_files: int) -> HttpLimits:
    """Return the limits of a process that may have so many files open: half of them are for connections.

    >>> limits_for(1024).total, limits_for(1024).per_loopback, limits_for(1024).per_address
    (512, 256, 64)
    """
    total = max(32, min(_MOST, open_files // 2))
    return HttpLimits(total=total, per_loopback=total // 2, per_address=max(16, total // 8))


def allow_open_files() -> int:
    """Let this process open as many files as it needs, if the system's hard limit does; return how many it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return _OPEN_FILES if soft == resource.RLIM_INFINITY else soft
