"""TCP between a gateway and a kernel on another machine: how it is set up, and how one sees that the machine is gone.

A machine that is cut off says nothing, and its connection stays open for a quarter of an hour. A kernel that computes
says nothing either, and may read nothing for minutes; but its machine acknowledges. So the system is asked whether it
has sent again and again without any acknowledgement (`is_cut_off`). A limit of the system's own (TCP_USER_TIMEOUT)
would not do: it also ends connections whose other side lives and does not read.

    0 s   the cable is pulled; something is sent, or, if nothing is, the system asks for a sign of life after 1 s
    4 s   nothing has come since: `is_cut_off`
    5 s   who sleeps meanwhile is woken by the system, which gives an idle connection up

Knows no frame and no TLS.
"""

import fcntl
import socket
import struct
import sys
import termios
from contextlib import suppress
from typing import Final, Protocol

SILENT_S: Final = 4.0
"""A machine that acknowledges nothing for so long counts as cut off."""
LOOK_EVERY_S: Final = 0.5
"""So often who waits for something looks."""
_ALIVE: Final = {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 4}
"""Of an idle connection: asked after 1 s, each second, and given up after the fourth silence."""
_RTO_MAX_MS: Final = 44
"""<linux/tcp.h>, since Linux 6.15: the longest pause before something is sent again. Without it pauses are doubled, and
a kernel whose window is closed is asked so seldom that a cut is seen later."""
_INFO: Final = struct.Struct("=2xBB48xII")
"""Of struct tcp_info: retransmits and probes; last_data_recv and last_ack_recv, in milliseconds."""


class TcpSocket(Protocol):
    """A socket, or what asyncio shows of one."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


def prepare_tcp(sock: socket.socket) -> None:
    """Send small frames at once, and have the system notice that the other machine is gone."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _ALIVE.items():
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, _RTO_MAX_MS, 1000)


def is_cut_off(sock: TcpSocket) -> bool:
    """Tell whether the other machine has acknowledged nothing for `SILENT_S`, though it was asked again and again."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    num_sent_again, num_probes, data_ms, ack_ms = _INFO.unpack(info)
    return bool((num_sent_again or num_probes > 1) and min(data_ms, ack_ms) >= SILENT_S * 1000)


def num_unacknowledged(sock: socket.socket) -> int:
    """Return how many bytes were sent, or wait to be, that the other machine has not acknowledged."""
    return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
