"""Reads lines of logs: a page backwards or forwards, and those that hold a text. Every request reads a bounded part.

A page ends where the file has a gap (`files.untrusted.gaps`), and the gap is a page of its own: the line in its place,
which says how much is left out. A line begins after a line feed and nowhere else.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from pliant.api.logs import FoundLines, LogLines, PlacedLine
from pliant.files.untrusted.gaps import Piece, pieces
from pliant.files.untrusted.opening import OpenFile, open_file
from pliant.files.untrusted.path import UntrustedPath

MAX_LINES: Final = 2000
MAX_OFFSET: Final = 2**60
MAX_PAGE_BYTES: Final = 256 << 10
MAX_FIND_BYTES: Final = 8 << 20
MAX_SHOWN: Final = 10_000
"""Characters of a line."""
MAX_FOUND_SHOWN: Final = 1000
_AROUND: Final = 200
_BLOCK: Final = 1 << 20


def lines_before(path: UntrustedPath, before: int | None, num_lines: int) -> LogLines:
    """Return the last lines before a byte, or before the end; what is no plain file is read as an empty one."""
    with suppress(OSError), open_file(path) as file:
        end = file.num_bytes if before is None else min(before, file.num_bytes)
        last = next(iter([*pieces(file, 0, end)][-1:]), None)
        if last is None:
            return _page(b"", 0, file)
        if last.is_gap:
            return _gap(last, file)
        start = max(last.start, end - MAX_PAGE_BYTES)
        text = file.read_at(start, end - start)
        at = _start_of_last(text, num_lines, whole=start == last.start)
        return _page(text[at:], start + at, file)
    return LogLines(lines=(), start=0, end=0, num_bytes=0)


def _start_of_last(text: bytes, num_lines: int, *, whole: bool) -> int:
    """Return where the last lines begin; without `whole` the first line may have begun earlier, and is left out."""
    at = len(text) - text.endswith(b"\n")
    for _ in range(num_lines):
        at = text.rfind(b"\n", 0, max(0, at))
        if at < 0:
            first = text.find(b"\n") + 1
            return 0 if whole or first in (0, len(text)) else first
    return at + 1


def lines_from(path: UntrustedPath, offset: int, num_lines: int) -> LogLines:
    """Return the first lines from a byte on; what is no plain file is read as an empty one."""
    with suppress(OSError), open_file(path) as file:
        first = next(pieces(file, offset, file.num_bytes), None) if offset < file.num_bytes else None
        if first is None:
            return _page(b"", min(offset, file.num_bytes), file)
        if first.is_gap:
            return _gap(first, file)
        text = file.read_at(first.start, min(MAX_PAGE_BYTES, first.end - first.start))
        if first.start + len(text) < first.end:
            text = text[: text.rfind(b"\n") + 1] or text
        lines = list(islice(_split(text), num_lines))
        return _page(b"".join(lines), first.start, file)
    return LogLines(lines=(), start=0, end=0, num_bytes=0)


def find_lines(path: UntrustedPath, text: str, offset: int, limit: int) -> FoundLines:
    """Return lines that hold a text, from a byte on at which a line begins."""
    found: list[PlacedLine] = []
    at = offset
    with suppress(OSError), open_file(path) as file:
        wanted = text.casefold()
        for start, block in _blocks(file, offset, offset + MAX_FIND_BYTES):
            at = start
            if wanted not in block.decode("utf-8", "replace").casefold():
                at += len(block)
                continue
            for line in _split(block):
                if wanted in (shown := line.decode("utf-8", "replace")).casefold():
                    found.append(_found(at, shown, wanted))
                at += len(line)
                if len(found) == limit:
                    return FoundLines(lines=tuple(found), next=at if at < file.num_bytes else None, end=at)
        return FoundLines(lines=tuple(found), next=_after(file, at, offset + MAX_FIND_BYTES), end=at)
    return FoundLines(lines=(), next=None, end=0)


def _blocks(file: OpenFile, offset: int, until: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, about a megabyte at a time, up to a byte; gaps count for nothing."""
    for piece in pieces(file, offset, file.num_bytes) if offset < file.num_bytes else ():
        if piece.is_gap:
            until += piece.end - piece.start
            continue
        at = piece.start
        while at < piece.end and at < until:
            block = file.read_at(at, min(_BLOCK, piece.end - at))
            if not block:
                return
            if at + len(block) < piece.end:
                block = block[: block.rfind(b"\n") + 1] or block
            yield at, block
            at += len(block)
        if at >= until:
            return


def _after(file: OpenFile, at: int, until: int) -> int | None:
    """Return where to go on; None if it was looked through to the end."""
    return at if at < file.num_bytes and at >= until else None


def _split(text: bytes) -> Iterator[bytes]:
    """Yield lines with their ends."""
    at = 0
    while at < len(text):
        end = text.find(b"\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


def _page(text: bytes, start: int, file: OpenFile) -> LogLines:
    lines = []
    at = start
    for line in _split(text):
        shown = line.removesuffix(b"\n").decode("utf-8", "replace")
        lines.append(PlacedLine(offset=at, text=shown[:MAX_SHOWN], is_cut=len(shown) > MAX_SHOWN))
        at += len(line)
    return LogLines(lines=tuple(lines), start=start, end=at, num_bytes=file.num_bytes)


def _gap(gap: Piece, file: OpenFile) -> LogLines:
    line = PlacedLine(offset=gap.start, text=gap.line.decode().strip())
    return LogLines(lines=(line,), start=gap.start, end=gap.end, num_bytes=file.num_bytes)


def _found(offset: int, line: str, wanted: str) -> PlacedLine:
    """Return a line that holds a text; of a very long one what is around it."""
    shown = line.rstrip("\r\n")
    if len(shown) <= MAX_FOUND_SHOWN:
        return PlacedLine(offset=offset, text=shown)
    begin = max(0, shown.casefold().find(wanted) - _AROUND)
    return PlacedLine(offset=offset, text=shown[begin : begin + MAX_FOUND_SHOWN], is_cut=True)
