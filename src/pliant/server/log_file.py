"""Reads log files while tasks write them: a piece of one, and where its last lines begin.

A task can put anything in the place of its log; what is no plain file of its own is read as an empty one.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from pliant.files.untrusted.gaps import Reading, read_piece
from pliant.files.untrusted.opening import OpenFile, open_file
from pliant.files.untrusted.path import UntrustedPath

CHUNK: Final = 1 << 16
MAX_TAIL_BYTES: Final = 256 << 20
"""So much of the end of a file is searched for line breaks: a file may have a petabyte and none."""


def read_at(path: UntrustedPath, offset: int, limit: int = CHUNK) -> Reading:
    """Return at most `limit` bytes at `offset`, 64 KiB at most, and where to go on; empty at the end.

    In the place of a middle that was left out stands a line that says so.
    """
    with suppress(OSError), open_file(path) as file:
        return read_piece(file, offset, min(limit, CHUNK))
    return Reading(b"", offset)


def read_whole(path: UntrustedPath, offset: int) -> Iterator[bytes]:
    """Yield the text from an offset to where the file ends now."""
    end = size_of(path)
    while offset < end and (found := read_at(path, offset, end - offset)).text:
        offset = found.next
        yield found.text


def size_of(path: UntrustedPath) -> int:
    """Return the length of a file."""
    with suppress(OSError), open_file(path) as file:
        return file.num_bytes
    return 0


def find_tail(path: UntrustedPath, num_lines: int) -> int:
    """Return where the last `num_lines` lines begin; a last line without its end counts as one."""
    with suppress(OSError), open_file(path) as file:
        return _find_tail(file, num_lines)
    return 0


def _find_tail(file: OpenFile, num_lines: int) -> int:
    end = file.num_bytes
    if num_lines == 0:
        return end
    first = max(0, end - MAX_TAIL_BYTES)
    block_end, missing = end, num_lines
    while block_end > first:
        start = max(first, block_end - CHUNK)
        block = file.read_at(start, block_end - start)
        limit = len(block) - 1 if block_end == end and block.endswith(b"\n") else len(block)
        while (found := block.rfind(b"\n", 0, limit)) >= 0:
            missing -= 1
            if missing == 0:
                return start + found + 1
            limit = found
        block_end = start
    return first
