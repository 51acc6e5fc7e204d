"""Where a side lives while it has its turn: folders and processes of its own, on cores that the generator leaves."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.peers.processes import Processes, marked
from bench.peers.sides import free_port

SCRIPTS = Path(__file__).parent / "scripts"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Who computes where."""

    servers: frozenset[int]
    generator: frozenset[int]

    def __str__(self) -> str:
        if self.servers == self.generator:
            return f"servers and generator share {len(self.servers)} core(s)"
        return f"{len(self.servers)} core(s) for the servers, {len(self.generator)} for the generator"


def divide_cores(num_for_servers: int | None) -> Cores:
    """Return so many cores for the servers and one for the generator; None: all for both."""
    there = sorted(os.sched_getaffinity(0))
    if num_for_servers is None or len(there) <= num_for_servers:
        return Cores(servers=frozenset(there), generator=frozenset(there))
    return Cores(servers=frozenset(there[:num_for_servers]), generator=frozenset(there[-1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a side is given."""

    folder: Path
    processes: Processes
    environments: Path
    """One virtual environment per peer."""
    cores: Cores

    @contextmanager
    def as_server(self) -> Iterator[None]:
        """Start processes, in the block, on the cores of the servers."""
        os.sched_setaffinity(0, self.cores.servers)
        try:
            yield
        finally:
            os.sched_setaffinity(0, self.cores.generator)

    def processor_s(self) -> float:
        """Return the processor time that all of a side's processes have used."""
        started = {process.pid for process in self.processes.started}
        return sum(_processor_s(pid) for pid in {*marked(self.processes.mark), *_with_descendants(started)})

    def port(self) -> int:
        """Return a port that is free."""
        return free_port()


def _with_descendants(pids: set[int]) -> set[int]:
    """Return these processes and all that they have started: a kernel has an environment of its own, without a mark."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, newest = set(pids), set(pids)
    while newest := {pid for pid, parent in parents.items() if parent in newest} - found:
        found |= newest
    return found


def _processor_s(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND
    return 0.0


@contextmanager
def place(environments: Path, cores: Cores) -> Iterator[Place]:
    """Make a place, and leave nothing of it behind."""
    folder = Path(tempfile.mkdtemp(prefix="plb-"))
    processes = Processes(folder / "output.log")
    processes.output.touch()
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores.generator)
    try:
        yield Place(folder=folder, processes=processes, environments=environments, cores=cores)
    finally:
        os.sched_setaffinity(0, before)
        processes.end()
        with suppress(OSError):
            shutil.rmtree(folder)
