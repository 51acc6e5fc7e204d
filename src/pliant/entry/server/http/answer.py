"""Writes the head of an answer, and says how its body goes over the wire. Knows no socket.

Headers come from applications, which may have them from strangers: one that would become two, or none, is refused.
"""

import http
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pliant.entry.server.http.head import RequestHead, are_fields

_BODILESS: Final = (204, 304)
_STATUS_LINES: Final = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in http.HTTPStatus}
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = (b"connection", b"close")
Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The head of an answer."""

    data: bytes
    num_body_bytes: int | None
    """That go over the wire; None: the body ends when the application says so."""
    is_chunked: bool
    keeps_alive: bool
    """The connection takes another request."""


def encode_answer(status: int, headers: Headers, request: RequestHead | None, *, keeps_alive: bool) -> AnswerHead:
    """Return the head of an answer.

    Args:
        status: of HTTP.
        headers: as the application gives them.
        request: what is answered; None: it could not be read.
        keeps_alive: the connection takes another request, as far as others are concerned.

    Raises:
        ValueError: a header is none.
    """
    lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
    length: bytes | None = None
    has_coding = False
    for name, value in headers:
        kind = name.lower()
        if kind == b"connection":
            keeps_alive = keeps_alive and b"close" not in [one.strip() for one in value.lower().split(b",")]
        elif kind == b"transfer-encoding":
            has_coding = True
        elif kind == b"content-length":
            length = value
        else:
            lines.append(b"%b: %b\r\n" % (name, value))
    num, is_chunked = _framing(status, None if has_coding else length, request)
    if is_chunked:
        lines.append(b"transfer-encoding: chunked\r\n")
    elif num is None:
        keeps_alive = False  # its end is that of the connection
    elif length is not None and not has_coding:
        lines.append(b"content-length: %b\r\n" % length)
    if not keeps_alive:
        lines.append(b"connection: close\r\n")
    block = b"".join(lines[1:])
    if block.count(b"\n") != len(lines) - 1 or not are_fields(block, 0, len(block)):
        raise ValueError(f"the application answers with what are no headers: {block[:200]!r}")
    return AnswerHead(lines[0] + block + b"\r\n", num, is_chunked, keeps_alive)


def _framing(status: int, length: bytes | None, request: RequestHead | None) -> tuple[int | None, bool]:
    """Return how long the body is, and whether it goes in chunks."""
    if status in _BODILESS or (request is not None and request.method == "HEAD"):
        return 0, False
    if length is not None:
        return int(length), False
    return None, request is None or request.http_version == "1.1"
