"""The connections of one gloo group: which of this process's sockets they are, that they lead to members, their end.

gloo listens while its group lives, takes in whoever connects, and cannot be told to check who that is. So its members
are narrowed from outside, in this order:

1. once a member is connected with all others, nobody has to connect with it any more: its port is closed;
2. every member tells the others at the rendezvous, which strangers cannot use, both ends of its connections. One that
   no other member has the other end of leads to a stranger, and is shut down before anything is computed over it. Had
   gloo taken it for a member's, the first operation fails, and the generation is formed again.

What gloo sends through the store holds the address that a member listens at, as the kernel writes it. A connection that
ends at such an address of a peer, or begins at this task's, belongs to the group: they have no other use.
"""

import contextlib
import ctypes
import json
import os
import socket
import stat
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final

_Connection = tuple[Any, Any]
"""Both ends of a TCP connection, as the socket module writes them."""
_SO_ATTACH_FILTER: Final = 26
_DROP_ALL: Final = struct.pack("=HBBI", 0x06, 0, 0, 0)
"""The kernel's packet filter of one instruction: keep 0 bytes of every packet."""


class Mesh:
    """The connections of one group.

    Args:
        sent: what gloo said of this member through the store, by key.
        received: what it was told of the others.
    """

    def __init__(self, *, sent: dict[str, bytes], received: dict[str, bytes]) -> None:
        self._mine, self._theirs = b"|".join(sent.values()), b"|".join(received.values())
        self._connections: frozenset[_Connection] = frozenset()

    def close_ports(self) -> None:
        """Let nobody connect with this member any more, and note who has.

        A filter on the listening socket drops every packet that comes for it; connections that are made have sockets of
        their own. The socket itself stays as it is: gloo waits for it, and would not bear to see it closed.
        """
        found = set()
        for each in _open_sockets():
            if ends := _ends(each):
                if _sockaddr(each, ends[0]) in self._mine or _sockaddr(each, ends[1]) in self._theirs:
                    found.add(ends)
            elif (port := _listens_at(each)) and _sockaddr(each, port) in self._mine:
                _drop_packets(each)
        self._connections = frozenset(found)

    def ends(self) -> bytes:
        """Return what the other members have to know of these connections."""
        return json.dumps([_plain(connection) for connection in sorted(self._connections)]).encode()

    def keep(self, lists: Iterable[bytes]) -> int:
        """Shut down the connections that none of the others has the other end of; return to how many members they lead.

        Args:
            lists: the `ends` of every other member.
        """
        others = [{(tuple(theirs), tuple(ours)) for ours, theirs in json.loads(ends)} for ends in lists]
        mine = {connection: _plain(connection) for connection in self._connections}
        strangers = {each for each, plain in mine.items() if not any(plain in ends for ends in others)}
        _shut_down(strangers)
        self._connections -= strangers
        return sum(not ends.isdisjoint(mine.values()) for ends in others)

    def shut_down(self) -> None:
        """End every operation that is under way in these connections, here and at the peers."""
        _shut_down(self._connections)


def _plain(connection: _Connection) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return both ends as every machine writes them: without the interface of an IPv6 address."""
    (own, own_port, *_), (peer, peer_port, *_) = connection
    return (own.partition("%")[0], own_port), (peer.partition("%")[0], peer_port)


def _shut_down(connections: Iterable[_Connection]) -> None:
    """Shut down those of this process's sockets that are these very connections."""
    wanted = frozenset(connections)
    for each in _open_sockets() if wanted else ():
        if _ends(each) in wanted:
            with contextlib.suppress(OSError):  # the peer was faster
                each.shutdown(socket.SHUT_RDWR)


def _listens_at(found: socket.socket) -> Any:
    """Return the address that a TCP socket listens at; None if it does not."""
    if found.family not in (socket.AF_INET, socket.AF_INET6) or found.type != socket.SOCK_STREAM:
        return None
    return found.getsockname() if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) else None


def _drop_packets(listener: socket.socket) -> None:
    program = ctypes.create_string_buffer(_DROP_ALL)
    with contextlib.suppress(OSError):  # a system without such filters: the port stays open
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(program)))


def _open_sockets() -> Iterator[socket.socket]:
    """Yield a second handle of every socket of this process, one after the other.

    While it is open, the number of the socket cannot be used for another one; closing it does not close the socket.
    """
    for number in _descriptors():
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            handle = os.dup(number)
        except OSError:  # closed since it was listed
            continue
        try:
            found = socket.socket(fileno=handle)
        except OSError:  # of a kind that Python does not know
            os.close(handle)
            continue
        with found:
            yield found


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # no descriptor is left to read the list with: try all numbers
        return list(range(os.sysconf("SC_OPEN_MAX")))


def _ends(connection: socket.socket) -> _Connection | None:
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return None
    try:
        return connection.getsockname(), connection.getpeername()
    except OSError:  # it only listens, or is closed already
        return None


def _sockaddr(connection: socket.socket, end: Any) -> bytes:
    """Return the beginning of a `struct sockaddr`: family, port, address."""
    head = struct.pack("=H", connection.family) + struct.pack("!H", end[1])
    if connection.family == socket.AF_INET:
        return head + socket.inet_pton(socket.AF_INET, end[0])
    return head + struct.pack("!I", end[2]) + socket.inet_pton(socket.AF_INET6, end[0].partition("%")[0])
