"""A stock of addresses of this node that nobody listens on, so that the adapter can give one away without asking."""

import errno
import random
import socket
import time
from collections import deque
from typing import Final

from pliant.cluster.agent.messages import Addresses
from pliant.core.ports import Address

_PORTS = range(20000, 32768)
_NUM_REMEMBERED: Final = 256
_TRIES = 100
_CHECK_EVERY_S: Final = 5.0


class FreePorts:
    """Keeps so many free ports ready; one that was used lately is not offered again, for nobody may listen on it yet.

    They are below those that a system gives to whoever asks for any (from 32768 on Linux, from 49152 elsewhere), so
    that nobody comes before a port's user by chance.
    """

    def __init__(self, host: str, num_ready: int) -> None:
        self._host = host
        self._num_ready = num_ready
        self._ready: set[int] = set()
        self._used: deque[int] = deque(maxlen=_NUM_REMEMBERED)
        self._error = ""
        self._check_at = 0.0

    def use(self, port: int) -> None:
        """Take a port out of the stock."""
        self._ready.discard(port)
        self._used.append(port)

    def all(self) -> Addresses:
        """Return the whole stock."""
        return Addresses(added=self._addresses(tuple(self._ready)), error=self._error)

    def changes(self) -> Addresses | None:
        """Fill the stock, and every few seconds look whether its ports are still free; return what is new, if any."""
        withdrawn: tuple[int, ...] = ()
        added: tuple[int, ...] = ()
        error = ""
        try:
            if time.monotonic() >= self._check_at:
                withdrawn = self._withdraw()
                self._check_at = time.monotonic() + _CHECK_EVERY_S
            added = self._fill()
        except OSError as failed:
            error = str(failed)
        if not added and not withdrawn and error == self._error:
            return None
        self._error = error
        return Addresses(added=self._addresses(added), withdrawn=self._addresses(withdrawn), error=error)

    def _withdraw(self) -> tuple[int, ...]:
        taken = tuple(port for port in self._ready if not self._is_free(port))
        for port in taken:
            self.use(port)
        return taken

    def _fill(self) -> tuple[int, ...]:
        """Raises OSError if there is no free port at all, or the address is not this machine's."""
        missing = self._num_ready - len(self._ready)
        if missing == 0:
            return ()
        offered = (*self._used, *self._ready)
        tried = random.sample(_PORTS, min(len(_PORTS), _TRIES + missing))
        found = (port for port in tried if port not in offered and self._is_free(port))
        added = tuple(port for port, _ in zip(found, range(missing), strict=False))
        self._ready.update(added)
        if not self._ready:
            raise OSError(
                f"{len(tried)} ports of {self._host} from {_PORTS.start} to {_PORTS.stop - 1} are all in use; try again"
            )
        return added

    def _addresses(self, ports: tuple[int, ...]) -> tuple[Address, ...]:
        return tuple(Address(host=self._host, port=port) for port in ports)

    def _is_free(self, port: int) -> bool:
        """Raises OSError if the address is not this machine's."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            socket.create_server((self._host, port), family=family).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True
