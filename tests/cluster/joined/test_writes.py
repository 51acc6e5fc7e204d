"""What other threads have for the connections of a loop."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from typing import TypeVarTuple

import pytest

from pliant.cluster.joined.writes import LoopWrites

Given = TypeVarTuple("Given")
_LIMIT_S = 10.0


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts how often another thread has woken it."""

    num_woken = 0

    def call_soon_threadsafe(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        self.num_woken += 1
        return super().call_soon_threadsafe(callback, *args, context=context)


@pytest.fixture
def loop() -> Iterator[CountingLoop]:
    loop = CountingLoop()
    yield loop
    loop.close()


def run_once(loop: CountingLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_a_loop_is_woken_once_for_all_that_waits_and_each_connection_has_its_bytes_in_order(
    loop: CountingLoop,
) -> None:
    sent: list[tuple[str, bytes]] = []
    writes = LoopWrites(loop)

    def to_a(data: bytes) -> None:
        sent.append(("a", data))

    def to_b(data: bytes) -> None:
        sent.append(("b", data))

    for number in range(3):
        writes.put(to_a, b"a%d" % number)
        writes.put(to_b, b"b%d" % number)
    assert (loop.num_woken, sent) == (1, [])
    run_once(loop)
    assert sent == [("a", b"a0a1a2"), ("b", b"b0b1b2")]
    writes.put(to_a, b"more")
    assert loop.num_woken == 2, "it is woken again for what comes later"
    run_once(loop)
    assert sent[2:] == [("a", b"more")]


def test_nothing_is_lost_of_what_several_threads_put_while_the_loop_sends(loop: CountingLoop) -> None:
    found: dict[int, bytearray] = {number: bytearray() for number in range(4)}
    writes = LoopWrites(loop)

    def put(number: int) -> None:
        send = found[number].extend
        for count in range(200):
            writes.put(send, bytes([count]))

    threads = [threading.Thread(target=put, args=(number,)) for number in found]
    for thread in threads:
        thread.start()

    def end_when_all_is_there() -> None:
        if all(len(one) == 200 for one in found.values()):
            loop.stop()
        else:
            loop.call_later(0.001, end_when_all_is_there)

    loop.call_soon(end_when_all_is_there)
    loop.call_later(_LIMIT_S, loop.stop)
    loop.run_forever()
    for thread in threads:
        thread.join(_LIMIT_S)
    assert list(found.values()) == 4 * [bytearray(range(200))]
