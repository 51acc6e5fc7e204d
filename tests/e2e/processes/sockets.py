"""What sockets of this machine are, by their inodes: who listens where, who is connected with whom."""

import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_DUMP: Final = 0x301
_DONE: Final = 3
_NAME, _PEER = 0, 2
_LISTENS: Final = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSocket:
    """One of TCP; the ports of its two ends."""

    port: int
    peer_port: int
    is_listening: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnixSocket:
    """One of this machine."""

    name: str
    peer: int | None
    """The inode of the other end; None: it is gone, or there is none."""


def tcp_sockets() -> Mapping[int, TcpSocket]:
    """Return the sockets of TCP by their inodes."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            row = line.split()
            port, peer_port = (int(row[column].rpartition(":")[2], 16) for column in (1, 2))
            found[int(row[9])] = TcpSocket(port=port, peer_port=peer_port, is_listening=row[3] == _LISTENS)
    return found


def unix_sockets() -> Mapping[int, UnixSocket]:
    """Return the sockets of this machine's own kind by their inodes, as the kernel tells them (sock_diag(7))."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        question = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, 1 | 4, 0xFFFFFFFF, 0xFFFFFFFF)
        kernel.send(struct.pack("=IHHII", 16 + len(question), _BY_FAMILY, _DUMP, 1, 0) + question)
        found = {}
        for answer in _answers(kernel):
            parts = dict(_parts(answer[16:]))
            peer = int.from_bytes(parts[_PEER], "little") if _PEER in parts else None
            name = parts.get(_NAME, b"").decode(errors="replace").rstrip("\0")
            found[struct.unpack_from("=I", answer, 4)[0]] = UnixSocket(name=name, peer=peer or None)
        return found


def _answers(kernel: socket.socket) -> Iterator[bytes]:
    while True:
        data = kernel.recv(1 << 20)
        while data:
            length, kind = struct.unpack_from("=IH", data)
            if kind == _DONE:
                return
            assert kind == _BY_FAMILY, "the kernel does not tell its sockets"
            yield data[16:length]
            data = data[(length + 3) & ~3 :]


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind, data[4:length]
        data = data[(length + 3) & ~3 :]
