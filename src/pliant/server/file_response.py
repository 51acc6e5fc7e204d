"""Sends a file that somebody else's program wrote: the one that was opened, as long as it was then, or a part of it.

Always as an attachment: a browser shall show nothing of it, whatever it is. A part is what `Range` asks for (RFC 9110,
14): one range of bytes. Several, and what cannot be read, are answered with the whole file, as the RFC allows; so is
`If-Range`, since a file that is still written has no version that could be named.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import quote

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pliant.core.errors import BeyondEnd

_CHUNK: Final = 1 << 18
_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class OpenedFile(Protocol):
    """A file that is open for reading."""

    @property
    def num_bytes(self) -> int:
        """How long it was when it was opened."""
        ...

    def read_at(self, offset: int, limit: int) -> bytes:
        """Return at most `limit` bytes at an offset; empty at the end."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file, from one byte to before another."""

    start: int
    end: int


def asked_span(asked: str | None, num_bytes: int) -> Span | None:
    """Return the part of a file that a `Range` asks for; None: all of it.

    Raises:
        BeyondEnd: the file has nothing there.
    """
    found = None if asked is None else _RANGE.fullmatch(asked.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    start = int(first) if first else max(0, num_bytes - int(last))
    end = min(num_bytes, int(last) + 1) if first and last else num_bytes
    if first and last and int(last) < int(first):
        return None
    if start >= end:
        raise BeyondEnd(f"the file has {num_bytes:,} bytes and nothing at {asked!r:.60}", num_bytes=num_bytes)
    return Span(start, end)


class OpenFileResponse(StreamingResponse):
    """The content of an open file, which it closes. If the file gets shorter meanwhile, the answer breaks off."""

    def __init__(self, file: OpenedFile, *, media_type: str, file_name: str, span: Span | None = None) -> None:
        self._file = file
        part = span or Span(0, file.num_bytes)
        headers = {"Content-Length": str(part.end - part.start), "Content-Disposition": attachment(file_name)}
        if span is not None:
            headers["Content-Range"] = f"bytes {part.start}-{part.end - 1}/{file.num_bytes}"
        super().__init__(_read(file, part), 200 if span is None else 206, headers, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def attachment(file_name: str) -> str:
    """Return the `Content-Disposition` of a file that is kept under this name (RFC 6266, 8187)."""
    return f"attachment; filename*=utf-8''{quote(file_name, safe='', errors='replace')}"


def send_part(file: OpenedFile, *, file_name: str, asked: str | None) -> OpenFileResponse:
    """Return an answer with what `Range` asks for of a file, and the file is closed, whatever comes of it.

    Raises:
        BeyondEnd: the file has nothing there.
    """
    try:
        span = asked_span(asked, file.num_bytes)
    except BeyondEnd:
        file.close()
        raise
    response = OpenFileResponse(file, media_type="application/octet-stream", file_name=file_name, span=span)
    response.headers["Accept-Ranges"] = "bytes"
    return response


def _read(file: OpenedFile, part: Span) -> Iterator[bytes]:
    offset = part.start
    while offset < part.end and (chunk := file.read_at(offset, min(_CHUNK, part.end - offset))):
        offset += len(chunk)
        yield chunk
