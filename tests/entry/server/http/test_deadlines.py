"""Who is ended when, over a clock that tests move: what is slow and legal goes on, however long it takes."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import HttpLimits
from pliant.entry.server.http.protocol import BoundedProtocol

LIMITS = HttpLimits()
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"


class Timer:
    """A call that is due later."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def cancel(self) -> None:
        self.act = None


class VirtualLoop:
    """What a protocol needs of an event loop. Applications never run: they are slow."""

    def __init__(self) -> None:
        self.now = 100.0
        self._due: list[tuple[float, int, Timer]] = []
        self._numbers = count()

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, act: Callable[[], None]) -> Timer:
        timer = Timer(act)
        heapq.heappush(self._due, (self.now + seconds, next(self._numbers), timer))
        return timer

    def create_task(self, coroutine: Coroutine[Any, Any, None]) -> "asyncio.Future[None]":
        coroutine.close()
        return cast("asyncio.Future[None]", Done())

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self._due and self._due[0][0] <= until:
            self.now, _, timer = heapq.heappop(self._due)
            if timer.act is not None:
                timer.act()
        self.now = until


class Done:
    """A task of which nobody hears again."""

    def add_done_callback(self, _: object) -> None:
        return


class VirtualTransport:
    """What a protocol needs of a transport."""

    def __init__(self) -> None:
        self.sent, self.ended, self.closing = b"", False, False

    def get_extra_info(self, name: str) -> Any:
        return self if name == "socket" else None

    def fileno(self) -> int:
        return 7

    def getsockname(self) -> tuple[str, int]:
        return ("10.0.0.9", 7311)

    def getpeername(self) -> tuple[str, int]:
        return ("10.0.0.1", 50_000)

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.ended = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Stage:
    """One connection from 10.0.0.1."""

    def __init__(self) -> None:
        self.loop, self.transport, self.counts = VirtualLoop(), VirtualTransport(), ConnectionCounts(LIMITS)
        self.counts.admit("10.0.0.1", 7, lambda: None, self.loop.time())
        protocol = partial(BoundedProtocol, counts=self.counts)
        config = uvicorn.Config(_no_app, http=cast(Any, protocol), log_config=None, timeout_keep_alive=30)
        config.load()
        self.protocol = protocol(config, ServerState(), {}, cast(asyncio.AbstractEventLoop, self.loop))
        self.protocol.connection_made(cast(asyncio.Transport, self.transport))

    def receive(self, data: bytes) -> None:
        self.protocol.data_received(data)

    def answer(self) -> None:
        """Let the application answer."""
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
        for message in (start, {"type": "http.response.body", "body": b"ok"}):
            assert self.protocol.exchange is not None
            sending = self.protocol.exchange.send(message)
            with pytest.raises(StopIteration):
                sending.send(None)

    def goes_on(self) -> bool:
        return not self.transport.closing


async def _no_app(scope: object, receive: object, send: object) -> None:
    return


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_an_upload_that_keeps_to_the_rate_lasts_for_hours(stage: Stage) -> None:
    stage.receive(POST)
    for _ in range(4 * 60):
        stage.receive(b"x" * 31_000)
        stage.protocol.flow.resume_reading()  # as an application does that reads it
        stage.loop.advance(LIMITS.body_window_s)
        assert stage.goes_on()


def test_an_upload_that_slows_down_is_ended_after_the_window_in_which_it_did(stage: Stage) -> None:
    stage.receive(POST)
    stage.receive(b"x" * 60_000)
    stage.loop.advance(LIMITS.body_window_s)
    assert stage.goes_on()
    stage.receive(b"x" * 30_000)
    stage.protocol.flow.resume_reading()
    stage.loop.advance(LIMITS.body_window_s)
    assert not stage.goes_on()
    assert stage.transport.sent.startswith(b"HTTP/1.1 408 ")


def test_who_waits_for_us_to_read_is_not_slow(stage: Stage) -> None:
    stage.receive(POST)
    stage.receive(b"x" * 70_000)
    assert stage.protocol.flow.read_paused
    stage.loop.advance(3600)
    assert stage.goes_on()


def test_who_waits_to_be_asked_for_the_body_is_not_slow(stage: Stage) -> None:
    stage.receive(POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
    stage.loop.advance(3600)
    assert stage.goes_on()


def test_an_answer_may_take_as_long_as_it_takes(stage: Stage) -> None:
    stage.receive(GET)
    stage.loop.advance(24 * 3600)
    assert stage.goes_on()
    stage.answer()
    assert stage.transport.sent.endswith(b"ok")


def test_every_head_has_its_own_time_from_its_first_byte(stage: Stage) -> None:
    for _ in range(3):
        stage.receive(GET[:5])
        stage.loop.advance(LIMITS.head_s - 1)
        stage.receive(GET[5:])
        assert stage.counts.num_waiting() == 0
        stage.loop.advance(60)
        stage.answer()
        assert stage.counts.num_waiting() == 1
        stage.loop.advance(LIMITS.idle_s - 1)
    assert stage.goes_on()
    stage.receive(GET[:5])
    for _ in range(9):
        stage.loop.advance(1)
        stage.receive(b"a")
    assert stage.goes_on()
    stage.loop.advance(1)
    assert not stage.goes_on()


def test_an_early_answer_does_not_free_the_body_of_its_rate(stage: Stage) -> None:
    stage.receive(POST)
    stage.answer()
    for _ in range(int(LIMITS.body_window_s)):
        stage.loop.advance(1)
        stage.receive(b"x")
    assert stage.transport.ended


def test_a_receiver_that_goes_on_reading_is_not_stalled(stage: Stage) -> None:
    stage.receive(GET)
    for _ in range(100):
        stage.protocol.pause_writing()
        stage.loop.advance(LIMITS.stalled_write_s - 1)
        stage.protocol.resume_writing()
    assert stage.goes_on()
    stage.protocol.pause_writing()
    stage.loop.advance(LIMITS.stalled_write_s)
    assert stage.transport.ended
