"""Who and what lives for one state folder: processes, their threads and files, shared memory. It judges nothing."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process and what it holds."""

    pid: int
    role: str
    """server, gateway, zygote, or the name that a task gave itself."""
    state: str
    """As in /proc: R, S, T, Z, …"""
    num_threads: int
    files: Counter[str]
    """Open files by what they are: a path, `socket` or `pipe`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """One count."""

    processes: tuple[Process, ...]
    shared_memory: frozenset[str]

    def role(self, role: str) -> tuple[Process, ...]:
        return tuple(process for process in self.processes if process.role == role)

    @property
    def tasks(self) -> tuple[Process, ...]:
        return tuple(process for process in self.processes if process.role not in ("server", "gateway", "zygote", "up"))


def count(home: Path) -> Census:
    """Count what lives for this state folder: whoever has it on its command line or in its environment."""
    return Census(
        processes=tuple(_processes(str(home))),
        shared_memory=frozenset(_shared_memory(home)),
    )


def _shared_memory(home: Path) -> Iterator[str]:
    """Yield what the agent of this state folder keeps, and what processes that have ended left of torch's."""
    named = home / "agent" / "memory"
    owner = named.read_text() if named.exists() else "?"
    paths = (Path(folder, name) for folder, folders, files in os.walk(SHARED_MEMORY) for name in (*folders, *files))
    for path in paths:  # what others remove meanwhile is none: `rglob` would raise
        torch_pid = re.match(r"torch_(\d+)_", path.name)
        theirs = owner in path.parts[:-1] and path.name != "owner"
        if theirs or (torch_pid is not None and not Path("/proc", torch_pid[1]).exists()):
            yield str(path)


def _processes(home: str) -> Iterator[Process]:
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        with suppress(OSError):  # it has ended meanwhile, or is somebody else's
            folder = Path("/proc", name)
            words = folder.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
            belongs = any(home in word for word in words)
            if not belongs and home.encode() not in folder.joinpath("environ").read_bytes():
                continue
            yield process(int(name))


def process(pid: int) -> Process:
    """Return what one process holds.

    Raises:
        OSError: it has ended.
    """
    folder = Path("/proc", str(pid))
    words = folder.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
    state = folder.joinpath("stat").read_text().rpartition(")")[2].split()[0]
    return Process(
        pid=pid,
        role=_role(words, folder.joinpath("comm").read_text().strip()),
        state=state,
        num_threads=len(os.listdir(folder / "task")),
        files=Counter(_files(folder / "fd")),
    )


def resident_bytes(pid: int) -> float:
    """Return how much memory a process has.

    Raises:
        OSError: it has ended.
    """
    return float(Path("/proc", str(pid), "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _role(words: list[str], comm: str) -> str:
    if comm.startswith("job-"):
        return comm
    line = " ".join(words)
    if "pliant.entry.zygote" in line:
        return "zygote"
    if "pliant.entry.gateway" in line:
        return "gateway"
    if "pliant.entry.server" in line or "pliant.cli.app" in line:
        return "server"
    return comm


def _files(folder: Path) -> Iterator[str]:
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            yield re.sub(r":\[\d+\]$", "", os.readlink(folder / name))


def more(before: Process, after: Process) -> list[str]:
    """Return what a process holds that it did not hold before, one sentence each."""
    found = [
        f"{after.role} {after.pid} has {number} more open: {what}"
        for what, number in (after.files - before.files).items()
    ]
    if after.num_threads > before.num_threads:
        found.append(f"{after.role} {after.pid} has {after.num_threads} threads, {before.num_threads} before")
    return found
