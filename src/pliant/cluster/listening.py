"""Ports of this machine that nobody listens on."""

import socket
from collections import deque

from pliant.core.job import NodeId
from pliant.core.ports import Address

_NUM_REMEMBERED = 256
_TRIES = 100


class FreePorts:
    """Gives out ports of one node; one that was given out lately is not given again, for nobody may listen on it yet.

    Another process can still take a port before its user does. Safe to call from any thread.
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
        for _ in range(_TRIES):
            with socket.create_server((self._host, 0)) as listener:
                port = int(listener.getsockname()[1])
            if port not in self._given:
                self._given.append(port)
                return Address(host=self._host, port=port)
        raise OSError(f"every port that {self._host} offers was given out lately; try again")
