"""Reads a gzip file that is one stream from its first byte to its last.

The format allows several streams in a row ("members"), and programs differ in what they make of the second and of
other bytes behind the first: some read on, some stop. What one shows and another hides is refused.
"""

import io
import os
import tarfile
import zlib
from typing import BinaryIO, Final

_CHUNK: Final = 1 << 16
_GZIP_ONLY: Final = 16 + zlib.MAX_WBITS


class GzipStream(io.RawIOBase):
    """What a gzip file holds, read from its beginning to its end."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._position = 0
        self._drained = False
        """Whether zlib was asked for what it holds back since the last byte came."""
        self._restart()

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position, by reading up to it; back by reading again."""
        assert whence == os.SEEK_SET
        if offset < self._position:
            self._restart()
        while self._position < offset and self.read(min(_CHUNK, offset - self._position)):
            pass
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, fewer at the end only.

        Raises:
            tarfile.ReadError: something follows the end.
            EOFError: it breaks off.
            zlib.error: it is no gzip, or damaged.
        """
        assert size >= 0, "nobody reads a stranger's file at once"
        found = bytearray()
        while len(found) < size and not self._has_ended():
            found += self._stream.decompress(self._more(), size - len(found))
            if self._has_ended():
                self._refuse_more()
        self._position += len(found)
        return bytes(found)

    def _has_ended(self) -> bool:
        return self._stream.eof

    def _more(self) -> bytes:
        """Return compressed bytes that were not decompressed yet; none if zlib still holds some back."""
        data = self._stream.unconsumed_tail or self._source.read(_CHUNK)
        if not data and self._drained:
            raise EOFError("it breaks off before the end of its gzip stream")
        self._drained = not data
        return data

    def _refuse_more(self) -> None:
        """Refuse what follows the end; zeros are the padding of tapes."""
        rest = self._stream.unused_data or self._source.read(_CHUNK)
        while rest:
            if rest.strip(b"\0"):
                raise tarfile.ReadError("something follows the end of its gzip stream, such as a second one")
            rest = self._source.read(_CHUNK)

    def _restart(self) -> None:
        self._source.seek(0)
        self._stream = zlib.decompressobj(_GZIP_ONLY)
        self._position = 0
        self._drained = False
