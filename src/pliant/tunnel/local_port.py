"""The outer end of a notebook's tunnel: a port of this machine, on loopback, whose connections go through it.

The port stays while tunnels come and go: whoever is connected has to connect again, and browsers do.
"""

import errno
import socket
import threading
from contextlib import suppress
from typing import Final

from pliant.core.errors import InvalidInput
from pliant.tunnel.channels import TunnelChannels

_LOOPBACK: Final = "127.0.0.1"
_FIRST, _NUM_TRIED = 8888, 10
"""The ports that Jupyter itself tries."""
_BACKLOG: Final = 128


class LocalPort:
    """A port of this machine.

    Args:
        number: which; None: 8888 or one of the next, or any that is free.

    Raises:
        InvalidInput: it is taken, or not ours to take.
    """

    def __init__(self, number: int | None = None) -> None:
        self._socket = _listen(number)
        self._channels: TunnelChannels | None = None
        self._changed = threading.Condition()

    @property
    def number(self) -> int:
        """Which port it is."""
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address that browsers reach it at."""
        return f"http://{_LOOPBACK}:{self.number}"

    def begin(self) -> None:
        """Accept connections from now on; they wait while there is no tunnel."""
        threading.Thread(target=self._accept, name="pliant-port", daemon=True).start()

    def lead(self, channels: TunnelChannels | None) -> None:
        """Have all new connections go through this tunnel; None: wait for the next one."""
        with self._changed:
            self._channels = channels
            self._changed.notify_all()

    def close(self) -> None:
        """Accept no more."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                connection, _ = self._socket.accept()
                with self._changed:
                    self._changed.wait_for(lambda: self._channels is not None)
                    channels = self._channels
                assert channels is not None
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                channels.open(connection)


def _listen(number: int | None) -> socket.socket:
    wanted = (number,) if number is not None else (*range(_FIRST, _FIRST + _NUM_TRIED), 0)
    for port in wanted:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((_LOOPBACK, port))
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            if number is not None or error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise InvalidInput.at("--port", f"{port} cannot be used here: {error.strerror}; try another") from error
        else:
            return listening
    raise AssertionError("port 0 is any that is free")
