"""The inner end of a notebook's tunnel: a connection to the notebook server of the task for every channel.

It connects from within the walls, as the job's user, to a socket in the job's own folder: so it reaches nothing that
the job's code could not reach itself, whatever that puts in the way.
"""

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from websockets.sync.connection import Connection

from pliant.core.notebook import SOCKET, TOKEN_FILE
from pliant.core.tunnel import Frame, FrameKind
from pliant.tunnel.channels import TunnelChannels
from pliant.tunnel.window import TunnelClosed

_POLL_S: Final = 0.1
_MAX_TOKEN: Final = 128


def serve_notebook(connection: Connection, folder: Path) -> None:
    """Serve a tunnel until it is closed; say that the notebook server answers as soon as it does.

    Args:
        connection: the tunnel's WebSocket.
        folder: where its socket and its token lie, or will.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)  # the address of a socket has 107 bytes at most, and the path of this folder may have more
    channels = TunnelChannels(connection, connect=connect_notebook)
    threading.Thread(target=_tell_when_ready, args=(channels,), name="pliant-notebook", daemon=True).start()
    with suppress(ValueError):  # the client does not keep to the rules: it is hung up on
        channels.serve()


def connect_notebook() -> socket.socket:
    """Connect to the server whose socket lies in this folder.

    Raises:
        OSError: it does not answer, or has more connections waiting than it takes.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(SOCKET)
    except OSError:
        connection.close()
        raise
    connection.setblocking(True)
    return connection


def _tell_when_ready(channels: TunnelChannels) -> None:
    while (token := _token()) is None:
        time.sleep(_POLL_S)
    with suppress(TunnelClosed):
        channels.tell(Frame(FrameKind.READY, token))


def _token() -> bytes | None:
    """Return the token of the server if it answers."""
    try:
        connect_notebook().close()
        with open(TOKEN_FILE, "rb") as file:
            return file.read(_MAX_TOKEN)
    except OSError:
        return None
