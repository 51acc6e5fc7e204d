"""Measures what somebody's files hold on the disk: those in their folders, and those that their processes keep open.

Theory of operation
-------------------

A tree is gone through from above, with one folder open for every level: each is listed a few names at a time, so that
neither a folder of millions of names nor millions of folders take any memory. Nothing is opened but folders, below the
ones above them and on the same disk; links are not followed. Blocks count, not lengths: a hole holds nothing. A file
with several names counts once.

A file that was removed stays on the disk for as long as a process has it open or mapped. Such files are found through
/proc; which is as far as this user may look: root sees all of them, others not those of a process that has made itself
invisible (`PR_SET_DUMPABLE`).

Whoever owns the files may make millions of them, nest them without end, or close folders. So there are bounds: who is
beyond one holds too much, whatever it is. Root lists closed folders; anybody else opens their own first.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pliant.files.untrusted.beneath import open_beneath
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.path import UntrustedPath

_BLOCK_BYTES: Final = 512
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_PLACE: Final = os.O_PATH | os.O_DIRECTORY
_OPEN: Final = stat.S_IRUSR | stat.S_IXUSR


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimits:
    """How much is looked at."""

    max_entries: int = 5_000_000
    """Files, folders and open files together."""
    max_depth: int = 400
    """Folders in each other; two descriptors are open for each."""
    max_names: int = 500_000
    """So many files with several names, or none, are remembered."""
    max_s: float = 40.0


USAGE_LIMITS: Final = UsageLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """What was found."""

    num_bytes: int = 0
    num_entries: int = 0
    is_too_deep: bool = False
    """Folders lie deeper than any are looked at."""
    is_whole: bool = True
    """All was looked at; else it took too long, and there is as much at least."""


@dataclass(slots=True)
class _Level:
    """A folder that is being listed."""

    folder: int
    entries: "os._ScandirIterator[str]"

    def close(self) -> None:
        self.entries.close()
        os.close(self.folder)


class UsageMeter:
    """Adds up what several folders and processes hold; what is in two of them counts once."""

    def __init__(self, limits: UsageLimits = USAGE_LIMITS, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._until = monotonic() + limits.max_s
        self._disks: set[int] = set()
        self._names: set[tuple[int, int]] = set()
        self._num_bytes = self._num_entries = 0
        self._is_too_deep = False
        self._is_late = False

    @property
    def usage(self) -> DiskUsage:
        """What was found so far."""
        return DiskUsage(
            num_bytes=self._num_bytes,
            num_entries=self._num_entries,
            is_too_deep=self._is_too_deep,
            is_whole=not self._is_late,
        )

    def add_folder(self, path: UntrustedPath) -> None:
        """Add a folder with all that is below it; what is not there, or cannot be listed, holds nothing."""
        with suppress(OSError), open_folder(path) as top:
            facts = os.fstat(top)
            self._disks.add(facts.st_dev)
            self._add(facts)
            self._walk(top, facts.st_dev)

    def add_open_files(self, pids: Iterable[int]) -> None:
        """Add the files without a name that these processes keep, on the disks of the folders that were added."""
        for pid in pids:
            for link in (*_links(f"/proc/{pid}/fd"), *_removed_but_mapped(pid)):
                if not self._goes_on():
                    return
                self._num_entries += 1
                with suppress(OSError):  # it was closed meanwhile, or is not ours to see
                    facts = os.stat(link)
                    if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0 and facts.st_dev in self._disks:
                        self._add_once(facts)

    def _walk(self, top: int, disk: int) -> None:
        levels: list[_Level] = []
        try:
            levels.append(_listing(top, "."))
            while levels and self._goes_on():
                level = levels[-1]
                if (entry := _next(level.entries)) is None:
                    levels.pop().close()
                    continue
                self._num_entries += 1
                with suppress(OSError):  # it was removed meanwhile, or is not ours to see
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_dev != disk:
                        continue
                    self._add(facts)
                    if stat.S_ISDIR(facts.st_mode) and self._may_descend(len(levels)):
                        levels.append(_listing(level.folder, entry.name))
        finally:
            for level in levels:
                level.close()

    def _may_descend(self, depth: int) -> bool:
        self._is_too_deep = self._is_too_deep or depth >= self._limits.max_depth
        return not self._is_too_deep

    def _goes_on(self) -> bool:
        if self._num_entries % 1000 == 0 and self._monotonic() > self._until:
            self._is_late = True
        return not self._is_late and self._num_entries <= self._limits.max_entries

    def _add(self, facts: os.stat_result) -> None:
        if facts.st_nlink > 1 and not stat.S_ISDIR(facts.st_mode):
            self._add_once(facts)
        else:
            self._num_bytes += facts.st_blocks * _BLOCK_BYTES

    def _add_once(self, facts: os.stat_result) -> None:
        held = facts.st_blocks * _BLOCK_BYTES
        file = (facts.st_dev, facts.st_ino)
        if file in self._names:
            return
        if len(self._names) < self._limits.max_names:
            self._names.add(file)
            self._num_bytes += held
        else:  # by all its names together it counts once
            self._num_bytes += held // max(1, facts.st_nlink)


def _listing(above: int, name: str) -> _Level:
    """Begin to list a folder.

    Raises:
        OSError: it is no folder (any more), lies on another disk, or cannot be listed.
    """
    if os.geteuid() != 0:
        _open_up(above, name)
    folder = open_beneath(above, name, _LIST)
    try:
        return _Level(folder, os.scandir(folder))
    except OSError:
        os.close(folder)
        raise


def _open_up(above: int, name: str) -> None:
    """Let us list a folder of ours that was closed."""
    place = open_beneath(above, name, _PLACE)
    try:
        mode = stat.S_IMODE(os.fstat(place).st_mode)
        if mode & _OPEN != _OPEN:
            with suppress(OSError):  # it is not ours
                os.chmod(f"/proc/self/fd/{place}", mode | _OPEN)
    finally:
        os.close(place)


def _next(entries: Iterator["os.DirEntry[str]"]) -> "os.DirEntry[str] | None":
    try:
        return next(entries, None)
    except OSError:  # the disk does not tell the rest
        return None


def _links(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry.path


def _removed_but_mapped(pid: int) -> Iterator[str]:
    """Yield links to the files that a process has mapped and that are said to have lost their names; for root alone."""
    with suppress(OSError), open(f"/proc/{pid}/maps", "rb") as maps:
        for line in maps:
            if line.endswith(b" (deleted)\n"):
                begin, _, end = line.split(b" ", 1)[0].partition(b"-")
                yield f"/proc/{pid}/map_files/{int(begin, 16):x}-{int(end, 16):x}"
