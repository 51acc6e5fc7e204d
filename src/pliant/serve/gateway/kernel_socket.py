"""Where a gateway takes kernels: a UNIX stream socket of a fixed name in the folder of `server.json`; one per process.

Beside it may lie a file that says where kernels of other machines connect (`kernel_place`).

Kernels are other users of the system, so everybody may connect; what counts is the token that they show. A path of a
socket has 107 bytes at most, so the folder is named by a descriptor of it. Knows no frame.
"""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from pliant.serve.protocol.kernel_place import place_name
from pliant.serve.protocol.socket_name import socket_name

KERNEL_SOCKET: Final = "gateway"
_BACKLOG: Final = 1024


def kernel_socket_name(number: int) -> str:
    """Return the name of the socket of one of the processes."""
    return socket_name(KERNEL_SOCKET, number)


def open_kernel_socket(folder: Path, number: int = 0) -> socket.socket:
    """Listen in a folder, in place of whoever listened there before, who is dead.

    Only one process may do so with its number. The socket appears when it takes connections already.

    Raises:
        OSError: the folder cannot be written.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = kernel_socket_name(number)
        new = f"/proc/self/fd/{place}/.{name}.new"
        with suppress(FileNotFoundError):
            os.unlink(new)
        sock.bind(new)
        os.chmod(new, 0o666)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
        os.rename(new, f"/proc/self/fd/{place}/{name}")
    except OSError:
        sock.close()
        raise
    finally:
        os.close(place)
    return sock


def kernel_place_name(number: int) -> str:
    """Return the name of the file that says where one of the processes takes kernels of other machines."""
    return place_name(KERNEL_SOCKET, number)


def remove_kernel_sockets(folder: Path, numbers: Iterable[int], *, with_places: bool) -> None:
    """Remove the sockets of processes none of which runs; other machines may have theirs in the same folder.

    Args:
        folder: where they are.
        numbers: of the processes.
        with_places: also remove the files beside them that these processes have written themselves.
    """
    for number in numbers:
        (folder / kernel_socket_name(number)).unlink(missing_ok=True)
        if with_places:
            (folder / kernel_place_name(number)).unlink(missing_ok=True)
