"""Reads the body of a request within its limits: so many bytes, also after decompression, and within so much time.

What is compressed is decompressed while it comes, a piece at a time, so that a small body never becomes a large one in
memory, and other requests have their turns.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pliant.serve.gateway.admission import AdmittedRequest
from pliant.serve.gateway.refused import ClientGone, Refused

BODY_WITHIN_S: Final = 60.0
_PIECE_BYTES: Final = 256 << 10
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class BodyReader:
    """Reads bodies. A tick ends those that come too slowly.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began_at: dict[asyncio.Task[Any], float] = {}
        """Who reads since when; the oldest first."""
        self._late: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """Return how many are read now."""
        return len(self._began_at)

    def tick(self, now: float) -> None:
        """Interrupt those who wait for a body for too long."""
        for task, began_at in self._began_at.items():
            if now - began_at <= BODY_WITHIN_S:
                break
            if task not in self._late:
                self._late.add(task)
                task.cancel()

    async def read(
        self, receive: Receive, headers: Mapping[bytes, bytes], max_bytes: int, admitted: AdmittedRequest
    ) -> bytes | bytearray:
        """Return the body, decompressed.

        Raises:
            Refused: it is too long, too slow, or not what its headers say.
            ClientGone: the client left before it was whole.
        """
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip", b"deflate", b"x-gzip"):
            name = encoding[:30].decode("latin-1")
            raise Refused(400, f"Content-Encoding {name!r} is not known here; send gzip, deflate, or none")
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > max_bytes:
            raise _too_long(max_bytes)
        with self.in_time():
            if encoding == b"identity":
                return await _read_plain(receive, max_bytes, admitted)
            return await _read_compressed(receive, max_bytes, admitted)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Interrupt this task, in the block, if it waits for a body for too long.

        Raises:
            Refused: it did.
        """
        task = asyncio.current_task()
        assert task is not None
        self._began_at[task] = self._clock()
        try:
            yield
        except asyncio.CancelledError:
            if task in self._late and task.uncancel() == 0:
                raise Refused(408, f"the body did not come within {BODY_WITHIN_S:g} s") from None
            raise
        finally:
            del self._began_at[task]
            self._late.discard(task)


async def _read_plain(receive: Receive, max_bytes: int, admitted: AdmittedRequest) -> bytes | bytearray:
    whole = bytearray()
    while True:
        chunk, has_more = await _next(receive)
        if len(whole) + len(chunk) > max_bytes:
            raise _too_long(max_bytes)
        admitted.hold(len(chunk))
        if not has_more and not whole:
            return chunk  # the usual case: it came in one piece, and is not copied
        whole += chunk
        if not has_more:
            return whole


async def _read_compressed(receive: Receive, max_bytes: int, admitted: AdmittedRequest) -> bytearray:
    whole = bytearray()
    inflater = _Inflater()
    num_sent, has_more = 0, True
    while has_more:
        chunk, has_more = await _next(receive)
        num_sent += len(chunk)
        if num_sent > max_bytes:  # a stream may go on for ever, and become nothing
            raise _too_long(max_bytes)
        for piece in inflater.feed(chunk):
            if len(whole) + len(piece) > max_bytes:
                raise _too_long(max_bytes)
            admitted.hold(len(piece))
            whole += piece
            if len(piece) == _PIECE_BYTES:
                await asyncio.sleep(0)  # others have their turn
    if not inflater.is_whole:
        raise Refused(400, "the compressed body ends in the middle; send all of it")
    return whole


async def _next(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


class _Inflater:
    """Decompresses gzip (of one member or several), zlib, and bare deflate, which some take for zlib."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._has_begun = False
        self._beginning = b""
        self.is_whole = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what these bytes hold, in bounded pieces."""
        if not self._has_begun:
            data = self._beginning = self._beginning + data
            if len(data) < 2:  # the first two bytes say which of the formats it is
                return
        while data:
            if self.is_whole:
                self._stream, self.is_whole = zlib.decompressobj(_GZIP_OR_ZLIB), False
            piece = self._inflate(data)
            if piece:
                yield piece
            self.is_whole = self._stream.eof
            data = self._stream.unused_data if self.is_whole else self._stream.unconsumed_tail
            if not data and len(piece) == _PIECE_BYTES and not self.is_whole:
                yield from self._rest()

    def _rest(self) -> Iterator[bytes]:
        """Yield what the stream still holds back of input that it has consumed."""
        while piece := self._stream.decompress(b"", _PIECE_BYTES):
            yield piece
        self.is_whole = self._stream.eof

    def _inflate(self, data: bytes) -> bytes:
        try:
            piece = self._stream.decompress(data, _PIECE_BYTES)
        except zlib.error as error:
            if self._has_begun:
                raise Refused(400, f"the compressed body cannot be read: {error}") from error
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
            self._has_begun = True
            return self._inflate(data)
        self._has_begun, self._beginning = True, b""
        return piece


def _too_long(max_bytes: int) -> Refused:
    size = f"{max_bytes} bytes, as sent or decompressed"
    return Refused(413, f"the body is longer than {size}; the endpoint's owner can raise max_body_bytes")
