"""What is uploaded: a file as it is, or a folder as a plain tar that is made while it is sent.

The same files give the same bytes, and how many is known before any is read, so that an upload that broke off can be
taken up again anywhere. Knows no server.
"""

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.core.errors import InvalidInput, Problem

PIECE_BYTES: Final = 1 << 20
_MAX_PROBLEMS: Final = 20
_END: Final = bytes(2 * tarfile.BLOCKSIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    path: Path
    name: str
    num_bytes: int
    changed_at: int
    """Nanoseconds."""
    header: bytes


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file as it is: an archive or a table."""

    entry: _Entry

    @property
    def num_bytes(self) -> int:
        """All of them."""
        return self.entry.num_bytes

    @property
    def fingerprint(self) -> str:
        """Another one as soon as names, lengths or times of the files are others."""
        return _fingerprint("file", (self.entry,))

    def pieces(self) -> Iterator[bytes]:
        """Yield all bytes in order.

        Raises:
            InvalidInput: a file changed since it was looked at.
        """
        yield from _content(self.entry)


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder as a tar."""

    entries: Sequence[_Entry]

    @property
    def num_bytes(self) -> int:
        return sum(len(entry.header) + _pad(entry.num_bytes) for entry in self.entries) + len(_END)

    @property
    def fingerprint(self) -> str:
        return _fingerprint("folder", self.entries)

    def pieces(self) -> Iterator[bytes]:
        """Yield the tar, small files gathered."""
        gathered = bytearray()
        for entry in self.entries:
            gathered += entry.header
            for piece in _content(entry):
                gathered += piece
                if len(gathered) >= PIECE_BYTES:
                    yield bytes(gathered)
                    gathered.clear()
            gathered += bytes(_pad(entry.num_bytes) - entry.num_bytes)
        yield bytes(gathered) + _END


DataSource = FileSource | FolderSource


def source_of(path: Path) -> DataSource:
    """Return what a path holds.

    Raises:
        InvalidInput: there is nothing, or something in it cannot be sent.
    """
    if path.is_file():
        return FileSource(_entry(path, path.name))
    if not path.is_dir():
        raise InvalidInput(_problem(f"{str(path)!r} is neither a folder nor a file; check the path"))
    problems: list[Problem] = []
    entries = []
    root = path.resolve()
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted([*files, *(name for name in folders if (Path(folder) / name).is_symlink())]):
            file = Path(folder) / name
            relative = file.relative_to(path).as_posix()
            if message := _refusal(file, root):
                problems.append(_problem(f"{relative!r} {message}"))
                if len(problems) >= _MAX_PROBLEMS:
                    raise InvalidInput(*problems)
            else:
                entries.append(_entry(file, relative))
    if problems:
        raise InvalidInput(*problems)
    if not entries:
        raise InvalidInput(_problem(f"{str(path)!r} holds no file; there is nothing to send"))
    return FolderSource(tuple(sorted(entries, key=lambda entry: entry.name)))


def _refusal(path: Path, root: Path) -> str:
    if not path.exists():
        return f"is a link to {os.readlink(path)!r}, which is not there; remove it"
    if path.is_symlink() and not path.resolve().is_relative_to(root):
        return "is a link that leads out of the folder; copy what it points to"
    if path.is_dir():
        return "is a link to a folder; copy it, or remove it"
    if not stat.S_ISREG(path.stat().st_mode):
        return "is neither a file nor a folder; remove it"
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8; rename it"
    return "" if os.access(path, os.R_OK) else "cannot be read; change its mode"


def _entry(path: Path, name: str) -> _Entry:
    facts = path.stat()
    info = tarfile.TarInfo(name)
    info.size = facts.st_size
    info.mode = 0o755 if facts.st_mode & 0o100 else 0o644
    header = info.tobuf(format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape")
    return _Entry(path=path, name=name, num_bytes=facts.st_size, changed_at=facts.st_mtime_ns, header=header)


def _content(entry: _Entry) -> Iterator[bytes]:
    left = entry.num_bytes
    with entry.path.open("rb") as file:
        while left:
            piece = file.read(min(PIECE_BYTES, left))
            if not piece:
                raise InvalidInput(_problem(f"{entry.name!r} became shorter while it was sent; run the command again"))
            left -= len(piece)
            yield piece


def _fingerprint(kind: str, entries: Sequence[_Entry]) -> str:
    digest = hashlib.sha256(kind.encode())
    for entry in entries:
        digest.update(f"{entry.num_bytes} {entry.changed_at} {entry.name}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _pad(num_bytes: int) -> int:
    return -(-num_bytes // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _problem(message: str) -> Problem:
    return Problem(field="PATH", message=message)
