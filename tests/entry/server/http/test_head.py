"""Which heads and bodies are taken: fewer than h11 takes, and what is taken means the same to both."""

from dataclasses import dataclass

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.entry.server.http.body import ChunkedBody, PlainBody
from pliant.entry.server.http.head import BadRequest, RequestHead, find_end, read_head

MAX_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Found:
    """A request as a reader understands it."""

    method: str
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    is_whole: bool
    rest: bytes
    """What follows it, which is the next request."""


def read(data: bytes, sizes: list[int] | None = None) -> Found | None:
    """Return what Pliant reads; None if the head is not whole.

    Args:
        data: what is sent.
        sizes: of the pieces that it comes in.

    Raises:
        BadRequest: it is refused.
    """
    sent, at, seen, turn = b"", 0, 0, 0
    head: RequestHead | None = None
    reader: PlainBody | ChunkedBody = PlainBody(0)
    body = b""
    while len(sent) < len(data):
        size = len(data) if not sizes else sizes[turn % len(sizes)]
        sent, turn = data[: len(sent) + size], turn + 1
        if head is None:
            end = find_end(sent, 0, MAX_BYTES, seen)
            seen = len(sent)
            if end < 0:
                continue
            head, at = read_head(sent, 0, end), end + 4
            num = head.num_body_bytes
            reader = ChunkedBody(MAX_BYTES) if num is None else PlainBody(num)
        piece, at = reader.take(sent, at)
        body += piece
    if head is None:
        return None
    rest = sent[at:] if reader.is_whole else b""
    return Found(head.method, head.target, head.http_version, head.headers, body, reader.is_whole, rest)


def read_with_h11(data: bytes) -> Found | None:
    """Return what h11 reads; None if it has no whole head, or refuses it."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_BYTES)
    connection.receive_data(data)
    request, body, is_whole = None, b"", False
    try:
        while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                is_whole = True
                break
    except h11.RemoteProtocolError:
        return None
    if request is None:
        return None
    headers = [(bytes(name), bytes(value)) for name, value in request.headers]
    rest = connection.trailing_data[0] if is_whole else b""
    return Found(request.method.decode(), request.target, request.http_version.decode(), headers, body, is_whole, rest)


NAMES = [b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Expect", b"X", b"cOnTeNt-LeNgTh", b"Cookie"]
ODD_NAMES = [
    b"",
    b" X",
    b"X ",
    b"Content-Length\t",
    b"Transfer_Encoding",
    b"X\x0b",
    b"\xff",
    b"(x)",
    b"Content\0Length",
]
VALUES = [b"x", b"", b"3", b"0", b"5", b"chunked", b"close", b"100-continue", b"keep-alive, close", b"a b"]
ODD_VALUES = [
    b"+3", b"-1", b"3, 3", b"0x3", b"3 3", b"3;a", b"1" * 21, b"\xc2\xb2", b"chunked, chunked", b"xchunked",
    b"identity", b"gzip, chunked", b"chunked\x0b", b"\x00", b"a\x01b", b"\x7f", b"\xe9", b"\tchunked\t",
    b"a\rb", b"chunked;q=1",
]  # fmt: skip
ENDS = [b"\r\n", b"\n", b"\r", b"\r\r\n", b"\r\n ", b"\r\n\t", b"\n\r\n", b"\x0b\r\n", b"\x85"]
FIRST_LINES = [
    b"GET / HTTP/1.1", b"POST /a?b=c HTTP/1.1", b"HEAD / HTTP/1.0", b"GET  / HTTP/1.1", b"GET / HTTP/1.1 ",
    b"GET /", b"GET / HTTP/2.0", b"GET / HTTP/0.9", b"GET / http/1.1", b" GET / HTTP/1.1", b"G(T / HTTP/1.1",
    b"GET /\x80 HTTP/1.1", b"GET\t/ HTTP/1.1", b"PRI * HTTP/2.0", b"\r\nGET / HTTP/1.1", b"GET / HTTP/1.1\0",
    b"CONNECT a:1 HTTP/1.1", b"GET / HTTP/1.11", b"GET / HTTP/1.", b"GET /a b HTTP/1.1",
]  # fmt: skip
BODIES = [
    b"", b"abc", b"abcde", b"3\r\nabc\r\n0\r\n\r\n", b"3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
    b"3 \r\nabc\r\n0\r\n\r\n", b"03\r\nabc\r\n00\r\n\r\n", b"0x3\r\nabc\r\n0\r\n\r\n",
    b"+3\r\nabc\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"3\r\nabcd\r\n0\r\n\r\n", b"3\r\nabc0\r\n\r\n",
    b"3;\n\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n0\r\n X: y\r\n\r\n", b"3\r\nabc\r\n0\r\nX : y\r\n\r\n",
    b"3\r\nabc\r\n0\n\r\n", b"ffffffffffffffffff\r\nabc", b"-1\r\n", b"\r\n0\r\n\r\n",
    b"3\r\nabc\r\n0\r\nX: y\n\r\n\r\n", b"3;\x00\r\nabc\r\n0\r\n\r\n", b"3;a\rb\r\nabc\r\n0\r\n\r\n",
    b"3\rabc\r\n0\r\n\r\n",
]  # fmt: skip


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """A head, mostly of usual parts, with what follows it."""
    first = draw(st.sampled_from([*FIRST_LINES[:2] * 10, *FIRST_LINES]))
    lines = [b"Host: x"] if draw(st.integers(0, 9)) else []
    for _ in range(draw(st.integers(0, 4))):
        name = draw(st.sampled_from([*NAMES * 3, *ODD_NAMES]))
        value = draw(st.sampled_from([*VALUES * 4, *ODD_VALUES]))
        lines.append(name + draw(st.sampled_from([b": ", b":", b":\t ", b" :"])) + value)
    data = first
    for line in lines:
        data += draw(st.sampled_from([*[b"\r\n"] * 30, *ENDS])) + line
    end = draw(st.sampled_from([*[b"\r\n\r\n"] * 20, b"\n\n", b"\r\n", b"\r\n\n", b"\n\r\n", b""]))
    return data + end + draw(st.sampled_from(BODIES)) + draw(st.sampled_from([b"", b"GET /next HTTP/1.1\r\n"]))


@given(heads(), st.lists(st.integers(1, 60), max_size=4))
@settings(max_examples=1500, deadline=None)
def test_what_is_taken_is_what_h11_reads_and_does_not_depend_on_the_pieces_that_it_came_in(
    data: bytes, sizes: list[int]
) -> None:
    try:
        found = read(data)
    except BadRequest:
        with pytest.raises(BadRequest):
            read(data, sizes)
        return
    assert read(data, sizes) == found
    if found is not None:
        assert found == read_with_h11(data)


@given(st.binary(max_size=80), st.lists(st.integers(1, 10), max_size=3))
def test_any_bytes_are_read_or_refused(data: bytes, sizes: list[int]) -> None:
    for sent in (data, b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + data):
        try:
            found = read(sent, sizes)
        except BadRequest:
            continue
        assert found is None or found == read_with_h11(sent)


def post(*lines: bytes) -> bytes:
    return b"\r\n".join([b"POST / HTTP/1.1", b"Host: x", *lines, b"", b""])


REFUSED = {
    "a bare LF": (b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400, "ends without CR"),
    "a bare LF at the very end": (b"GET / HTTP/1.1\r\nHost: x\r\n\n", 400, "ends without CR"),
    "a bare CR": (post(b"A: b\rTransfer-Encoding: chunked"), 400, "is no header"),
    "CR CR LF": (b"GET / HTTP/1.1\r\nHost: x\r\r\n\r\n", 400, "is no header"),
    "a folded header": (post(b"A: b", b" c"), 400, "goes on in a second line"),
    "a folded first header": (b"GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400, "goes on in a second line"),
    "NUL in a value": (post(b"A: b\0"), 400, "is no header"),
    "another control character": (post(b"A: \x0bb"), 400, "is no header"),
    "a space before the colon": (post(b"Content-Length : 3"), 400, "is no header"),
    "no colon": (post(b"Content-Length"), 400, "is no header"),
    "no name": (post(b": 3"), 400, "is no header"),
    "two lengths": (post(b"Content-Length: 3", b"content-length: 3"), 400, "more than once"),
    "a list of lengths": (post(b"Content-Length: 3, 3"), 400, "more than once"),
    "a signed length": (post(b"Content-Length: +3"), 400, "whole number"),
    "an empty length": (post(b"Content-Length:"), 400, "whole number"),
    "a length of digits that are not ASCII": (post("Content-Length: ²".encode()), 400, "whole number"),
    "a very long length": (post(b"Content-Length: " + b"1" * 21), 400, "whole number"),
    "both lengths": (post(b"Content-Length: 3", b"Transfer-Encoding: chunked"), 400, "exclude each other"),
    "chunked twice": (post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), 501, "more than once"),
    "chunked and more": (post(b"Transfer-Encoding: gzip, chunked"), 501, "is not known here"),
    "nearly chunked": (post(b"Transfer-Encoding: xchunked"), 501, "is not known here"),
    "chunked behind a strange space": (post(b"Transfer-Encoding: \x0cchunked"), 400, "is no header"),
    "chunked in 1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0 knows no"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "Host is missing"),
    "two hosts": (post(b"Host: y"), 400, "Host is given more than once"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "begins no request"),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400, "begins no request"),
    "a space in the path": (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "begins no request"),
    "a blank line before": (b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "begins no request"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01", 400, "begins no request"),
    "a long head": (post(b"A: " + b"a" * 70_000), 431, "longer than 64 KiB"),
    "the beginning of one": (b"GET / HTTP/1.1\r\nA: " + b"a" * 70_000, 431, "longer than 64 KiB"),
}


@pytest.mark.parametrize("sizes", [[], [1], [7]], ids=["at once", "byte by byte", "in pieces"])
@pytest.mark.parametrize(("data", "status", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_head_that_two_programs_can_read_in_two_ways_is_refused_with_the_reason(
    data: bytes, status: int, message: str, sizes: list[int]
) -> None:
    if len(data) > 1000 and sizes:
        sizes = [5000]
    with pytest.raises(BadRequest, match=message) as refused:
        read(data, sizes)
    assert refused.value.status == status


CHUNKED = post(b"Transfer-Encoding: chunked")
BAD_CHUNKS = {
    "a bare LF after the size": b"3\nabc\r\n0\r\n\r\n",
    "a bare LF in an extension": b"3;a\nb\r\nabc\r\n0\r\n\r\n",
    "a bare CR in an extension": b"3;a\rb\r\nabc\r\n0\r\n\r\n",
    "a space after the size": b"3 \r\nabc\r\n0\r\n\r\n",
    "a space before the size": b" 3\r\nabc\r\n0\r\n\r\n",
    "a hexadecimal prefix": b"0x3\r\nabc\r\n0\r\n\r\n",
    "a sign": b"+3\r\nabc\r\n0\r\n\r\n",
    "an underscore": b"1_0\r\nabc\r\n0\r\n\r\n",
    "no size": b"\r\nabc\r\n0\r\n\r\n",
    "a size of more than 64 bits": b"1" * 17 + b"\r\nabc",
    "a chunk that is longer than its size": b"3\r\nabcd\r\n0\r\n\r\n",
    "no line end after a chunk": b"3\r\nabc0\r\n\r\n",
    "a bare LF after a chunk": b"3\r\nabc\n0\r\n\r\n",
    "a bare LF in a trailer": b"0\r\nX: y\n\r\n\r\n",
    "a folded trailer": b"0\r\nX: y\r\n z\r\n\r\n",
    "a trailer that is no header": b"0\r\nGET / HTTP/1.1\r\n\r\n",
    "a long extension": b"3;" + b"a" * 5000 + b"\r\nabc\r\n0\r\n\r\n",
    "the beginning of one": b"3;" + b"a" * 5000,
    "long trailers": b"0\r\nX: " + b"y" * 70_000,
}


@pytest.mark.parametrize("sizes", [[], [1]], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS.keys())
def test_chunks_have_one_form(body: bytes, sizes: list[int]) -> None:
    if len(body) > 10_000:
        sizes = [5000]
    with pytest.raises(BadRequest):
        read(CHUNKED + body, sizes)


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=6), st.lists(st.integers(1, 90), max_size=4))
def test_chunks_are_put_together_and_what_follows_is_left(parts: list[bytes], sizes: list[int]) -> None:
    framed = b"".join(b"%X;a=b\r\n%b\r\n" % (len(one), one) for one in parts)

    found = read(CHUNKED + framed + b"000\r\nTrail: er\r\n\r\n" + b"GET", sizes)

    assert found is not None
    assert (found.body, found.is_whole, found.rest) == (b"".join(parts), True, b"GET")
