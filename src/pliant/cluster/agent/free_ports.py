"""Ports of this machine that nobody listens on."""

import errno
import random
import socket
from collections import deque

from pliant.core.job import NodeId
from pliant.core.ports import Address

_PORTS = range(20000, 32768)
_NUM_REMEMBERED = 256
_TRIES = 100


class FreePorts:
    """Gives out ports of one node; one that was given out lately is not given again, for nobody may listen on it yet.

    They are below those that a system gives to whoever asks for any (from 32768 on Linux, from 49152 elsewhere), so
    that nobody comes before a port's user by chance. Safe to call from any thread.
    """

    def __init__(self, node_id: NodeId, host: str) -> None:
        self._node_id = node_id
        self._host = host
        self._given: deque[int] = deque(maxlen=_NUM_REMEMBERED)

    def address(self, node_id: NodeId) -> Address:
        """Return the node's address with a free port.

        Raises:
            ValueError: it is another node.
            OSError: there is no free port, or the address is not this machine's.
        """
        if node_id != self._node_id:
            raise ValueError(f"there is no node {node_id!r}; the only one here is {self._node_id!r}")
        for port in random.sample(_PORTS, _TRIES):
            if port not in self._given and self._is_free(port):
                self._given.append(port)
                return Address(host=self._host, port=port)
        raise OSError(
            f"{_TRIES} ports of {self._host} from {_PORTS.start} to {_PORTS.stop - 1} are all in use; try again"
        )

    def _is_free(self, port: int) -> bool:
        """Raises OSError if the address is not this machine's."""
        try:
            socket.create_server((self._host, port)).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True
