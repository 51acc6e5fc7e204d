"""Reads files of a code folder that tasks may write to while it is read, by `pliant.files.untrusted`."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from pliant.files.untrusted.opening import OpenFile, copy, hollowness, take_file
from pliant.files.untrusted.path import UntrustedPath

_CHUNK: Final = 1 << 20
_NOT_THERE: Final = (
    "there is no such plain file in the code folder; check its name, that it is not ignored, and that it is no link"
)


class UnreadableFile(Exception):
    """It is not there, is no plain file, or is too long; says which, and what to do."""


class CodeFolder:
    """A folder with a person's code. Names are relative to it and in their normal form (`normal_name`)."""

    def __init__(self, path: Path) -> None:
        self._path = UntrustedPath(path.parent, path.name)

    def read(self, name: str, max_bytes: int) -> bytes:
        """Return what a file holds.

        Raises:
            UnreadableFile: it cannot be read whole.
        """
        with self._open(name, max_bytes) as file:
            return b"".join(_read(file))

    def digest(self, name: str, max_bytes: int) -> str:
        """Return the SHA-256 of a file, in hex.

        Raises:
            UnreadableFile: it cannot be read whole.
        """
        with self._open(name, max_bytes) as file:
            digest = hashlib.sha256()
            for data in _read(file):
                digest.update(data)
            return digest.hexdigest()

    def copy(self, name: str, to: Path, max_bytes: int) -> str:
        """Copy a file to a new one; return the SHA-256 of the copy, in hex.

        Raises:
            UnreadableFile: it cannot be read whole.
            OSError: it cannot be written.
        """
        with self._open(name, max_bytes) as file, to.open("xb") as copied:
            copy(file, copied, max_bytes=max_bytes)
        with to.open("rb") as copied:
            return hashlib.file_digest(copied, "sha256").hexdigest()

    @contextmanager
    def _open(self, name: str, max_bytes: int) -> Iterator[OpenFile]:
        path = self._path
        for part in PurePosixPath(name).parts:
            path /= part
        try:
            file = take_file(path)
        except (OSError, ValueError) as error:
            raise UnreadableFile(_NOT_THERE) from error
        try:
            if file.num_bytes > max_bytes:
                raise UnreadableFile(f"it is longer than {max_bytes >> 10} KiB; is it the right file?")
            if why := hollowness(file.facts):
                raise UnreadableFile(why)
            yield file
        finally:
            file.close()


def normal_name(beside: PurePosixPath, name: str) -> PurePosixPath | None:
    """Return a name that is relative to a folder of the code folder as one relative to that; None if it leads out."""
    found = os.path.normpath(beside / name)
    return None if found.startswith(("/", "..")) or "\0" in found else PurePosixPath(found)


def _read(file: OpenFile) -> Iterator[bytes]:
    """Yield what a file had when it was opened, or less if it has shrunk."""
    at = 0
    while at < file.num_bytes and (data := file.read_at(at, min(_CHUNK, file.num_bytes - at))):
        at += len(data)
        yield data
