"""Reads the head of a request as RFC 9112 has it, and in no other way. Knows no socket.

The RFC allows a receiver to be lenient: lines may end without CR (2.2), a value may go on in the next line (5.2),
Content-Length may stand beside Transfer-Encoding (6.1). A proxy in front may read each of them otherwise, and take the
rest for another request ("smuggling"). So a head has one form here, which is written as expressions below, and what
does not have it is refused. No client needs more: tests compare every head that is taken with what h11 reads in it.
"""

import re
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_FIRST_LINE: Final = re.compile(rb"(" + _TOKEN + rb"++) ([\x21-\x7e]++) HTTP/1\.([01])\r\n")
_FIELDS: Final = re.compile(rb"(?:" + _TOKEN + rb"++:[^\0\n\x0b\f\r]*+\r\n)*+")
_NEVER: Final = re.compile(rb"(?<!\r)\n|\r\n[ \t]|\0")
"""In no head, however it goes on."""
_END: Final = b"\r\n\r\n"
_MAX_DIGITS: Final = 20
_SHOWN: Final = 60
_SAID_ONCE: Final = {
    b"host": (400, "Host is given more than once; send it once"),
    b"content-length": (400, "Content-Length is given more than once; send it once"),
    b"transfer-encoding": (501, "Transfer-Encoding is given more than once; send it once"),
}
_OF_THE_CONNECTION: Final = frozenset({*_SAID_ONCE, b"connection", b"expect", b"upgrade"})


class BadRequest(Exception):
    """What was sent is no request that is taken here.

    Args:
        message: what it is, and what to do.
        status: to answer.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of a request, and what it says of its body and its connection."""

    method: str
    target: bytes
    http_version: str
    """`1.0` or `1.1`."""
    headers: list[tuple[bytes, bytes]]
    """Names are lower-case; values have no space around them."""
    num_body_bytes: int | None
    """None: the body comes in chunks."""
    keeps_alive: bool
    """Another request may follow."""
    expects_continue: bool
    """The client sends the body when it is asked to."""
    wants_websocket: bool


def find_end(data: bytes, at: int, max_bytes: int, num_seen: int = 0) -> int:
    """Return where the blank line after a head begins; -1 if the head is not whole, and may become one.

    Args:
        data: what has come.
        at: the head begins there.
        max_bytes: it may have.
        num_seen: so many of its bytes were there before.

    Raises:
        BadRequest: it is too long, or never becomes one.
    """
    end = data.find(_END, at + max(0, num_seen - 3))
    if (len(data) if end < 0 else end) - at > max_bytes:
        raise BadRequest(f"the head is longer than {max_bytes >> 10} KiB; send fewer or shorter headers", 431)
    if end < 0 and at < len(data) and (data[at] <= 0x20 or _NEVER.search(data, at + max(0, num_seen - 2))):
        raise _explain(data[at:])
    return end


def read_head(data: bytes, at: int, end: int) -> RequestHead:
    """Return the head of a request.

    Args:
        data: holds it.
        at: where it begins.
        end: where the blank line begins.

    Raises:
        BadRequest: it is none, or leaves open where its body ends.
    """
    first = _FIRST_LINE.match(data, at, end + 2)
    if first is None or not are_fields(data, first.end(), end + 2):
        raise _explain(data[at:end])
    headers: list[tuple[bytes, bytes]] = []
    said: dict[bytes, bytes] = {}
    for line in data[first.end() : end].split(b"\r\n") if first.end() < end else ():
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        headers.append((name, value))
        if name in _OF_THE_CONNECTION:
            if name in said and name in _SAID_ONCE:
                status, message = _SAID_ONCE[name]
                raise BadRequest(message, status)
            said[name] = said[name] + b"," + value if name in said else value
    method, target, minor = first.groups()
    is_newest = minor == b"1"
    if is_newest and b"host" not in said:
        raise BadRequest("the header Host is missing; send it")
    connection = _tokens(said, b"connection")
    return RequestHead(
        method=method.decode(),
        target=target,
        http_version="1.1" if is_newest else "1.0",
        headers=headers,
        num_body_bytes=_num_body_bytes(said, is_newest=is_newest),
        keeps_alive=is_newest and b"close" not in connection,
        expects_continue=is_newest and b"100-continue" in _tokens(said, b"expect"),
        wants_websocket=b"upgrade" in connection and said.get(b"upgrade", b"").lower() == b"websocket",
    )


def are_fields(data: bytes, at: int, end: int) -> bool:
    """Tell whether these bytes are lines of headers, each with its end, and nothing else."""
    return _FIELDS.fullmatch(data, at, end) is not None


def check_fields(data: bytes, at: int, end: int) -> None:
    """Refuse what are no lines of headers.

    Raises:
        BadRequest: they are none.
    """
    if not are_fields(data, at, end):
        raise _explain_fields(data[at:end])


def _tokens(said: dict[bytes, bytes], name: bytes) -> list[bytes]:
    value = said.get(name)
    return [] if value is None else [one.strip() for one in value.lower().split(b",")]


def _num_body_bytes(said: dict[bytes, bytes], *, is_newest: bool) -> int | None:
    """Return the length of the body; None if it comes in chunks."""
    length, coding = said.get(b"content-length"), said.get(b"transfer-encoding")
    if coding is not None:
        if length is not None:
            raise BadRequest("Content-Length and Transfer-Encoding exclude each other; send one of them")
        if not is_newest:
            raise BadRequest("HTTP/1.0 knows no Transfer-Encoding; send Content-Length, or HTTP/1.1")
        if coding.lower() != b"chunked":
            raise BadRequest(f"Transfer-Encoding {_show(coding)} is not known here; send chunked", 501)
        return None
    if length is None:
        return 0
    if b"," in length:
        raise BadRequest("Content-Length is given more than once; send it once")
    if not (length.isdigit() and len(length) <= _MAX_DIGITS):
        raise BadRequest(f"Content-Length is {_show(length)}; send a whole number of bytes")
    return int(length)


def _explain(head: bytes) -> BadRequest:
    """Return why this is no head, nor the beginning of one."""
    line, _, fields = head.partition(b"\r\n")
    if b"\n" not in line and not _FIRST_LINE.fullmatch(line + b"\r\n"):
        return BadRequest(f"{_show(line)} begins no request; send a method, a path, and HTTP/1.1")
    return _explain_fields(fields if b"\n" not in line else line)


def _explain_fields(fields: bytes) -> BadRequest:
    """Return why these are no lines of headers."""
    if fields.count(b"\n") != fields.count(b"\r\n"):
        return BadRequest("a line of the head ends without CR; end each with CR LF")
    lines = fields.split(b"\r\n")
    if any(line[:1] in (b" ", b"\t") for line in lines):
        return BadRequest("a header goes on in a second line; write it in one")
    wrong = next((line for line in lines if not _FIELDS.fullmatch(line + b"\r\n")), b"")
    return BadRequest(f"{_show(wrong)} is no header; send NAME: VALUE in one line")


def _show(data: bytes) -> str:
    """Return the beginning of what a stranger has sent, as ASCII."""
    return repr(data[:_SHOWN])[1:]
