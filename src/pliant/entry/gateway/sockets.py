"""The ports of a gateway: the socket for HTTP, and the port for gRPC.

Several processes share the one socket for HTTP, which they inherit: whoever is free takes the next connection, and
none waits at one that is stopped, or is lost with one that dies. gRPC opens its sockets itself, so there each process
has its own, and the system deals connections out (SO_REUSEPORT). Any process of the same user could take part in that.
So root alone shares the port, whose tasks are other users; for anybody else the first process speaks gRPC alone.
"""

import errno
import logging
import os
import socket

from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import allow_open_files, limits_for
from pliant.entry.server.http.sockets import CountingSocket

log = logging.getLogger("pliant.gateway")


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
