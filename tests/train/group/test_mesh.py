"""The connections of a group are told from those of strangers, and its ports are closed once it is whole."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from pliant.train.group.mesh import Mesh

PATIENCE_S = 20.0


def sockaddr(connection: socket.socket) -> bytes:
    """Return the address as gloo sends it through the store."""
    host, port = connection.getsockname()
    return b"gloo" + struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(host)


class Member:
    """One end of a group: a port, and the connections that gloo would have made."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.listener.settimeout(PATIENCE_S)

    def connect(self, other: "Member") -> tuple[socket.socket, socket.socket]:
        """Connect with another member's port; return both ends, its own first."""
        near = self._stack.enter_context(socket.create_connection(other.listener.getsockname(), timeout=PATIENCE_S))
        far = self._stack.enter_context(other.listener.accept()[0])
        far.settimeout(PATIENCE_S)
        return near, far

    def mesh(self, *others: "Member") -> Mesh:
        received = {str(number): sockaddr(other.listener) for number, other in enumerate(others)}
        return Mesh(sent={"own": sockaddr(self.listener)}, received=received)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def ends_of(*connections: socket.socket) -> bytes:
    """Return what a member says of its connections; in one process a mesh would see those of all."""
    return json.dumps([[each.getsockname(), each.getpeername()] for each in connections]).encode()


def can_talk(near: socket.socket, far: socket.socket) -> bool:
    try:
        near.sendall(b"x")
        return far.recv(1) == b"x"
    except (BrokenPipeError, ConnectionResetError):
        return False


def test_what_leads_to_no_member_is_shut_down_and_all_else_stays(stack: ExitStack) -> None:
    first, second, stranger = Member(stack), Member(stack), Member(stack)
    ours, theirs = second.connect(first)
    stranger_near, stranger_far = stranger.connect(first)
    mine = first.mesh(second)
    mine.close_ports()

    assert mine.keep([ends_of(ours)]) == 1

    assert can_talk(ours, theirs)
    assert not can_talk(stranger_near, stranger_far)


def test_a_member_that_somebody_else_stands_in_for_is_missed(stack: ExitStack) -> None:
    first, second, stranger = Member(stack), Member(stack), Member(stack)
    near, far = stranger.connect(first)
    mine = first.mesh(second)
    mine.close_ports()

    assert mine.keep([ends_of()]) == 0

    assert not can_talk(near, far)


def test_a_port_that_was_closed_takes_nobody_and_keeps_whom_it_has(stack: ExitStack) -> None:
    first, second = Member(stack), Member(stack)
    near, far = second.connect(first)

    first.mesh(second).close_ports()

    with pytest.raises(TimeoutError):
        socket.create_connection(first.listener.getsockname(), timeout=0.3)
    assert can_talk(near, far)
    assert can_talk(far, near)


def test_the_end_of_a_group_shuts_down_its_connections_alone(stack: ExitStack) -> None:
    first, second, elsewhere, other = Member(stack), Member(stack), Member(stack), Member(stack)
    ours, untouched = second.connect(first), other.connect(elsewhere)
    mesh = first.mesh(second)
    mesh.close_ports()

    mesh.shut_down()

    assert not can_talk(*ours)
    assert can_talk(*untouched)
