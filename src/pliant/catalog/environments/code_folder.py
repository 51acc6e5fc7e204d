"""Reads files of a code folder that tasks may write to while it is read.

Every folder on the way is entered without following links, only regular files with one name are opened, nothing waits
(not for a pipe that nobody writes to, not for a lease), and no more is read than was asked for.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK: Final = 1 << 20


class UnreadableFile(Exception):
    """It is not there, is no plain file, or is too long; says which, and what to do."""


class CodeFolder:
    """A folder with a person's code. Names are relative to it and in their normal form (`normal_name`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, name: str, max_bytes: int) -> bytes:
        """Return what a file holds.

        Raises:
            UnreadableFile: it cannot be read whole.
        """
        with self._open(name, max_bytes) as file:
            return b"".join(_read(file, max_bytes))

    def digest(self, name: str, max_bytes: int) -> str:
        """Return the SHA-256 of a file, in hex.

        Raises:
            UnreadableFile: it cannot be read whole.
        """
        digest = hashlib.sha256()
        with self._open(name, max_bytes) as file:
            for data in _read(file, max_bytes):
                digest.update(data)
        return digest.hexdigest()

    def copy(self, name: str, to: Path, max_bytes: int) -> str:
        """Copy a file to a new one; return the SHA-256 of what was copied, in hex.

        Raises:
            UnreadableFile: it cannot be read whole.
            OSError: it cannot be written.
        """
        digest = hashlib.sha256()
        with self._open(name, max_bytes) as file, to.open("xb") as copied:
            for data in _read(file, max_bytes):
                digest.update(data)
                copied.write(data)
        return digest.hexdigest()

    @contextmanager
    def _open(self, name: str, max_bytes: int) -> Iterator[int]:
        try:
            file = _open_below(self.path, PurePosixPath(name), max_bytes)
        except (OSError, ValueError) as error:
            raise UnreadableFile(
                "there is no such plain file in the code folder; check its name, that it is not ignored, and that it "
                "is no link"
            ) from error
        try:
            yield file
        finally:
            os.close(file)


def normal_name(beside: PurePosixPath, name: str) -> PurePosixPath | None:
    """Return a name that is relative to a folder of the code folder as one relative to that; None if it leads out."""
    found = os.path.normpath(beside / name)
    return None if found.startswith(("/", "..")) or "\0" in found else PurePosixPath(found)


def _open_below(root: Path, name: PurePosixPath, max_bytes: int) -> int:
    *folders, last = name.parts
    here = os.open(root, _FOLDER)
    try:
        for folder in folders:
            above, here = here, os.open(folder, _FOLDER, dir_fd=here)
            os.close(above)
        seen = os.open(last, _LOOK, dir_fd=here)
    finally:
        os.close(here)
    try:
        found = os.fstat(seen)
        _require_plain(found, max_bytes)
        file = os.open(f"/proc/self/fd/{seen}", _FILE)
    finally:
        os.close(seen)
    return file


def _require_plain(found: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise OSError("it is no plain file")
    if found.st_size > max_bytes:
        raise UnreadableFile(f"it is longer than {max_bytes >> 10} KiB; is it the right file?")


def _read(file: int, max_bytes: int) -> Iterator[bytes]:
    left = max_bytes
    while data := os.read(file, min(_CHUNK, left + 1)):
        if (left := left - len(data)) < 0:
            raise UnreadableFile(f"it grew longer than {max_bytes >> 10} KiB while it was read; submit it again")
        yield data
