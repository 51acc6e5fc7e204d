"""Packs what somebody else's program has written as a tar.gz, made while it is sent.

Whatever is no plain file of theirs is left out, and the last member of the archive, `left-out.txt`, says what and why.
Names that do not show as what they are get packed escaped; that is said there, too.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from pliant.files.members import too_long
from pliant.files.pack import TarGzip
from pliant.files.untrusted.gaps import WithoutGaps, has_holes
from pliant.files.untrusted.names import escape, shown, unescape
from pliant.files.untrusted.opening import (
    OpenFile,
    UntrustedFile,
    hollowness,
    open_below,
    open_folder,
    refusal,
    take_file,
)
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import FoundEntry, Ignore, LeaveOut, walk

LEFT_OUT: Final = "left-out.txt"
MAX_HOLE_BYTES: Final = 1 << 30
"""Of all files of an archive together: holes are packed as zeros, and cost their owner nothing."""
_MAX_LINES: Final = 1000
_LOGS: Final = frozenset({"stdout", "stderr"})


class LeftOut:
    """What could not be packed, and why; and how many bytes of holes were."""

    def __init__(self) -> None:
        self._name = LEFT_OUT
        self._lines: list[str] = []
        self._num_more = 0
        self._hole_bytes = 0

    def takes_holes(self, facts: os.stat_result) -> bool:
        """Count the holes of a file, unless they are too many with those before."""
        holes = max(0, facts.st_size - facts.st_blocks * 512)
        if self._hole_bytes + holes > MAX_HOLE_BYTES:
            return False
        self._hole_bytes += holes
        return True

    def avoid(self, name: str) -> None:
        """Take note of a name that is packed: the list gets another one. Names come in order."""
        self._name += "~" * (name == self._name)

    def __call__(self, name: str, why: str) -> None:
        if len(self._lines) < _MAX_LINES:
            self._lines.append(f"{shown(name)}: {why}\n")
        else:
            self._num_more += 1

    def add_to(self, archive: TarGzip) -> Iterator[bytes]:
        """Add the list to an archive, if there is anything to say."""
        if not self._lines:
            return
        more = [f"and {self._num_more:,} more\n"] if self._num_more else []
        text = "".join(self._lines + more).encode("utf-8", "replace")
        facts = os.stat_result((0o100644, 0, 0, 1, 0, 0, len(text), 0, 0, 0))
        yield from archive.add(self._name, facts, lambda offset, limit: text[offset : offset + limit])


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFolder:
    """A folder, and what of it is packed under which names."""

    folder: UntrustedPath
    prefix: str = ""
    """The names in the archive begin with it."""
    ignore: Ignore = lambda _name, _is_folder: False
    """By the way from the folder."""
    select: Callable[[int, FoundEntry, LeaveOut], bool] = lambda _top, _entry, _leave_out: True
    """Whether something is packed that is not ignored; asked once for each, in order, and may say why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFile:
    """A file of ours that is packed beside what somebody else has written."""

    name: str
    content: BinaryIO
    num_bytes: int
    changed_at: float

    @property
    def facts(self) -> os.stat_result:
        return os.stat_result((0o100644, 0, 0, 1, 0, 0, self.num_bytes, 0, int(self.changed_at), 0))

    def read_at(self, offset: int, limit: int) -> bytes:
        """Return bytes of it."""
        self.content.seek(offset)
        return self.content.read(limit)

    def close(self) -> None:
        """Forget it."""
        self.content.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFile:
    """One file that would be packed, open for reading, as it would be packed."""

    file: OpenFile
    content: "OpenFile | WithoutGaps"

    @property
    def num_bytes(self) -> int:
        """How long it was when it was opened."""
        return self.content.num_bytes

    def read_at(self, offset: int, limit: int) -> bytes:
        """Return at most `limit` bytes at an offset; empty at the end."""
        return self.content.read_at(offset, limit)

    def close(self) -> None:
        """Close it; called once."""
        self.file.close()


def pack(sources: Iterable[PackedFolder | MadeFile], missing: Iterable[tuple[str, str]] = ()) -> Iterator[bytes]:
    """Yield a tar.gz of what is in some folders, never more of a file than it had, and of files of ours.

    Args:
        sources: the folders and files.
        missing: names of what is not there any more, each with the reason; the archive says so.
    """
    archive, left_out = TarGzip(), LeftOut()
    for name, why in missing:
        left_out(name, why)
    for source in sources:
        if isinstance(source, MadeFile):
            yield from archive.add(source.name, source.facts, source.read_at)
        else:
            yield from add_folder(archive, source, left_out)
    yield from left_out.add_to(archive)
    yield archive.end()


def list_files(source: PackedFolder, leave_out: LeaveOut) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the names of the files that would be packed of a folder, as they would be called, and what is known."""
    for top, entry, owner in _found(source, leave_out):
        name = source.prefix + entry.name
        facts = _facts_of_log(top, entry, owner) if _is_log(name) else entry.facts
        if why := refusal(facts, owner) or hollowness(facts):
            leave_out(name, why)
        else:
            yield escape(name), facts


def open_packed(source: PackedFolder, packed: str) -> PackedFile:
    """Return the one file of a folder that would be packed under this name; who calls this closes it.

    Raises:
        UntrustedFile: what lies there would be left out.
        OSError: nothing would be packed under this name, or it cannot be read.
    """
    name = unescape(packed.removeprefix(source.prefix)) if packed.startswith(source.prefix) else None
    if name is None or not _is_packed(source, name):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), packed)
    with open_folder(source.folder) as top:
        facts = os.fstat(top)
        file = open_below(top, name, owner=None if facts.st_uid == os.geteuid() else facts.st_uid)
        try:
            content = _content(source.prefix + name, file)
            refused = [hollowness(content.facts)]
            if not source.select(top, FoundEntry(name, file.facts), lambda _name, why: refused.append(why)):
                refused.append("it is as it was submitted")
            if why := next(filter(None, refused), ""):
                raise UntrustedFile(why)
        except BaseException:
            file.close()
            raise
    return PackedFile(file=file, content=content)


def take_packed(path: UntrustedPath) -> PackedFile:
    """Return a file as it would be packed, open for reading; who calls this closes it.

    Raises:
        UntrustedFile: it would be left out, and why.
        OSError: it is not there, or cannot be read.
    """
    file = take_file(path)
    content = _content(path.inside, file)
    if why := hollowness(content.facts):
        file.close()
        raise UntrustedFile(why)
    return PackedFile(file=file, content=content)


def _is_packed(source: PackedFolder, name: str) -> bool:
    """Tell whether a name is the way to a file that is not ignored, spelled as a folder is walked."""
    parts = name.split("/")
    above = ["/".join(parts[:number]) for number in range(1, len(parts))]
    is_way = not any(part in ("", ".", "..") for part in parts)
    return is_way and not source.ignore(name, False) and not any(source.ignore(folder, True) for folder in above)


def add_folder(archive: TarGzip, source: PackedFolder, left_out: LeftOut) -> Iterator[bytes]:
    """Add what is in a folder to an archive."""
    for top, entry, owner in _found(source, left_out):
        yield from _add_entry(archive, top, entry, owner, (source.prefix, left_out))


def _found(source: PackedFolder, left_out: LeaveOut) -> Iterator[tuple[int, FoundEntry, int | None]]:
    """Yield what is to be packed of a folder, with the open folder, and whose it has to be (None: anybody's)."""

    def leave_out(name: str, why: str) -> None:
        left_out(source.prefix + name, why)

    try:
        with open_folder(source.folder) as top:
            facts = os.fstat(top)
            owner = None if facts.st_uid == os.geteuid() else facts.st_uid
            for entry in walk(top, ignore=source.ignore, leave_out=leave_out):
                if source.select(top, entry, leave_out):
                    yield top, entry, owner
    except FileNotFoundError:
        return
    except OSError as error:
        left_out(source.prefix or ".", f"it cannot be opened: {error.strerror or error}")


def _add_entry(
    archive: TarGzip, top: int, entry: FoundEntry, owner: int | None, where: tuple[str, LeftOut]
) -> Iterator[bytes]:
    prefix, left_out = where
    name = prefix + entry.name
    packed = escape(name)
    left_out.avoid(packed)
    try:
        file = open_below(top, entry.name, owner=owner)
    except OSError as error:
        left_out(name, error.strerror or str(error))
        return
    try:
        content = _content(name, file)
        why = hollowness(content.facts) or ("its name is too long" if too_long(PurePosixPath(packed)) else "")
        if why or not left_out.takes_holes(content.facts):
            left_out(name, why or "there are too many holes in files before it; write it without holes")
            return
        if packed != name:
            left_out(name, "its name is packed as it stands here")
        if lacking := (yield from archive.add(packed, content.facts, partial(_read_or_nothing, content))):
            left_out(name, f"it could not be read to its end: its last {lacking:,} bytes are zeros here")
    finally:
        file.close()


def _content(name: str, file: OpenFile) -> OpenFile | WithoutGaps:
    """Return what is packed of a file: of a log without its middle, what people read of it."""
    if not _is_log(name):
        return file
    log = WithoutGaps(file)
    return log if log.has_gaps else file


def _is_log(name: str) -> bool:
    return PurePosixPath(name).name in _LOGS and "log/" in name


def _facts_of_log(top: int, entry: FoundEntry, owner: int | None) -> os.stat_result:
    """Return what is known of a log as people read it; of what cannot be opened, what is known of the file."""
    try:
        file = open_below(top, entry.name, owner=owner)
    except OSError:
        return entry.facts
    try:
        return WithoutGaps(file).facts if has_holes(file.facts) else entry.facts
    finally:
        file.close()


def _read_or_nothing(file: OpenFile | WithoutGaps, offset: int, limit: int) -> bytes:
    try:
        return file.read_at(offset, limit)
    except OSError:
        return b""
