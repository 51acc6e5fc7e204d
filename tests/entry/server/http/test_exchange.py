"""What becomes of an application's answers on the wire, and what it hears of the request."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import h11
import pytest
import uvicorn
from uvicorn.server import ServerState

from pliant.entry.server.http.answer import encode_answer
from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import HttpLimits
from pliant.entry.server.http.protocol import BoundedProtocol

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]
SHORT = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
STREAM = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}
OK = {"type": "http.response.body", "body": b"ok"}


class Wire(asyncio.Transport):
    """The other end of a connection: every write apart."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_closed = False
        self.was_ended = False
        """Closed before the client hung up."""
        self.is_paused = False

    @property
    def sent(self) -> bytes:
        return b"".join(self.writes)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "socket" else default

    def fileno(self) -> int:
        return 7

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 7312)

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 50_000)

    def write(self, data: Any) -> None:
        assert not self.is_closed, "nothing is written after the end"
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def play(app: App, *pieces: bytes) -> Wire:
    """Let an application answer what is sent by a client that hangs up then; return what came of it."""

    async def run() -> Wire:
        wire, counts, state = Wire(), ConnectionCounts(HttpLimits()), ServerState()
        loop = asyncio.get_running_loop()
        counts.admit("127.0.0.1", 7, lambda: None, loop.time())
        config = uvicorn.Config(cast(Any, app), interface="asgi3", log_config=None, proxy_headers=False, ws="none")
        config.load()
        protocol = BoundedProtocol(config, state, {}, loop, counts=counts)
        protocol.connection_made(wire)
        for piece in pieces:
            protocol.data_received(piece)
            for _ in range(10):
                await asyncio.sleep(0)
        wire.was_ended = wire.is_closed
        protocol.connection_lost(None)
        await asyncio.gather(*state.tasks)
        return wire

    return asyncio.run(run())


def says(*messages: dict[str, Any]) -> App:
    async def app(_scope: object, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return app


def read(sent: bytes, method: str = "GET") -> tuple[int, dict[bytes, bytes], bytes, bool]:
    """Return status, headers and body of an answer as h11 reads them, and whether the connection goes on."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(sent)
    head, body = client.next_event(), b""
    assert isinstance(head, h11.Response)
    while (event := client.next_event()) is not h11.NEED_DATA:
        if isinstance(event, h11.Data):
            body += bytes(event.data)
        else:
            break
    return head.status_code, dict(head.headers), body, client.their_state is h11.DONE


def test_an_answer_of_a_known_length_goes_out_with_one_write() -> None:
    wire = play(says(SHORT, OK), GET)
    assert len(wire.writes) == 1
    assert read(wire.sent)[2:] == (b"ok", True)


def test_the_head_of_a_stream_goes_out_before_its_body() -> None:
    wire = play(says(STREAM, {**OK, "more_body": True}, {**OK, "body": b""}), GET)
    assert wire.writes[0].endswith(b"\r\n\r\n")
    assert read(wire.sent)[2:] == (b"ok", True)


def test_a_client_of_1_0_gets_a_stream_up_to_the_end_of_the_connection() -> None:
    wire = play(says(STREAM, OK), b"GET / HTTP/1.0\r\n\r\n")
    assert b"transfer-encoding" not in wire.sent
    assert b"connection: close\r\n" in wire.sent
    assert wire.sent.endswith(b"\r\n\r\nok")
    assert wire.was_ended


@pytest.mark.parametrize("start", [SHORT, STREAM], ids=["known length", "stream"])
def test_head_gets_no_body_and_the_connection_goes_on(start: dict[str, Any]) -> None:
    wire = play(says(start, OK), b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", GET)
    first, _, second = wire.sent.partition(b"\r\n\r\n")
    assert read(first + b"\r\n\r\n", "HEAD")[2:] == (b"", True)
    assert read(second)[2:] == (b"ok", True)


@pytest.mark.parametrize("request_line", [GET, GET.replace(b"Host", b"Connection: close\r\nHost")])
@pytest.mark.parametrize("header", [[], [(b"Connection", b"Close")]], ids=["keeps", "closes"])
def test_a_connection_is_closed_if_one_side_wants_it_and_the_answer_says_so(
    request_line: bytes, header: list[tuple[bytes, bytes]]
) -> None:
    wire = play(says({**SHORT, "headers": [*SHORT["headers"], *header]}, OK), request_line)  # type: ignore[misc]
    closes = bool(header) or b"Connection" in request_line
    assert (b"connection: close\r\n" in wire.sent) is closes
    assert wire.was_ended is closes


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([{**SHORT, "headers": [(b"a", b"b\r\nc: d")]}], id="a header that becomes two"),
        pytest.param([{**SHORT, "headers": [(b"a\r\nb", b"c")]}], id="a name that becomes two"),
        pytest.param([{**SHORT, "headers": [(b"a", b"b\0")]}], id="NUL"),
        pytest.param([{**SHORT, "headers": [(b"a b", b"c")]}], id="a space in a name"),
        pytest.param([{**SHORT, "headers": [(b"a", b"b\nc")]}], id="a bare LF"),
        pytest.param([{**SHORT, "headers": [(b"content-length", b"x")]}], id="a length that is none"),
        pytest.param([SHORT, {**OK, "body": b"too long"}], id="more bytes than were promised"),
        pytest.param([SHORT, {**OK, "body": b"x"}], id="fewer bytes than were promised"),
        pytest.param([OK], id="a body without a head"),
        pytest.param([SHORT], id="a head without a body"),
        pytest.param([], id="nothing"),
    ],
)
def test_an_application_at_fault_is_answered_for_with_500(
    messages: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    wire = play(says(*messages), GET)
    status, headers, body, _ = read(wire.sent)
    assert (status, body, headers[b"connection"]) == (500, b"Internal Server Error", b"close")
    assert caplog.records


@pytest.mark.parametrize("messages", [[STREAM], [STREAM, {**OK, "more_body": True}]])
def test_a_stream_that_ends_in_the_middle_is_cut_off(
    messages: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    wire = play(says(*messages), GET)
    assert wire.was_ended
    assert not wire.sent.endswith(b"0\r\n\r\n")
    assert caplog.records


def test_the_body_is_asked_for_when_the_application_wants_it() -> None:
    async def app(_scope: object, receive: Receive, send: Send) -> None:
        message = await receive()
        await send(SHORT)
        await send({**OK, "body": message["body"]})

    wire = play(app, b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", b"ab")
    assert wire.writes[0] == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert read(wire.writes[1])[2] == b"ab"


def test_a_connection_ends_whose_body_was_not_asked_for_since_nobody_knows_what_comes_next() -> None:
    hidden = GET.replace(b"GET /", b"GET /hidden")
    wire = play(
        says(SHORT, OK), b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", hidden
    )
    assert wire.sent.count(b"HTTP/1.1 200 OK") == 1
    assert b"connection: close\r\n" in wire.sent
    assert wire.was_ended


def test_an_application_hears_the_end_of_the_body_once_and_then_that_the_client_has_gone() -> None:
    heard: list[dict[str, Any]] = []

    async def app(_scope: object, receive: Receive, send: Send) -> None:
        while not heard or heard[-1]["type"] != "http.disconnect":
            heard.append(await receive())

    play(app, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab", b"cd")
    assert heard == [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"cd", "more_body": False},
        {"type": "http.disconnect"},
    ]


def test_what_is_sent_ahead_waits_and_very_much_of_it_stops_the_reading() -> None:
    ready = asyncio.Event()

    async def app(_scope: object, receive: Receive, send: Send) -> None:
        await ready.wait()
        await send(SHORT)
        await send(OK)

    async def run() -> None:
        wire, counts, loop = Wire(), ConnectionCounts(HttpLimits()), asyncio.get_running_loop()
        counts.admit("127.0.0.1", 7, lambda: None, loop.time())
        config = uvicorn.Config(cast(Any, app), interface="asgi3", log_config=None, proxy_headers=False, ws="none")
        config.load()
        protocol = BoundedProtocol(config, ServerState(), {}, loop, counts=counts)
        protocol.connection_made(wire)
        protocol.data_received(GET * 10)
        await asyncio.sleep(0)
        seen = [wire.is_paused]
        protocol.data_received(GET * 5000)
        seen.append(wire.is_paused)
        ready.set()
        while wire.sent.count(b"ok") < 5010:
            await asyncio.sleep(0)
        assert [*seen, wire.is_paused] == [False, True, False]
        protocol.connection_lost(None)

    asyncio.run(run())


def test_an_answer_to_what_could_not_be_read_has_a_length() -> None:
    answer = encode_answer(400, [(b"content-length", b"3")], None, keeps_alive=False)
    assert (answer.num_body_bytes, answer.is_chunked, answer.keeps_alive) == (3, False, False)
    assert answer.data == b"HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\nconnection: close\r\n\r\n"
