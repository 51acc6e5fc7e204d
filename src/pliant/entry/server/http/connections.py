"""Counts connections: so many in all, so many from one address. Knows no sockets and no HTTP.

A connection *waits* from its first byte until the head of a request is whole, and again between two requests; it costs
its owner nothing, so strangers can hold many. It is *busy* from a whole head to the end of the answer, and a *link*
once it is a WebSocket. When there is no room for a new connection, the one that has waited longest is ended for it; if
none waits, the new one is refused. So half-open connections never keep anybody out, and end nothing that is at work:

    total=4:   one waits since 1 s, one since 2 s, one is busy, one is a link
    a fifth comes:   the one that has waited for 2 s is ended

Links count in all, but not per address: those of all tasks of a machine come from one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pliant.core.address import is_loopback, network_of
from pliant.entry.server.http.limits import HttpLimits


@dataclass(slots=True, kw_only=True, eq=False)
class CountedConnection:
    """A connection as it is counted."""

    file_number: int
    network: str
    drop: Callable[[], None]
    """Ends the connection at once."""
    waits_until: float
    """When its head has to be whole."""
    is_link: bool = False


@dataclass(slots=True)
class _Network:
    """Connections from one address that are no links."""

    num: int = 0
    waiting: dict[CountedConnection, None] = field(default_factory=dict)
    """Those who wait, the one that waits longest first."""


class ConnectionCounts:
    """The connections of a listener. Used by one event loop."""

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self._connections: dict[int, CountedConnection] = {}
        self._networks: dict[str, _Network] = {}
        self._waiting: dict[CountedConnection, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def num_waiting(self) -> int:
        """Return how many connections have no request under way."""
        return len(self._waiting)

    def find(self, file_number: int) -> CountedConnection | None:
        """Return the connection of an open socket; None if it was ended meanwhile."""
        return self._connections.get(file_number)

    def admit(self, address: str, file_number: int, drop: Callable[[], None], now: float) -> CountedConnection | None:
        """Count a new connection, which waits; return None if there is no room for it."""
        network = self._networks.get(network_of(address), _Network())
        most = self.limits.per_loopback if is_loopback(address) else self.limits.per_address
        if network.num >= most and not self._make_room(network.waiting):
            return None
        if len(self) >= self.limits.total and not self._make_room(self._waiting):
            return None
        made = CountedConnection(
            file_number=file_number, network=network_of(address), drop=drop, waits_until=now + self.limits.head_s
        )
        self._connections[file_number] = made
        self._networks.setdefault(made.network, _Network()).num += 1
        self.wait(made)
        return made

    def wait(self, connection: CountedConnection) -> None:
        """Note that no request is under way; it is now the one that waits shortest."""
        if not self._holds(connection) or connection.is_link:
            return
        for waiting in (self._waiting, self._networks[connection.network].waiting):
            waiting.pop(connection, None)
            waiting[connection] = None

    def work(self, connection: CountedConnection) -> None:
        """Note that the head of a request is whole."""
        if self._holds(connection) and connection in self._waiting:
            del self._waiting[connection]
            del self._networks[connection.network].waiting[connection]

    def link(self, connection: CountedConnection) -> None:
        """Note that it is the link of a task from now on."""
        if self._holds(connection) and not connection.is_link:
            self.work(connection)
            connection.is_link = True
            self._leave_network(connection)

    def release(self, connection: CountedConnection) -> None:
        """Count a connection no longer; one that is not counted is left alone."""
        if not self._holds(connection):
            return
        self.work(connection)
        del self._connections[connection.file_number]
        if not connection.is_link:
            self._leave_network(connection)

    def _holds(self, connection: CountedConnection) -> bool:
        return self._connections.get(connection.file_number) is connection

    def _leave_network(self, connection: CountedConnection) -> None:
        network = self._networks[connection.network]
        network.num -= 1
        if not network.num:
            del self._networks[connection.network]

    def _make_room(self, waiting: dict[CountedConnection, None]) -> bool:
        """End the connection that waits longest; tell whether there was one."""
        longest = next(iter(waiting), None)
        if longest is None:
            return False
        self.release(longest)
        longest.drop()
        return True
