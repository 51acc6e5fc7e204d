"""What becomes of the output of a child. It is a stranger's: lines are cut, and what is kept is bounded."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

MAX_LINE_BYTES: Final = 32 << 20
MAX_LOG_BYTES: Final = 16 << 20
_TAIL_BYTES: Final = 1 << 16
_LEFT_OUT: Final = b"\n(the log is too long; the rest is left out)\n"

Sink = Callable[[bytes], None]
"""Gets what a program prints, piece by piece."""


class LineSink:
    """Hands on what a program prints line by line, without the line breaks; a line that is too long is cut."""

    def __init__(self, on_line: Callable[[bytes], None], max_bytes: int = MAX_LINE_BYTES) -> None:
        self._on_line = on_line
        self._max_bytes = max_bytes
        self._line = bytearray()

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._extend(end)
            line, self._line = bytes(self._line), bytearray()
            self._on_line(line)
        self._extend(rest)

    def _extend(self, data: bytes) -> None:
        self._line += data[: self._max_bytes - len(self._line)]


class TailSink:
    """Keeps the end of what a program prints."""

    def __init__(self, max_bytes: int = _TAIL_BYTES) -> None:
        self._max_bytes = max_bytes
        self._data = b""

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        self._data = (self._data + data)[-self._max_bytes :]

    @property
    def text(self) -> str:
        """What is kept, whatever bytes it is."""
        return self._data.decode("utf-8", "replace")


class LogSink:
    """Writes what a program prints into a new file, at most so much of it."""

    def __init__(self, path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
        self._left = max_bytes
        self._file = path.open("wb", buffering=0)  # people read along

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        if self._left >= 0:
            self._file.write(data[: self._left] + (_LEFT_OUT if len(data) > self._left else b""))
            self._left -= len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
