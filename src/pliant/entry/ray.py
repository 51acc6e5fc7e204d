"""The process that speaks to Ray for a server. Not for people to call.

`python -P -m pliant.entry.ray SOCKET`: SOCKET is the number of an open socket to the server, which says `BeginRay`
first (`pliant.cluster.ray.messages`). The process ends when the socket does, or when Ray is lost, after it said why.
"""

import os
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final

from pliant.cluster.json_lines import LineSocket, decode, encode
from pliant.cluster.ray.messages import (
    TO_RAY_PROCESS,
    BeginRay,
    FromRayProcess,
    GiveToken,
    RayLost,
    RayNode,
    RayNodesSeen,
    RayReached,
    ScaleRay,
    TokenWanted,
    ToRayProcess,
)
from pliant.core.errors import Unavailable

LOOK_S: Final = 1.0
TOKEN_S: Final = 45.0
"""So long a token is waited for, or counted on, before another one is asked for."""


def main(argv: Sequence[str]) -> int:
    """Keep an agent running on every node of Ray's; return the exit code."""
    server = ServerLine(socket.socket(fileno=int(argv[0])))
    try:
        begin = server.first()
        if begin is not None:
            _attend(server, begin)
    except Unavailable as error:
        server.say(RayLost(reason=str(error)))
        return 1
    except (BrokenPipeError, ConnectionResetError):  # the server has gone
        return 0
    return 0


def _attend(server: "ServerLine", begin: BeginRay) -> None:
    try:
        from pliant.cluster.ray.membership import RayMembership
    except ImportError as error:
        raise Unavailable(f"Ray is not installed ({error}); `pip install 'pliant[ray]'` on all machines") from error
    membership = RayMembership(begin, now=time.monotonic)
    server.say(RayReached(address=membership.address))
    before: tuple[RayNode, ...] | None = None
    wanted_at: dict[str, float] = {}
    while (messages := server.listen(LOOK_S)) is not None:
        for message in messages:
            if isinstance(message, ScaleRay):
                membership.scale(message)
        given = {message.machine: message.token for message in messages if isinstance(message, GiveToken)}
        nodes = membership.look(given)
        for machine in _waiting(nodes):
            if time.monotonic() - wanted_at.get(machine, -TOKEN_S) >= TOKEN_S:
                wanted_at[machine] = time.monotonic()
                server.say(TokenWanted(machine=machine))
        if nodes != before:
            before = nodes
            server.say(RayNodesSeen(nodes=nodes))


def _waiting(nodes: Iterable[RayNode]) -> Iterable[str]:
    return (node.machine for node in nodes if node.state == "waiting")


class ServerLine:
    """The socket to the server."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lines = LineSocket(channel)

    def first(self) -> BeginRay | None:
        """Return what the server says first; None: it has gone."""
        while (messages := self.listen(None)) is not None:
            for message in messages:
                if isinstance(message, BeginRay):
                    return message
        return None

    def listen(self, timeout_s: float | None) -> Sequence[ToRayProcess] | None:
        """Return what the server says within a while, perhaps nothing; None: it has gone."""
        self._channel.settimeout(timeout_s)
        try:
            lines = self._lines.receive()
        except TimeoutError:
            return ()
        return None if lines is None else [decode(line, TO_RAY_PROCESS) for line in lines]

    def say(self, message: FromRayProcess) -> None:
        """Send a message, wholly."""
        self._channel.settimeout(None)
        self._channel.sendall(encode(message))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # Ray's threads would be waited for
