"""Long text files that somebody's program writes: how their middle is given back to the disk, and how they are read.

Theory of operation. A program has its log open and appends to it; nobody can take the file away from it. But a file may
have holes: what lies there needs no room on the disk, and reads as zeros. So of a log that is too long the beginning
and the end are kept, and what is between them is made a hole. Lengths and places stay as they were, and whoever writes
or reads notices nothing. With 256 MiB to keep, and a program that has printed 4 GiB:

    0          64 MiB                           3.9 GiB     4 GiB
    |  kept    |  a hole                        |  kept     |  the program appends here

Who reads gets a line in the place of the hole, which says how much is missing. What has no file system that makes holes
keeps all of its log.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pliant.core.size import size
from pliant.files.untrusted.opening import OpenFile, open_file
from pliant.files.untrusted.path import UntrustedPath

_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02
_BLOCK: Final = 1 << 16
"""Holes begin and end at multiples of this, which is a multiple of every file system's block."""
_BLOCK_BYTES: Final = 512
HEAD_PART: Final = 4
"""One in so many bytes that are kept is of the beginning."""
_MAX_GAPS: Final = 1000
"""A program may put holes everywhere itself; further ones are read as what they are, zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a file, from one byte to before another; a gap holds nothing."""

    start: int
    end: int
    is_gap: bool = False

    @property
    def line(self) -> bytes:
        """What stands in the place of a gap."""
        return f"\n[pliant: {size(self.end - self.start)} are left out here: the log is too long]\n".encode()


def cut_middle(path: UntrustedPath, max_bytes: int) -> int:
    """Give the middle of a file back to the disk if it holds more than `max_bytes`; return how many bytes that was.

    A quarter of them stays of the beginning, and half of them of the end, so that this is not to be done all the time.

    Raises:
        OSError: it is no plain file of its owner's, or its file system makes no holes.
    """
    with open_file(path) as seen:
        held = seen.facts.st_blocks * _BLOCK_BYTES
        if held <= max_bytes:
            return 0
        first = -(-max_bytes // HEAD_PART // _BLOCK) * _BLOCK
        last = max(0, seen.num_bytes - max_bytes // 2) // _BLOCK * _BLOCK
        if last <= first:
            return 0
        file = os.open(f"/proc/self/fd/{seen.descriptor}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _punch(file, first, last - first)
            return max(0, held - os.fstat(file).st_blocks * _BLOCK_BYTES)
        finally:
            os.close(file)


def _punch(file: int, start: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if libc.fallocate(file, _PUNCH_HOLE | _KEEP_SIZE, start, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def pieces(file: OpenFile, start: int, end: int) -> Iterator[Piece]:
    """Yield a part of a file in pieces, in order: those with bytes, and the gaps between them."""
    if not has_holes(file.facts):
        yield Piece(start=start, end=end)
    else:
        yield from _seek_pieces(file, start, end)


def _seek_pieces(file: OpenFile, start: int, end: int) -> Iterator[Piece]:
    for _ in range(_MAX_GAPS):
        data = min(end, _seek(file, start, os.SEEK_DATA, end))
        if data > start:
            yield Piece(start=start, end=data, is_gap=True)
        if data >= end:
            return
        start = min(end, _seek(file, data, os.SEEK_HOLE, end))
        yield Piece(start=data, end=start)
        if start >= end:
            return
    yield Piece(start=start, end=end)


def has_holes(facts: os.stat_result) -> bool:
    """Tell whether the disk holds less than all of a plain file."""
    return stat.S_ISREG(facts.st_mode) and facts.st_blocks * _BLOCK_BYTES < facts.st_size


def _seek(file: OpenFile, at: int, what: int, end: int) -> int:
    """Return where the next bytes, or the next hole, begin; `end` if there are none."""
    try:
        return os.lseek(file.descriptor, at, what)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return end
        raise


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, and where what follows it begins in the file."""

    text: bytes
    next: int


def read_piece(file: OpenFile, offset: int, limit: int) -> Reading:
    """Return at most `limit` bytes of a file's text at an offset, or the line for a gap that begins there."""
    end = file.num_bytes
    if offset >= end:
        return Reading(b"", offset)
    piece = next(pieces(file, offset, end))
    if piece.is_gap:
        return Reading(piece.line, piece.end)
    text = file.read_at(offset, min(limit, piece.end - offset))
    if b"\0" in text:  # its middle may have gone since the file was opened
        piece = next(_seek_pieces(file, offset, end))
        if piece.is_gap:
            return Reading(piece.line, piece.end)
        text = text[: piece.end - offset]
    return Reading(text, offset + len(text))


class WithoutGaps:
    """A file as people read it, with a length that is known before it is read."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._pieces: list[tuple[int, Piece]] = []
        self.num_bytes = 0
        for piece in pieces(file, 0, file.num_bytes):
            self._pieces.append((self.num_bytes, piece))
            self.num_bytes += len(piece.line) if piece.is_gap else piece.end - piece.start

    @property
    def facts(self) -> os.stat_result:
        """Those of the file, with this length, and no holes."""
        held = self._file.facts
        return os.stat_result(
            (*held[:6], self.num_bytes, *held[7:10]),
            {"st_mtime": held.st_mtime, "st_blocks": -(-self.num_bytes // 512)},
        )

    @property
    def has_gaps(self) -> bool:
        """Tell whether anything is left out."""
        return any(piece.is_gap for _, piece in self._pieces)

    def read_at(self, offset: int, limit: int) -> bytes:
        """Return `limit` bytes at an offset into the text, over its gaps; fewer only where it ends."""
        read = b""
        while len(read) < limit and (more := self._read_within(offset + len(read), limit - len(read))):
            read += more
        return read

    def _read_within(self, offset: int, limit: int) -> bytes:
        """Return what one piece has."""
        begin, piece = max((one for one in self._pieces if one[0] <= offset), key=lambda one: one[0])
        inside = offset - begin
        if piece.is_gap:
            return piece.line[inside : inside + limit]
        return self._file.read_at(piece.start + inside, min(limit, piece.end - piece.start - inside))
