"""What /proc says of one process while it lives: its user, its rights, what it sees, and what it has open."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ESCAPE: Final = re.compile(r"\\(\d{3})")
_WRITES: Final = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """One descriptor."""

    link: str
    """What it leads to: a path, or `socket:[INODE]` and the like."""
    is_writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPoint:
    """What is mounted at a place."""

    path: str
    is_read_only: bool
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """One process, as it was when it was looked at."""

    pid: int
    uid: int
    capabilities: int
    has_new_privileges: bool
    """It could gain rights by a program of another user's."""
    mounts: str
    """The name of its mount namespace."""
    seen: tuple[MountPoint, ...]
    files: tuple[OpenFile, ...]
    environment: Mapping[str, str]
    command: tuple[str, ...]


def look_at(pid: int) -> ProcessFacts:
    """Return what a process is and has.

    Raises:
        OSError: it has ended, or this user may not look.
    """
    place = Path(f"/proc/{pid}")
    fields = dict(line.partition(":\t")[::2] for line in (place / "status").read_text().splitlines())
    uids = set(fields["Uid"].split())
    assert len(uids) == 1, f"process {pid} has several users: {fields['Uid']}"
    environment = (place / "environ").read_bytes().decode(errors="replace").split("\0")
    return ProcessFacts(
        pid=pid,
        uid=int(uids.pop()),
        capabilities=int(fields["CapPrm"], 16) | int(fields["CapEff"], 16),
        has_new_privileges=fields["NoNewPrivs"] == "0",
        mounts=os.readlink(place / "ns" / "mnt"),
        seen=tuple(_mounts(place)),
        files=tuple(_files(place)),
        environment=dict(pair.partition("=")[::2] for pair in environment if pair),
        command=tuple(command_of(pid)),
    )


def command_of(pid: int) -> list[str]:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def children_of(pid: int) -> list[int]:
    """Return the processes that a process, any of its threads, has started and not waited for."""
    found = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += [int(one) for one in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
    return found


def below(pid: int) -> Iterator[int]:
    """Yield all processes below one."""
    for child in children_of(pid):
        yield child
        yield from below(child)


def is_within_reach(pid: int, path: Path) -> bool:
    """Tell whether a file is there for a process, and its modes let the process read it."""
    facts = look_at(pid)
    try:
        found = os.stat(f"/proc/{pid}/root{path}")
    except OSError:
        return False
    return facts.uid in (0, found.st_uid) or bool(found.st_mode & stat.S_IROTH)


def open_links(pid: int) -> list[str]:
    """Return what the descriptors of a process lead to."""
    found = []
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def _mounts(place: Path) -> Iterator[MountPoint]:
    for line in (place / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        path, options = before.split()[4:6]
        path = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), path)
        yield MountPoint(path=path, is_read_only="ro" in options.split(","), kind=after.split()[0])


def _files(place: Path) -> Iterator[OpenFile]:
    for name in sorted(os.listdir(place / "fd"), key=int):
        with suppress(FileNotFoundError):  # closed meanwhile
            flags = int((place / "fdinfo" / name).read_text().split("flags:")[1].split()[0], 8)
            yield OpenFile(link=os.readlink(place / "fd" / name), is_writable=bool(flags & _WRITES))
