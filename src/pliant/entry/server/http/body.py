"""Cuts the body of a request out of the bytes of a connection, by its length or in chunks (RFC 9112, 7.1).

Chunks are read as strictly as heads: a size is hexadecimal digits alone, every line ends with CR LF. What stands beside
sizes, and after the last chunk, is checked and passed over. Knows no socket.
"""

import re
from typing import Final

from pliant.entry.server.http.head import BadRequest, check_fields

_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t\x20-\x7e\x80-\xff]*+)?")
_MAX_LINE: Final = 4 << 10
"""Bytes of a size with what stands beside it."""


class PlainBody:
    """A body of so many bytes.

    Args:
        num_bytes: its length.
    """

    __slots__ = ("_left",)

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes

    @property
    def is_whole(self) -> bool:
        """Nothing is missing."""
        return not self._left

    def take(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Return what of the body is there, and where it ends."""
        piece = data[at : at + self._left]
        self._left -= len(piece)
        return piece, at + len(piece)


class ChunkedBody:
    """A body in chunks.

    Args:
        max_trailer_bytes: after the last chunk.
    """

    __slots__ = ("_awaits_end", "_is_last", "_left", "_max_trailer_bytes", "is_whole")

    def __init__(self, max_trailer_bytes: int) -> None:
        self._max_trailer_bytes = max_trailer_bytes
        self._left = 0
        """Bytes of the chunk that have not come."""
        self._awaits_end = False
        """The end of the line after them has not come."""
        self._is_last = False
        """The last chunk has come; trailers follow."""
        self.is_whole = False
        """All has come."""

    def take(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Return what of the body is there, and where to go on when more has come.

        Raises:
            BadRequest: these are no chunks.
        """
        pieces: list[bytes] = []
        while not self.is_whole and at < len(data):
            if self._left:
                pieces.append(data[at : at + self._left])
                self._left -= len(pieces[-1])
                at += len(pieces[-1])
                continue
            before, at = at, self._step(data, at)
            if at == before:
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), at

    def _step(self, data: bytes, at: int) -> int:
        """Read what stands between the bytes of chunks; return where it ends, or `at` if it is not whole."""
        if self._awaits_end:
            return self._end_chunk(data, at)
        return self._read_trailers(data, at) if self._is_last else self._read_size(data, at)

    def _end_chunk(self, data: bytes, at: int) -> int:
        end = data[at : at + 2]
        if not b"\r\n".startswith(end):
            raise BadRequest("a chunk is longer than its size, or has no CR LF after it")
        if len(end) < 2:
            return at
        self._awaits_end = False
        return at + 2

    def _read_size(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n", at, at + _MAX_LINE)
        if end < 0:
            if len(data) - at >= _MAX_LINE or b"\n" in data[at:]:
                raise BadRequest(f"the size of a chunk has {_MAX_LINE} bytes or more, or ends without CR")
            return at
        size = _CHUNK.fullmatch(data, at, end)
        if size is None:
            raise BadRequest(f"{data[at : min(end, at + 40)]!r} is no size of a chunk; send hexadecimal digits")
        self._left = int(size[1], 16)
        self._is_last = not self._left
        self._awaits_end = not self._is_last
        return end + 2

    def _read_trailers(self, data: bytes, at: int) -> int:
        if data.startswith(b"\r\n", at):
            self.is_whole = True
            return at + 2
        end = data.find(b"\r\n\r\n", at)
        if (len(data) if end < 0 else end) - at > self._max_trailer_bytes:
            raise BadRequest(f"more than {self._max_trailer_bytes >> 10} KiB follow the last chunk", 431)
        if end < 0:
            return at
        check_fields(data, at, end + 2)
        self.is_whole = True
        return end + 4


Body = PlainBody | ChunkedBody
