"""Opens one file that somebody else may have put there: only if it is a plain file of theirs, and without waiting.

A pipe, a socket and a device are never opened: first the name is opened for its place alone (`O_PATH`), which does
nothing; what is there is looked at; and only then the very thing that was looked at is opened for reading, by its
descriptor. A file with a second name may be somebody else's, so it is refused, too. A lease that another process holds
on a file answers at once instead of after 45 s. A file system of a network may wait all the same: who must not wait
asks another process.

A file may grow, shrink and change while it is read. So nobody maps it into memory, and who parses it copies it first
(`copy`) and looks at the copy alone.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO, Final

from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.path import UntrustedPath

MAX_HOLLOW: Final = 250
"""A file that says it has so many times the bytes that its disk holds of it is refused; as for archives."""
FREE_HOLLOW_BYTES: Final = 64 << 20
"""Up to this size a file may be as hollow as it likes: it does no harm."""
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BLOCK_BYTES: Final = 512
_CHUNK: Final = 1 << 20


class UntrustedFile(OSError):
    """What lies there is not read. Its message says why, without the path."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A plain file that is open for reading, and what was known of it then."""

    descriptor: int
    facts: os.stat_result

    @property
    def num_bytes(self) -> int:
        """How long it was when it was opened."""
        return self.facts.st_size

    def read_at(self, offset: int, limit: int) -> bytes:
        """Return at most `limit` bytes at an offset; empty at the end."""
        return os.pread(self.descriptor, limit, offset)

    def close(self) -> None:
        """Close it; called once."""
        os.close(self.descriptor)


@contextmanager
def open_folder(path: UntrustedPath) -> Iterator[int]:
    """Yield a descriptor of a folder, good only for opening what is below it.

    Raises:
        OSError: it is not there, is no folder, or a link stands in its path.
    """
    root = os.open(path.root, _FOLDER | os.O_CLOEXEC)
    try:
        folder = open_beneath(root, path.inside, _FOLDER)
    finally:
        os.close(root)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def open_file(path: UntrustedPath) -> Iterator[OpenFile]:
    """Yield a plain file, opened for reading without waiting.

    Raises:
        OSError: as of `take_file`.
    """
    opened = take_file(path)
    try:
        yield opened
    finally:
        opened.close()


def take_file(path: UntrustedPath) -> OpenFile:
    """Return a plain file, opened for reading without waiting; who calls this closes it.

    Raises:
        UntrustedFile: what lies there is not a plain file, has a second name, or is of another owner.
        OSError: it is not there, cannot be read, or a link stands in its path.
    """
    root = os.open(path.root, _FOLDER | os.O_CLOEXEC)
    try:
        return open_below(root, path.inside, owner=_owner_of(root, path.inside))
    finally:
        os.close(root)


def open_below(folder: int, name: str, *, owner: int | None) -> OpenFile:
    """Return a plain file below an open folder; who calls this closes it. See `take_file`."""
    place = open_beneath(folder, name, os.O_PATH)
    try:
        seen = os.fstat(place)
        if why := refusal(seen, owner):
            raise UntrustedFile(why)
        file = os.open(f"/proc/self/fd/{place}", _READ)  # the magic link leads to what is open, not to a name
    finally:
        os.close(place)
    facts = os.fstat(file)
    if (facts.st_dev, facts.st_ino) != (seen.st_dev, seen.st_ino) or refusal(facts, owner):
        os.close(file)
        raise UntrustedFile("it was changed while it was opened")
    return OpenFile(file, facts)


def refusal(facts: os.stat_result, owner: int | None) -> str:
    """Return why what these facts are of is not read; empty if it is.

    Args:
        owner: the user of the operating system that it has to belong to; None: anybody.
    """
    if not stat.S_ISREG(facts.st_mode):
        return f"it is {_kind(facts.st_mode)}, not a plain file"
    if facts.st_nlink > 1:
        return "it has a second name, and may be somebody else's file"
    if owner is not None and facts.st_uid != owner:
        return "it belongs to somebody else than the folder"
    return ""


def hollowness(facts: os.stat_result) -> str:
    """Return why a file is not read whole, though it could be: it is a bomb; empty if it is none."""
    held = facts.st_blocks * _BLOCK_BYTES
    if facts.st_size <= max(FREE_HOLLOW_BYTES, MAX_HOLLOW * held):
        return ""
    return f"it has {facts.st_size:,} bytes, of which the disk holds {held:,}; write it without holes"


def is_file(path: UntrustedPath) -> bool:
    """Tell whether a plain file is there that could be read."""
    with suppress(OSError), open_file(path):
        return True
    return False


def read_end(path: UntrustedPath, num_bytes: int) -> tuple[bytes, os.stat_result]:
    """Return the last bytes of a file, and the facts of it.

    Raises:
        OSError: as of `open_file`.
    """
    with open_file(path) as file:
        return file.read_at(max(0, file.num_bytes - num_bytes), num_bytes), file.facts


def copy(source: OpenFile, target: BinaryIO, *, max_bytes: int) -> int:
    """Copy a file as it is now into an empty one, holes as holes; return how many bytes it has.

    Of a file that grows meanwhile as much is copied as it had when it was opened; one that shrinks is shorter.

    Raises:
        UntrustedFile: it is longer than `max_bytes`, or holds next to nothing for its length.
        OSError: it cannot be read, or the disk does not take it.
    """
    if why := hollowness(source.facts):
        raise UntrustedFile(why)
    if source.num_bytes > max_bytes:
        raise UntrustedFile(f"it has {source.num_bytes:,} bytes, more than {max_bytes:,}")
    at, end = 0, source.num_bytes
    while at < end:
        at = _next_data(source.descriptor, at, end)
        chunk = source.read_at(at, min(_CHUNK, end - at)) if at < end else b""
        if not chunk:
            break
        target.seek(at)
        target.write(chunk)
        at += len(chunk)
    length = min(end, os.fstat(source.descriptor).st_size)
    target.truncate(length)
    target.flush()
    return length


def _next_data(file: int, at: int, end: int) -> int:
    """Return where the next bytes are that are no hole, at the end of the file if there are none."""
    try:
        return min(end, os.lseek(file, at, os.SEEK_DATA))
    except OSError as error:
        return end if error.errno == errno.ENXIO else at  # a file system without holes says EINVAL


def _owner_of(root: int, inside: str) -> int | None:
    """Return who has to own the files below a folder: whom its topmost folder belongs to, anybody if that is us.

    Raises:
        OSError: it is not there, or is a link.
    """
    top = inside.partition("/")[0]
    if top == inside:
        return None
    place = open_beneath(root, top, os.O_PATH)
    try:
        owner = os.fstat(place).st_uid
    finally:
        os.close(place)
    return None if owner == os.geteuid() else owner


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
