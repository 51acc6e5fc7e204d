"""Whatever bytes come to the gateway's port: well-formed answers or a closed connection, and nothing gets mixed up.

The whole way from bytes to bytes is played without a socket: the real protocol of the port, the real gateway, and a
kernel that answers what it is asked. Every request says in its body who sent it and which it is.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import h11
import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.gateway.played import Callers, Switches, endpoint, version
from uvicorn.server import ServerState

from pliant.core.job import TaskId
from pliant.core.serving import Serve
from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import HttpLimits
from pliant.entry.server.http.protocol import BoundedProtocol
from pliant.serve.gateway.gateway import Gateway
from pliant.serve.gateway.kernel_link import KernelLink
from pliant.serve.gateway.link_memory import LinkMemory
from pliant.serve.gateway.version_service import ServiceOwner
from pliant.serve.protocol.frames import KernelFrameKind, KernelFrameReader, encode_frame

INFER = b"/v2/models/digits/infer"
MAX_BODY = 2000
MOST_TURNS = 2000
"""Of the event loop, until all is done that will be."""


class KernelTransport(asyncio.Transport):
    """The kernel's end: it answers every request with its body, and remembers it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []
        self._reader = KernelFrameReader()
        self.link: KernelLink | None = None

    def write(self, data: Any) -> None:
        for frame in self._reader.feed(bytes(data)):
            if frame.kind is KernelFrameKind.REQUEST:
                self.asked.append(bytes(frame.body))
                header = {"id": frame.header["id"], "status": 200, "type": "text/plain"}
                answer = encode_frame(KernelFrameKind.RESULT, header, b"<" + bytes(frame.body) + b">")
                assert self.link is not None
                asyncio.get_running_loop().call_soon(self.link.data_received, answer)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        return


class ClientTransport(asyncio.Transport):
    """The client's end: it reads all at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

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
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return


@dataclass(slots=True)
class Heard:
    """What came of a stream of bytes."""

    answers: list[tuple[int, bytes]] = field(default_factory=list)
    """Status and body of those that are whole."""
    asked: list[bytes] = field(default_factory=list)
    """What reached the kernel."""
    is_closed: bool = False


class Faults(logging.Handler):
    """Collects what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def play(loop: asyncio.AbstractEventLoop, pieces: list[bytes], methods: list[bytes]) -> Heard:
    """Let a client send these pieces and hang up; what goes wrong within the gateway is an error of the test."""
    faults, raised = Faults(), list[dict[str, Any]]()
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "pliant")]
    for logger in loggers:
        logger.addHandler(faults)
    loop.set_exception_handler(lambda _, context: raised.append(context))
    try:
        heard = loop.run_until_complete(_play(pieces, methods))
    finally:
        for logger in loggers:
            logger.removeHandler(faults)
    assert not raised
    assert not faults.lines
    return heard


async def _play(pieces: list[bytes], methods: list[bytes]) -> Heard:
    owner = ServiceOwner(clock=lambda: 1000.0, notify=lambda _: None, forget=lambda _: None, urge=lambda: None)
    gateway = Gateway(callers=Callers(), switch=Switches(), owner=owner)
    gateway.apply(Serve(endpoints=(endpoint(version(), max_body_bytes=MAX_BODY, batch_size=64),)))
    kernel = _attach(gateway)
    counts = ConnectionCounts(HttpLimits())
    config = uvicorn.Config(gateway.app, interface="asgi3", log_config=None, access_log=False, ws="none")
    config.load()
    assert counts.admit("127.0.0.1", 7, lambda: None, asyncio.get_running_loop().time()) is not None
    state, transport = ServerState(), ClientTransport()
    protocol = BoundedProtocol(config, state, {}, asyncio.get_running_loop(), counts=counts)
    protocol.connection_made(transport)
    for piece in pieces:
        if transport.is_closed:
            break
        protocol.data_received(piece)
        await asyncio.sleep(0)
    await _settle(state, transport)
    heard = Heard(answers=read_answers(transport.sent, methods), asked=kernel.asked, is_closed=transport.is_closed)
    protocol.connection_lost(None)
    await _settle(state, transport)
    for task in state.tasks:
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    assert gateway._admission.num_requests == 0
    assert gateway._admission.num_bytes == 0
    return heard


def _attach(gateway: Gateway) -> KernelTransport:
    transport = KernelTransport()
    transport.link = link = KernelLink(gateway._kernels, 1000.0, LinkMemory())
    link.task_id = TaskId("job-9.0")
    link.connection_made(transport)
    service = gateway._table.find_job(link.task_id, "token of job-9")
    assert service is not None
    service.attach(link)
    link.data_received(encode_frame(KernelFrameKind.READY, {}))
    return transport


async def _settle(state: ServerState, transport: ClientTransport) -> None:
    """Let the loop turn until nothing changes any more: who waits for more of a body waits for ever."""
    quiet, before = 0, b""
    for _ in range(MOST_TURNS):
        await asyncio.sleep(0)
        quiet = quiet + 1 if transport.sent == before else 0
        before = transport.sent
        if quiet > 30 or (not state.tasks and quiet > 5):
            return
    pytest.fail("the gateway never came to rest")


def read_answers(sent: bytes, methods: list[bytes]) -> list[tuple[int, bytes]]:
    """Return the answers in what a client received; raises if they are no HTTP.

    Args:
        sent: what was received.
        methods: those of the requests, as far as they are known; GET of others.
    """
    found: list[tuple[int, bytes]] = []
    while sent:
        client = h11.Connection(h11.CLIENT)
        method = methods[len(found)] if len(found) < len(methods) else b"GET"
        client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(sent)
        status, body = 0, b""
        while True:
            event = client.next_event()
            if event is h11.NEED_DATA:
                return found  # it was cut off: the connection is closed, or the answer goes on
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                assert isinstance(event, h11.InformationalResponse), event
        found.append((status, body))
        sent = client.trailing_data[0]
    return found


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, and what must come of it."""

    head: list[bytes]
    body: bytes
    statuses: set[int]
    """One of these is the answer's."""
    answer: bytes | None
    """Its body, if it is known."""

    def encode(self, chunk: int = 0) -> bytes:
        """Return its bytes; chunked, if a size of chunks is given."""
        if not chunk:
            lines = [*self.head, b"Content-Length: %d" % len(self.body)]
            return b"\r\n".join(lines) + b"\r\n\r\n" + self.body
        chunks = [self.body[at : at + chunk] for at in range(0, len(self.body), chunk)]
        framed = b"".join(b"%x;a=b\r\n%s\r\n" % (len(one), one) for one in chunks)
        return (
            b"\r\n".join([*self.head, b"Transfer-Encoding: chunked"]) + b"\r\n\r\n" + framed + b"0\r\nTrail: er\r\n\r\n"
        )


HIDDEN = b"POST %s HTTP/1.1\r\nHost: x\r\nX-Auth-Token: ada\r\nContent-Length: 8\r\n\r\nsmuggled" % INFER
_TOKENS = {
    b"Authorization: Bearer ada": 200,
    b"X-Auth-Token: ada": 200,
    b"X-User-Token: root": 200,
    b"Authorization: bearer  ada ": 200,
    b"X-Auth-Token: bob": 404,
    b"X-Auth-Token: viewer": 403,
    b"X-Auth-Token: stranger": 401,
    b"Authorization: Basic YWRhOmFkYQ==": 401,
    b"Cookie: token=ada": 401,
    b"X-Auth-Token:": 401,
}
_ODD_PATHS = {
    b"/v2/models/../models/digits/infer": 404,
    b"/v2/models/digits%2Finfer": 200,
    b"/v2/models/digits%00/infer": 404,
    b"/v2//models/digits/infer": 404,
    b"//v2/models/digits/infer": 200,
    b"/v2/models/digits/infer?token=ada": 200,
    b"/v2/models/digits/infer/..": 404,
    b"/v2/models/%64igits/infer": 200,
    b"/v2/models/" + b"x" * 3000 + b"/infer": 404,
    b"/v2/models/digits/versions/1/infer": 200,
    b"/v2/models/digits/versions/%31%30/infer": 404,
    b"/dlim/v1/inference/digits": 200,
    b"/dlim/v1/inference/%ff%fe": 404,
}


@st.composite
def requests(draw: st.DrawFn, number: int) -> Sent:
    """One request of many kinds."""
    (token, status), (path, found) = (draw(st.sampled_from(sorted(of.items()))) for of in (_TOKENS, _PATHS))
    body = draw(st.sampled_from([b"", b"%d" % number, b"%d " % number + HIDDEN, b"%d " % number + b"x" * 1500]))
    if draw(st.integers(0, 9)) == 0:
        body = b"%d" % number + b"y" * MAX_BODY
    statuses = {status, found} - {200} or {413 if len(body) > MAX_BODY else 200}
    return Sent(
        [b"POST %s HTTP/1.1" % path, b"Host: x", token],
        body,
        statuses,
        b"<" + body + b">" if statuses == {200} else None,
    )


_PATHS = {INFER: 200, **_ODD_PATHS}


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Sent], list[int]]:
    """Requests in a row, and the sizes of their chunks."""
    num = draw(st.integers(1, 4))
    return [draw(requests(number)) for number in range(num)], draw(
        st.lists(st.sampled_from([0, 0, 1, 7, 5000]), min_size=num, max_size=num)
    )


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at, turn = [], 0, 0
    while at < len(data):
        pieces.append(data[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    return pieces


def test_the_stage_lets_good_requests_through_and_shows_what_is_hidden_if_it_is_let_loose(
    loop: asyncio.AbstractEventLoop,
) -> None:
    good = Sent([b"POST %s HTTP/1.1" % INFER, b"Host: x", b"X-Auth-Token: ada"], b"0 " + HIDDEN, {200}, None)

    heard = play(loop, [good.encode(), HIDDEN, good.encode(chunk=3)], [b"POST"] * 3)

    assert heard.asked == [good.body, b"smuggled", good.body]
    assert heard.answers == [(200, b"<" + one + b">") for one in heard.asked]


@given(streams(), st.lists(st.integers(1, 3000), min_size=1, max_size=4))
@settings(max_examples=80)
def test_every_request_of_a_row_gets_its_own_answer_and_what_a_body_hides_is_none(
    loop: asyncio.AbstractEventLoop, stream: tuple[list[Sent], list[int]], sizes: list[int]
) -> None:
    sent, chunks = stream
    data = b"".join(one.encode(chunk) for one, chunk in zip(sent, chunks, strict=True))

    heard = play(loop, cut(data, [max(size, len(data) // 300) for size in sizes]), [b"POST"] * len(sent))

    for (status, body), one in zip(heard.answers, sent, strict=False):
        assert status in one.statuses
        assert one.answer is None or body == one.answer
    assert len(heard.answers) <= len(sent)
    if len(heard.answers) < len(sent):  # a refusal of a body that was not read ends the connection
        assert heard.is_closed
        assert heard.answers[-1][0] >= 400
    assert b"smuggled" not in heard.asked
    assert [b"<" + one + b">" for one in heard.asked] == [body for status, body in heard.answers if status == 200]


_MUTATIONS = st.one_of(
    st.tuples(st.just("replace"), st.integers(0, 5000), st.binary(min_size=1, max_size=4)),
    st.tuples(st.just("delete"), st.integers(0, 5000), st.binary(min_size=1, max_size=20)),
    st.tuples(
        st.just("insert"),
        st.integers(0, 5000),
        st.sampled_from(
            [
                b"\r\n", b"\n", b"\r", b"\0", b"\r\n ", b" ", b":", b"\xff" * 3, b"0\r\n\r\n", b"Content-Length: 5\r\n",
                b"\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: identity\r\n", b"Content-Length: +1\r\n",
                b"Content-Length: 99999999999999999999999999\r\n", b"Connection: close\r\n",
                b"Expect: 100-continue\r\n",
                b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"Content-Encoding: gzip\r\n", b"HTTP/1.0\r\n",
                b"ffffffff\r\n",
                b"Inference-Header-Content-Length: 1\r\n", b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"X: " + b"z" * 70_000 + b"\r\n",
            ]
        ),
    ),
)  # fmt: skip


def mutate(data: bytes, mutations: list[tuple[str, int, bytes]]) -> bytes:
    for how, where, what in mutations:
        at = where % (len(data) + 1)
        left = {"replace": at + len(what), "delete": at + len(what), "insert": at}[how]
        data = data[:at] + (b"" if how == "delete" else what) + data[left:]
    return data


@given(streams(), st.lists(_MUTATIONS, max_size=5), st.lists(st.integers(1, 3000), min_size=1, max_size=4))
@settings(max_examples=150)
def test_damaged_streams_are_answered_well_or_ended_and_answers_are_of_what_was_asked(
    loop: asyncio.AbstractEventLoop,
    stream: tuple[list[Sent], list[int]],
    mutations: list[tuple[str, int, bytes]],
    sizes: list[int],
) -> None:
    sent, chunks = stream
    data = mutate(b"".join(one.encode(chunk) for one, chunk in zip(sent, chunks, strict=True)), mutations)

    heard = play(loop, cut(data, [max(size, len(data) // 300) for size in sizes]), [])

    answered = [body for status, body in heard.answers if status == 200 and body.startswith(b"<")]
    assert answered == [b"<" + one + b">" for one in heard.asked][: len(answered)]
    assert all(status in (200, 400, 401, 403, 404, 405, 408, 413, 431, 501) for status, _ in heard.answers)


@given(
    st.lists(
        st.sampled_from(
            [HIDDEN.replace(b"X-Auth-Token: ada", b"X-Auth-Token: no"), b"\r\n", INFER, b"POST ", b"x: y\r\n"]
        )
        | st.binary(max_size=50),
        max_size=6,
    ),
    st.lists(_MUTATIONS, max_size=5),
    st.lists(st.integers(1, 500), min_size=1, max_size=4),
)
@settings(max_examples=80)
def test_nothing_reaches_a_kernel_without_a_token(
    loop: asyncio.AbstractEventLoop,
    pieces: list[bytes],
    mutations: list[tuple[str, int, bytes]],
    sizes: list[int],
) -> None:
    heard = play(loop, cut(mutate(b"".join(pieces), mutations), sizes), [])

    assert heard.asked == []
    assert all(status in (200, 400, 401, 404, 405, 408, 431) for status, _ in heard.answers)
