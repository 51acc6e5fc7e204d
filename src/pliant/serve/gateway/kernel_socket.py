"""Where a gateway takes kernels: a UNIX stream socket of a fixed name in the folder of `server.json`.

Kernels are other users of the system, so everybody may connect; what counts is the token that they show. A path of a
socket has 107 bytes at most, so the folder is named by a descriptor of it. Knows no frame.
"""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

KERNEL_SOCKET: Final = "gateway"
_BACKLOG: Final = 1024


def open_kernel_socket(folder: Path) -> socket.socket:
    """Listen in a folder, in place of whoever listened there before, who is dead.

    Only one process of a folder may do so. The socket appears when it takes connections already.

    Raises:
        OSError: the folder cannot be written.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        new = f"/proc/self/fd/{place}/.{KERNEL_SOCKET}.new"
        with suppress(FileNotFoundError):
            os.unlink(new)
        sock.bind(new)
        os.chmod(new, 0o666)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
        os.rename(new, f"/proc/self/fd/{place}/{KERNEL_SOCKET}")
    except OSError:
        sock.close()
        raise
    finally:
        os.close(place)
    return sock


def remove_kernel_socket(folder: Path) -> None:
    """Remove the socket of this process, which is the only one of the folder."""
    (folder / KERNEL_SOCKET).unlink(missing_ok=True)
