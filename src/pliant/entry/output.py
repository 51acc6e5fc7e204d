"""What a script prints when the disk is full: it is dropped, and the script does not notice.

A training that goes on is worth more than its log. Other errors of the streams are raised as ever.
"""

import errno
import io
import sys
from typing import Any, Final

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Droppable(io.FileIO):
    """A file that takes everything, whether or not there is room for it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return memoryview(data).nbytes


def survive_full_disk() -> None:
    """Let `print` and tracebacks of this process drop what finds no room.

    Streams that somebody has put in the place of Python's own stay as they are.
    """
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        sys.stdout.flush()
        sys.stdout = sys.__stdout__ = _stream(1, errors="strict")  # type: ignore[misc]
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        sys.stderr.flush()
        sys.stderr = sys.__stderr__ = _stream(2, errors="backslashreplace")  # type: ignore[misc]


def _stream(number: int, *, errors: str) -> io.TextIOWrapper:
    raw = Droppable(number, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), errors=errors, line_buffering=True)
