"""The socket that counts what it accepts, where several processes have it: one connection at a time."""

import asyncio
import socket
from contextlib import ExitStack, closing

import pytest

from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import HttpLimits
from pliant.entry.server.http.sockets import CountingSocket


def listening(stack: ExitStack, *, takes_turns: bool) -> CountingSocket:
    sock = stack.enter_context(closing(CountingSocket(socket.AF_INET, socket.SOCK_STREAM)))
    sock.counts = ConnectionCounts(HttpLimits())
    sock.takes_turns = takes_turns
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    sock.setblocking(False)
    return sock


async def taken_at_once(sock: CountingSocket, stack: ExitStack) -> int:
    """Take connections as asyncio does: until there is none, it is told. Return how many were there."""
    num = 0
    while True:
        try:
            stack.enter_context(closing(sock.accept()[0]))
        except BlockingIOError:
            return num
        num += 1


@pytest.mark.parametrize(("takes_turns", "turns"), [(False, [4, 0]), (True, [1, 1, 1, 1, 0])])
def test_of_those_who_wait_one_is_taken_where_others_take_them_too(takes_turns: bool, turns: list[int]) -> None:
    with ExitStack() as stack:
        sock = listening(stack, takes_turns=takes_turns)
        for _ in range(4):
            stack.enter_context(closing(socket.create_connection(sock.getsockname(), timeout=30)))
        assert [asyncio.run(taken_at_once(sock, stack)) for _ in turns] == turns


def test_a_copy_takes_turns_as_well() -> None:
    with ExitStack() as stack:
        copy = stack.enter_context(closing(listening(stack, takes_turns=True).dup()))
        stack.enter_context(closing(socket.create_connection(copy.getsockname(), timeout=30)))
        assert [asyncio.run(taken_at_once(copy, stack)) for _ in range(2)] == [1, 0]
