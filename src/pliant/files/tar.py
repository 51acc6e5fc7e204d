"""Reads tar and tar.gz member by member, through a stream that refuses to hand out too much."""

import io
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, BinaryIO, Final, Self

from pliant.files.gzipped import GzipStream
from pliant.files.members import ArchiveLimits, Member, too_many_bytes

HEADER_BYTES: Final = 4096
"""Room for the headers of a member, on average."""
MAX_READ: Final = 1 << 20
"""Nothing is read at once that is larger: names and other headers are smaller."""

_NO_HEADER: Final = (
    tarfile.InvalidHeaderError,  # type: ignore[attr-defined]  # typeshed lacks both
    tarfile.TruncatedHeaderError,  # type: ignore[attr-defined]
)


class _Limited(io.RawIOBase):
    """A stream that refuses to hand out too much at once or altogether."""

    def __init__(self, source: "BinaryIO | GzipStream", limit: int, refusal: Exception) -> None:
        self._source = source
        self._limit = limit
        self._refusal = refusal

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._source.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        assert whence == os.SEEK_SET
        self._check(offset)
        return self._source.seek(offset)

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > MAX_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        self._check(self._source.tell() + size)
        return self._source.read(size)

    def _check(self, position: int) -> None:
        if position > self._limit + MAX_READ:
            raise self._refusal


class _WholeHeader(tarfile.TarInfo):
    """A header that is one; the library takes what is none as the end of the archive, and hides what follows."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except _NO_HEADER as error:
            raise tarfile.ReadError(f"a header at byte {tar.offset} is none: {error}") from error


@dataclass(frozen=True, slots=True)
class TarReader:
    """Reads a tar, compressed or not."""

    field: str
    """Which input errors are named after."""
    is_zipped: bool

    def members(self, source: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[Member, Callable[[], IO[bytes]]]]:
        """Yield what each header tells, and what opens the content of a file, until the next one is asked for.

        The archive is read to its end, so that one that breaks off, or goes on after its end, is noticed.

        Raises:
            tarfile.TarError, OSError, EOFError, zlib.error: it is no whole archive, or more than one.
            TooLarge: it unpacks to too much.
        """
        with self._open(source, limits) as (tar, stream):
            for found in tar:
                yield _member(found), partial(_content, tar, found)
            while rest := stream.read(MAX_READ):  # the checksum of gzip comes last
                if rest.strip(b"\0"):
                    raise tarfile.ReadError("something follows the end of the tar, such as a second one")

    @contextmanager
    def _open(self, source: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[tarfile.TarFile, _Limited]]:
        archive_bytes = os.fstat(source.fileno()).st_size
        raw = GzipStream(source) if self.is_zipped else source
        refusal = too_many_bytes(self.field, limits, archive_bytes)
        limit = limits.for_archive(archive_bytes) + limits.max_files * HEADER_BYTES
        stream = _Limited(raw, limit, refusal)
        with tarfile.open(fileobj=stream, mode="r:", tarinfo=_WholeHeader) as tar:
            yield tar, stream


def is_header(block: bytes) -> bool:
    """Tell whether 512 bytes are the header of a tar's member."""
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _content(tar: tarfile.TarFile, found: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(found)
    assert content is not None, "only files are opened"
    return content


def _member(found: tarfile.TarInfo) -> Member:
    return Member(
        name=found.name,
        num_bytes=found.size if found.isreg() else 0,
        kind=_kind(found),
        executable=bool(found.mode & 0o100),
    )


def _kind(found: tarfile.TarInfo) -> str:
    if found.issym() or found.islnk():
        return "link"
    if found.isdir():
        return "folder"
    return "file" if found.isfile() and not found.issparse() else "other"
