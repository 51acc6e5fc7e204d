"""The ports of a gateway: the socket for HTTP, and the port for gRPC.

Several processes share the one socket for HTTP, which they inherit: whoever is free takes the next connection, and
none waits at one that is stopped, or is lost with one that dies. gRPC opens its sockets itself, so there each process
has its own, and the system deals connections out (SO_REUSEPORT). Any process of the same user could take part in that.
So root alone shares the port, whose tasks are other users; for anybody else the first process speaks gRPC alone.
Kernels of other machines connect to each process at a port of its own.
"""

import errno
import logging
import os
import socket
from typing import Final

from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import allow_open_files, limits_for
from pliant.entry.server.http.sockets import CountingSocket

log = logging.getLogger("pliant.gateway")

_BACKLOG: Final = 1024
_EVERYWHERE: Final = ("::", "0.0.0.0")


def bind_http(host: str, port: int, num_processes: int) -> CountingSocket:
    """Return a socket on an address; on any free port if this one is taken.

    Args:
        host: the address.
        port: 0 takes any free one.
        num_processes: that take its connections.

    Raises:
        OSError: there is no such address here.
    """
    sock = CountingSocket(_family(host), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; else each answer waits for an ACK
        _bind(sock, host, port, "the gateway listens")
        sock.counts = ConnectionCounts(limits_for(allow_open_files()))
        sock.takes_turns = num_processes > 1
    except OSError:
        sock.close()
        raise
    return sock


def reserve_grpc(host: str, port: int) -> socket.socket:
    """Return a socket that keeps a port for the processes that are to speak gRPC there; any free one if it is taken.

    Raises:
        OSError: there is no such address here.
    """
    sock = socket.socket(_family(host), socket.SOCK_STREAM)
    try:
        _bind(sock, host, port, "gRPC is spoken")
        if shares_grpc():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # after the bind: nobody had the port before
    except OSError:
        sock.close()
        raise
    return sock


def bind_kernels(host: str, port: int) -> socket.socket:
    """Return a socket that listens where kernels of other machines connect; on any free port if this one is taken.

    Args:
        host: how other machines name this one: of its addresses the first that is one of this machine; if none is, as
            behind a translation of addresses, all of this machine's.
        port: 0 takes any free one.

    Raises:
        OSError: there is no port.
    """
    for family, address in _own_addresses(host):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            if address == "::":
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            _bind(sock, address, port, "kernels of other machines are taken")
            sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRNOTAVAIL:
                raise
        else:
            if address in _EVERYWHERE:
                log.info("%s is no address of this machine; kernels of others are taken at all that it has", host)
            return sock
    raise OSError(errno.EADDRNOTAVAIL, f"no address of this machine can be listened on for {host}")


def _own_addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    """Return the addresses of a name, and then what stands for all."""
    everywhere = [(socket.AF_INET6, "::")] if socket.has_dualstack_ipv6() else []
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        log.warning("%s is a name that is not known here: %s", host, error)
        found = []
    named = [(family, str(address[0])) for family, _, _, _, address in found]
    return [*named, *everywhere, (socket.AF_INET, "0.0.0.0")]


def shares_grpc() -> bool:
    """Tell whether several processes may speak gRPC at one port."""
    return os.geteuid() == 0


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _bind(sock: socket.socket, host: str, port: int, what: str) -> None:
    """Take a port; any free one if it is taken, and say so.

    Raises:
        OSError: there is no such address here.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sock.bind((host, 0))
        log.warning("port %d of %s is taken; %s at port %d", port, host, what, sock.getsockname()[1])
