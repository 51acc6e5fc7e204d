"""What an archive may hold: the rules for every member, the same for all formats. Reads and writes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as made
from pathlib import PurePosixPath
from typing import Final

from pliant.core.errors import InvalidInput, Problem, TooLarge

MAX_PROBLEMS: Final = 20
"""So many are named at once; the rest is not looked at."""
MAX_NAME_BYTES: Final = 255
"""Of one part of a name: what Linux's file systems take."""
MAX_PATH_BYTES: Final = 3000
"""Of a whole name; leaves room for the folder that it is unpacked to."""
MAX_DEPTH: Final = 128
"""Folders in one another; many programs take no more than a few hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """How large what is unpacked may be."""

    max_bytes: int
    max_files: int
    """Files and folders together."""
    max_ratio: int = 250
    """Bytes unpacked for each byte of the archive. Deflate reaches 1032 for zeros, about 10 for text."""
    free_bytes: int = 64 << 20
    """The ratio is checked only beyond so many bytes: fewer do no harm."""
    hint: str = "leave data out of it"
    """What to do when it is too large."""

    def for_archive(self, num_bytes: int) -> int:
        """Return the most bytes that an archive of this size may unpack to."""
        return min(self.max_bytes, max(self.free_bytes, num_bytes * self.max_ratio))


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file or folder in an archive, as its header tells."""

    name: str
    num_bytes: int
    kind: str
    """`file`, `folder`, `link` or `other`."""
    executable: bool = False
    flaw: str = ""
    """What the format's reader found wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveContents:
    """What a whole archive holds."""

    num_files: int
    """Without the folders."""
    num_bytes: int


@dataclass(slots=True, kw_only=True)
class Inspection:
    """Looks at one member after the other; remembers names, counts, and what is wrong."""

    limits: ArchiveLimits
    archive_bytes: int
    field: str
    """Which input problems are named after."""
    problems: list[Problem] = made(default_factory=list)
    _files: set[str] = made(default_factory=set)
    _folders: set[str] = made(default_factory=set)
    _num_members: int = 0
    _num_bytes: int = 0

    def take(self, member: Member) -> bool:
        """Look at a member; tell whether to go on.

        Raises:
            TooLarge: all together are over a limit.
        """
        self._num_members += 1
        self._num_bytes += member.num_bytes
        self._check_size()
        if message := next(self._refusals(member), ""):
            self.problems.append(Problem(field=self.field, message=message))
        return len(self.problems) < MAX_PROBLEMS

    def contents(self) -> ArchiveContents:
        """Return what was found.

        Raises:
            InvalidInput: something may not be in an archive.
        """
        if self.problems:
            raise InvalidInput(*self.problems)
        return ArchiveContents(num_files=len(self._files), num_bytes=self._num_bytes)

    def _check_size(self) -> None:
        limits = self.limits
        if self._num_members > limits.max_files:
            raise TooLarge(f"{self.field}: the archive holds more than {limits.max_files} files; {limits.hint}")
        if self._num_bytes > limits.for_archive(self.archive_bytes):
            raise too_many_bytes(self.field, limits, self.archive_bytes)

    def _refusals(self, member: Member) -> Iterator[str]:
        shown = f"archive member {printable(member.name)}"
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\0" in member.name:
            yield f"{shown} points outside the folder; pack names relative to it"
        if not path.parts and member.kind != "folder":
            yield f"{shown} has no name; pack it again"
        if not is_text(member.name):
            yield f"{shown} has a name that is not UTF-8; rename it and pack again"
        elif too_long(path):
            yield f"{shown} has a name that is too long for a file system; shorten it"
        elif len(path.parts) > MAX_DEPTH:
            yield f"{shown} lies more than {MAX_DEPTH} folders deep; move it up"
        if member.kind == "link":
            yield f"{shown} is a link; pack the file that it points to"
        if member.kind == "other":
            yield f"{shown} is neither a file nor a folder; leave it out"
        if member.flaw:
            yield f"{shown} {member.flaw}"
        if self._collides(path, is_folder=member.kind == "folder"):
            yield f"{shown} is in it twice; pack it once"

    def _collides(self, path: PurePosixPath, *, is_folder: bool) -> bool:
        """Take note of a name; tell whether it cannot stand beside those before it."""
        name = str(path)
        above = [str(folder) for folder in path.parents]
        if any(folder in self._files for folder in above) or name in self._files:
            return True
        if not is_folder and name in self._folders:
            return True
        self._folders.update(above)
        (self._folders if is_folder else self._files).add(name)
        return False


def too_many_bytes(field: str, limits: ArchiveLimits, archive_bytes: int) -> TooLarge:
    """Return the error of an archive that unpacks to too much."""
    if limits.for_archive(archive_bytes) < limits.max_bytes:
        return TooLarge(
            f"{field}: the archive unpacks to more than {limits.max_ratio} times its size, as bombs do; "
            f"if it is meant, pack it as a plain tar"
        )
    return TooLarge(f"{field}: the archive unpacks to more than {limits.max_bytes >> 20} MiB; {limits.hint}")


def is_text(name: str) -> bool:
    """Tell whether a name can be written as UTF-8; one that was not has lone surrogates in it."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)


def printable(name: str) -> str:
    """Return a name for a message, whatever is in it."""
    return ascii(name[:200]) if not is_text(name) else repr(name[:200])


def too_long(path: PurePosixPath) -> bool:
    """Tell whether a file system would refuse a name for its length."""
    encoded = [part.encode() for part in path.parts]
    return any(len(part) > MAX_NAME_BYTES for part in encoded) or sum(map(len, encoded)) > MAX_PATH_BYTES
