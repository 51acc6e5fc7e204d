"""What another machine has of a gateway: its folder over a shared file system, and a network that can be cut."""

import ctypes
import os
import socket
import ssl
import struct
import time
from pathlib import Path

from tests.serve.gateway.played_server import wait_until

from pliant.entry.server.tls import Tls, TlsSettings, prepare
from pliant.serve.protocol.kernel_place import CERTIFICATE, KernelPlace, place_name
from pliant.serve.protocol.tcp_link import num_unacknowledged

_DROP_ALL = struct.pack("@HBBI", 0x06, 0, 0, 0)
"""A program of one instruction for a filter of packets: return 0, keep nothing (<linux/filter.h>)."""
_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27


def make_certificate(home: Path) -> Tls:
    """Return a server's certificate; `address/server.pem` lies below this folder then."""
    return prepare(TlsSettings(names=()), home, now=time.time())


def shown_by(tls: Tls) -> ssl.SSLContext:
    """Return what shows a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key)
    return context


def see_from_elsewhere(address: Path, view: Path, num: int = 1) -> Path:
    """Make a folder as another machine sees it: the files are there, and at the sockets nobody listens.

    Returns:
        the path of the socket of gateway 0.
    """
    view.mkdir(exist_ok=True)
    for number in range(num):
        name = f"gateway-{number}" if number else "gateway"
        make_dead_socket(view / name)
        (view / place_name("gateway", number)).symlink_to(address / place_name("gateway", number))
    (view / CERTIFICATE).symlink_to(address / CERTIFICATE)
    return view / "gateway"


def make_dead_socket(path: Path) -> None:
    """Leave the file of a socket at which nobody on this machine listens."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
            dead.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def say_place(folder: Path, port: int, number: int = 0, host: str = "127.0.0.1") -> None:
    """Write where a gateway listens."""
    (folder / place_name("gateway", number)).write_bytes(KernelPlace(host=host, port=port).to_json())


def cut(file_number: int) -> None:
    """Let nothing that comes reach a socket, as if its network were cut: not even acknowledgements.

    What it sends gets through. So it has to have sent all: what it sends again would look like a sign of life.
    """
    program = ctypes.create_string_buffer(_DROP_ALL)
    with socket.socket(fileno=os.dup(file_number)) as sock:
        wait_until(lambda: not num_unacknowledged(sock), "all that was sent has come")
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(program)))


def mend(file_number: int) -> None:
    """Let everything through again."""
    with socket.socket(fileno=os.dup(file_number)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
