"""Cuts a stream of bytes into lines at line feeds only: other signs that end lines for `str` may stand inside one."""

from collections.abc import Iterable, Iterator


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines without their ends, and what is left at the end of the stream, if anything."""
    pending: list[bytes] = []
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*pending, line])
            pending.clear()
        if rest:
            pending.append(rest)
    if pending:
        yield b"".join(pending)


def text_of(line: bytes) -> str:
    """Return a line as text; bytes that are no UTF-8 are replaced, a carriage return at its end is dropped."""
    return line.decode("utf-8", "replace").removesuffix("\r")
