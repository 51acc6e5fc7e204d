"""What raw sockets send to a real listener, and how long they may take for it."""

import asyncio
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send
from websockets.sync.client import connect

from pliant.entry.server.http.limits import HttpLimits, limits_for
from pliant.entry.server.listener import Listener, open_listener
from pliant.entry.server.settings import read_settings

PATIENT = HttpLimits()
HASTY = HttpLimits(head_s=0.3, body_window_s=0.3, body_bytes_per_s=100, idle_s=0.3, stalled_write_s=0.5)
"""Times that a test can wait for; whoever keeps to them must not have to be quicker than the machine under load."""
BIG = 64 << 20
WS_MAX_SIZE = 1 << 20
OK = b"HTTP/1.1 200 OK"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer how long the body was; `/big` and `/whole` with much, `/never` not at all, a WebSocket with its frames."""
    if scope["type"] == "websocket":
        assert all(name == name.lower() for name, _ in scope["headers"]), "as ASGI has it"
        await _echo(receive, send)
        return
    request = Request(scope, receive)
    if request.url.path == "/big":
        chunks = (b"x" * (1 << 16) for _ in range(BIG >> 16))

        async def stream() -> Any:
            for chunk in chunks:
                yield chunk

        await StreamingResponse(stream())(scope, receive, send)
        return
    if request.url.path == "/whole":
        await PlainTextResponse(b"x" * BIG)(scope, receive, send)
        return
    if request.url.path == "/never":
        while not await request.is_disconnected():
            await asyncio.sleep(0.01)
        return
    try:
        body = await request.body()
    except ClientDisconnect:
        return
    await PlainTextResponse(f"{len(body)} bytes")(scope, receive, send)


async def _echo(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


@contextmanager
def served(home: Path, limits: HttpLimits, *args: str) -> Iterator[Listener]:
    settings = read_settings(["--home", str(home), "--port", "0", *args], {})
    home.mkdir(exist_ok=True)
    listener = open_listener(settings, now=time.time(), limits=limits)
    server = uvicorn.Server(listener.config(app, lifespan="off", ws_max_size=WS_MAX_SIZE, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener.sock])), daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield listener
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
    assert not thread.is_alive()
    assert len(listener.sock.counts) == 0, "every connection that was counted is counted no longer"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    with served(tmp_path_factory.mktemp("home"), PATIENT) as listener:
        yield listener


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    with served(tmp_path_factory.mktemp("home"), HASTY) as listener:
        yield listener


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.005)


def opened(listener: Listener) -> socket.socket:
    return socket.create_connection(listener.sock.getsockname()[:2], timeout=20)


def rest_of(sock: socket.socket) -> bytes:
    """Return what comes until the server ends the connection."""
    found = b""
    try:
        while chunk := sock.recv(1 << 16):
            found += chunk
    except ConnectionResetError:
        pass
    return found


def answer_of(sock: socket.socket) -> bytes:
    """Return one answer whose body is short."""
    found = b""
    while b"bytes" not in found.partition(b"\r\n\r\n")[2]:
        chunk = sock.recv(1 << 16)
        assert chunk, found
        found += chunk
    return found


AMBIGUOUS = {
    "both lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\nabc",
    "a list of lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc",
    "bare LF": b"GET / HTTP/1.1\nHost: x\n\n",
    "one bare LF": b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "chunked in 1.0": b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
}


@pytest.mark.parametrize("sent", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_head_that_can_be_read_in_two_ways_is_refused_and_nothing_after_it_is_read(
    patient: Listener, sent: bytes
) -> None:
    with opened(patient) as sock:
        sock.sendall(sent + GET)
        said = rest_of(sock)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1, "a request that hides behind another one is not answered"
    assert b"connection: close" in said.lower()
    assert b"x-content-type-options: nosniff" in said.lower()


def test_it_is_refused_also_as_the_second_of_two(patient: Listener) -> None:
    with opened(patient) as sock:
        sock.sendall(GET + AMBIGUOUS["both lengths"] + GET)
        said = rest_of(sock)
    assert said.count(OK) == 1
    assert said.count(b"HTTP/1.1 400 ") == 1
    assert said.count(b"HTTP/1.1 ") == 2


def test_a_long_head_is_431_also_if_it_comes_at_once(patient: Listener) -> None:
    for count, end in ((70_000, b"\r\n\r\n"), (200_000, b"\r\n\r\n"), (70_000, b"")):
        with opened(patient) as sock:
            with suppress(ConnectionError):  # the answer may come, and the end, while it is still being sent
                sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * count + end)
            assert rest_of(sock)[:13] in (b"HTTP/1.1 431 ", b"")
    with opened(patient) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 50_000 + b"\r\n\r\n")
        assert answer_of(sock).startswith(OK)


def test_ordinary_requests_are_answered_one_after_another_and_in_a_row(patient: Listener) -> None:
    with opened(patient) as sock:
        for _ in range(3):
            sock.sendall(GET)
            assert answer_of(sock).startswith(OK)
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        assert b"3 bytes" in answer_of(sock)
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab\n\n")
        assert b"4 bytes" in answer_of(sock), "a body may hold what a head may not"
        sock.sendall(GET * 3)
        found = b""
        while found.count(b"0 bytes") < 3:
            found += sock.recv(1 << 16)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo"], ids=["nothing", "half a head"])
def test_a_head_has_to_be_whole_in_time(hasty: Listener, sent: bytes) -> None:
    with opened(hasty) as sock:
        sock.sendall(sent)
        said = rest_of(sock)
    assert said.startswith(b"HTTP/1.1 408 ") if sent else said == b""


def test_a_head_that_drips_is_late_all_the_same(hasty: Listener) -> None:
    with opened(hasty) as sock:
        sock.settimeout(0.02)
        deadline = time.monotonic() + 20
        said = None
        while said is None:
            assert time.monotonic() < deadline
            try:
                sock.sendall(b"A")
                said = sock.recv(100)
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                said = b""
    assert said[:13] in (b"HTTP/1.1 408 ", b"")


def test_a_body_that_does_not_come_is_ended(hasty: Listener) -> None:
    with opened(hasty) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
        said = rest_of(sock)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"less than 100 bytes a second" in said


def test_a_body_that_nobody_reads_any_more_is_ended_too(hasty: Listener) -> None:
    with opened(hasty) as sock:
        sock.sendall(b"POST /never HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc")
        assert rest_of(sock).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", [b"/big", b"/whole"], ids=["on the way", "its last rest"])
@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"], ids=["kept alive", "closed"])
def test_a_receiver_that_does_not_read_is_ended(hasty: Listener, path: bytes, header: bytes) -> None:
    with opened(hasty) as sock:
        sock.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n")
        assert sock.recv(1), "it is being answered"
        wait_for(lambda: len(hasty.sock.counts) == 0)
        assert 0 < len(rest_of(sock)) < BIG


def test_a_connection_that_nobody_uses_is_closed(hasty: Listener) -> None:
    with opened(hasty) as sock:
        sock.sendall(GET)
        answer_of(sock)
        assert rest_of(sock) == b""


def test_a_handshake_has_to_be_done_in_time(tmp_path: Path) -> None:
    with served(tmp_path / "home", HASTY, "--tls") as listener:
        with opened(listener) as silent, opened(listener) as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01")
            assert rest_of(silent) == b""
            assert rest_of(half) == b""
        context = ssl.create_default_context(cafile=str(listener.trust.certificate))
        context.check_hostname = False
        with opened(listener) as plain, context.wrap_socket(plain) as sock:
            assert rest_of(sock) == b""


def test_over_tls_the_same_is_refused_with_the_header_of_tls(tmp_path: Path) -> None:
    with served(tmp_path / "home", PATIENT, "--tls") as listener:
        context = ssl.create_default_context(cafile=str(listener.trust.certificate))
        context.check_hostname = False
        with opened(listener) as plain, context.wrap_socket(plain) as sock:
            sock.sendall(AMBIGUOUS["bare LF"])
            said = rest_of(sock).lower()
    assert said.startswith(b"http/1.1 400 ")
    assert b"strict-transport-security: max-age=31536000" in said


def test_half_open_connections_keep_nobody_out_and_end_nothing_that_works(tmp_path: Path) -> None:
    limits = HttpLimits(total=40, per_loopback=20, head_s=60)
    with ExitStack() as stack:
        listener = stack.enter_context(served(tmp_path / "home", limits))
        host, port = listener.sock.getsockname()[:2]
        links = [stack.enter_context(connect(f"ws://{host}:{port}/")) for _ in range(15)]
        at_work = stack.enter_context(opened(listener))
        at_work.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na")
        wait_for(lambda: len(listener.sock.counts) == 16 and listener.sock.counts.num_waiting() == 0)
        for _ in range(300):
            half_open = stack.enter_context(opened(listener))
            half_open.sendall(b"GET / HT")
        with opened(listener) as sock:
            sock.sendall(GET)
            assert answer_of(sock).startswith(OK)
        at_work.sendall(b"bc")
        assert b"3 bytes" in answer_of(at_work)
        for number, link in enumerate(links):
            link.send(f"still there {number}")
            assert link.recv(timeout=20) == f"still there {number}"
        assert len(listener.sock.counts) <= limits.total


def test_where_all_are_at_work_a_new_one_is_refused_and_one_that_ends_makes_room(tmp_path: Path) -> None:
    limits = HttpLimits(per_loopback=3)
    with ExitStack() as stack:
        listener = stack.enter_context(served(tmp_path / "home", limits))
        at_work = [stack.enter_context(opened(listener)) for _ in range(3)]
        for sock in at_work:
            sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na")
        wait_for(lambda: len(listener.sock.counts) == 3 and listener.sock.counts.num_waiting() == 0)
        with suppress(BrokenPipeError, ConnectionResetError), opened(listener) as refused:  # perhaps while it connects
            assert rest_of(refused) == b""
        assert len(listener.sock.counts) == 3
        at_work[0].close()
        wait_for(lambda: len(listener.sock.counts) == 2)
        with opened(listener) as sock:
            sock.sendall(GET)
            assert answer_of(sock).startswith(OK)


@pytest.mark.parametrize("open_files", [64, 1024, 20_000, 1 << 20])
def test_connections_leave_half_of_the_open_files_to_the_rest(open_files: int) -> None:
    limits = limits_for(open_files)
    assert limits.per_address <= limits.per_loopback <= limits.total <= max(32, open_files // 2)


@pytest.mark.parametrize(("soft", "allowed"), [(256, 4096), (4096, 4096)])
def test_a_server_lets_itself_open_as_many_files_as_the_system_does(soft: int, allowed: int) -> None:
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, 4096));"
        "from pliant.entry.server.http.limits import allow_open_files;"
        "print(allow_open_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [str(allowed), str(allowed)]


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
CUT_OFF = r"reset|Broken pipe"
PART, TEXT, PING = 0x00, 0x01, 0x09


def frame(kind: int, data: bytes = b"", *, is_last: bool = True) -> bytes:
    """Return a frame of at most 125 bytes as a client sends it, masked with zeros."""
    return bytes((kind | (0x80 if is_last else 0), 0x80 | len(data))) + bytes(4) + data


def upgraded(listener: Listener) -> socket.socket:
    sock = opened(listener)
    sock.sendall(UPGRADE)
    assert sock.recv(1 << 16).startswith(b"HTTP/1.1 101")
    return sock


def flood(sock: socket.socket, data: bytes, num_bytes: int = BIG) -> None:
    """Send it again and again, so many bytes in all."""
    for _ in range(num_bytes // len(data)):
        sock.sendall(data)


@pytest.mark.parametrize(
    ("first", "then", "num_bytes"),
    [
        pytest.param(b"", frame(PING, bytes(125)) * 500, BIG, id="pings whose answers nobody reads"),
        pytest.param(
            frame(TEXT, is_last=False), frame(PART, is_last=False) * 10_000, 8 << 20, id="parts of one message"
        ),
    ],
)
def test_a_websocket_that_would_fill_the_memory_is_cut_off(
    patient: Listener, first: bytes, then: bytes, num_bytes: int
) -> None:
    with upgraded(patient) as sock:
        sock.sendall(first)
        with pytest.raises(OSError, match=CUT_OFF):
            flood(sock, then, num_bytes)


def test_a_websocket_that_is_read_is_not_cut_off_however_much_comes(patient: Listener) -> None:
    host, port = patient.sock.getsockname()[:2]
    with connect(f"ws://{host}:{port}", compression=None) as link:
        pongs = [link.ping() for _ in range(2000)]
        assert all(pong.wait(20) for pong in pongs)
        link.send("x" for _ in range(1000))
        assert link.recv(timeout=20) == "x" * 1000


def test_a_websocket_whose_client_reads_nothing_is_ended(hasty: Listener) -> None:
    with upgraded(hasty) as sock, pytest.raises(OSError, match=CUT_OFF):
        flood(sock, frame(TEXT, b"x" * 125) * 500)
    wait_for(lambda: len(hasty.sock.counts) == 0)
