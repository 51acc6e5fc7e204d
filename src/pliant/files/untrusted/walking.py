"""Lists and measures what lies below a folder that somebody else writes to.

A folder is opened from the top for every look, so two descriptors are enough for any tree, and what is moved meanwhile
is looked for where it was. Links are listed, never followed.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.path import UntrustedPath

_BLOCK_BYTES: Final = 512
_SPARSE_BYTES: Final = 64 << 20
"""A file of this size or less is taken to need as many bytes as it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkLimits:
    """How much of a tree is looked at; what is beyond is left out."""

    max_entries: int = 200_000
    """Files and folders together."""
    max_depth: int = 100
    max_name_bytes: int = 32 << 20
    """Of all names together."""


WALK_LIMITS: Final = WalkLimits()

LeaveOut = Callable[[str, str], None]
"""Called with what is left out, by its way from the top, and why."""
Ignore = Callable[[str, bool], bool]
"""Called with the way to something, and whether it is a folder; true if nobody wants it, nor what is below it."""


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """Something, as it was when it was listed."""

    name: str
    """Its way from the top; bytes that are no UTF-8 are lone surrogates."""
    facts: os.stat_result

    @property
    def is_file(self) -> bool:
        """Whether it was a plain file."""
        return stat.S_ISREG(self.facts.st_mode)


def walk(
    top: int,
    *,
    exclude: frozenset[str] = frozenset(),
    ignore: Ignore = lambda _name, _is_folder: False,
    limits: WalkLimits = WALK_LIMITS,
    leave_out: LeaveOut = lambda _name, _why: None,
    with_folders: bool = False,
) -> Iterator[FoundEntry]:
    """Yield all that is below an open folder and no folder, but for top-level names in `exclude`, in order of names.

    Files that lie in a folder come before those that lie deeper, and the folder itself before them, if folders are
    wanted. What cannot be listed is left out; what is to be ignored is passed over without a word.
    """
    left = _Left(limits)
    waiting = [""]
    while waiting:
        where = waiting.pop()
        try:
            entries, folders = _list(top, where, frozenset() if where else exclude, left)
        except OSError as error:
            leave_out(where or ".", f"it cannot be listed: {error.strerror}")
            continue
        if left.is_used_up:
            leave_out(where or ".", f"the folder holds too much: {limits.max_entries:,} files and folders are taken")
            waiting, folders = [], []
        for folder in reversed(folders):
            if ignore(folder.name, True):
                continue
            if folder.name.count("/") < limits.max_depth:
                waiting.append(folder.name)
                if with_folders:
                    yield folder
            else:
                leave_out(folder.name, f"it lies more than {limits.max_depth} folders deep")
        yield from (entry for entry in entries if not ignore(entry.name, False))


def list_folder(path: UntrustedPath, *, max_entries: int = 10_000) -> list[tuple[str, os.stat_result]]:
    """Return the names in a folder, in order, with what was found there; nothing if it cannot be listed."""
    with suppress(OSError), open_folder(path) as top:
        folder = open_beneath(top, "", os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
        try:
            return list(_facts(folder, _names(folder, max_entries)))
        finally:
            os.close(folder)
    return []


def is_folder(path: UntrustedPath) -> bool:
    """Tell whether a folder is there, and no link stands in its path."""
    with suppress(OSError), open_folder(path):
        return True
    return False


def files_below(folder: UntrustedPath) -> list[str]:
    """Return the names of all plain files below a folder, by their ways from there; nothing if it cannot be listed."""
    with suppress(OSError), open_folder(folder) as top:
        return [entry.name for entry in walk(top) if entry.is_file]
    return []


def measure(folder: UntrustedPath, *, exclude: frozenset[str] = frozenset()) -> int:
    """Return how many bytes the disk holds for all files below a folder, but for top-level names in `exclude`.

    Links count as nothing, and so does what cannot be listed.
    """
    with suppress(OSError), open_folder(folder) as top:
        return sum(_held_bytes(entry.facts) for entry in walk(top, exclude=exclude) if entry.is_file)
    return 0


def _held_bytes(facts: os.stat_result) -> int:
    if facts.st_size <= _SPARSE_BYTES:
        return facts.st_size
    return min(facts.st_size, facts.st_blocks * _BLOCK_BYTES)


class _Left:
    """How much of a tree may still be looked at."""

    def __init__(self, limits: WalkLimits) -> None:
        self.entries = limits.max_entries
        self.name_bytes = limits.max_name_bytes
        self.is_used_up = False

    def take(self, name: str) -> bool:
        """Count a name; tell whether it is still taken."""
        self.entries -= 1
        self.name_bytes -= len(name)
        self.is_used_up = self.is_used_up or self.entries < 0 or self.name_bytes < 0
        return not self.is_used_up


def _list(top: int, where: str, exclude: frozenset[str], left: _Left) -> tuple[list[FoundEntry], list[FoundEntry]]:
    """Return the entries of one folder, and the folders in it.

    Raises:
        OSError: it is no folder (any more), or cannot be listed.
    """
    folder = open_beneath(top, where, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
    try:
        names = [name for name in _names(folder, left.entries + 1) if name not in exclude and left.take(name)]
        entries: list[FoundEntry] = []
        folders: list[FoundEntry] = []
        for name, facts in _facts(folder, names):
            found = FoundEntry(f"{where}/{name}" if where else name, facts)
            (folders if stat.S_ISDIR(facts.st_mode) else entries).append(found)
        return entries, folders
    finally:
        os.close(folder)


def _names(folder: int, limit: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in islice(entries, limit))


def _facts(folder: int, names: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    for name in names:
        with suppress(OSError):  # it was removed meanwhile
            yield name, os.stat(name, dir_fd=folder, follow_symlinks=False)
