"""Algorithms for tests: a registry in memory, and a tiny program in place of the one that serves searches."""

import io
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.catalog.unconfined import Unconfined

from pliant.catalog.algorithms.check import AlgorithmCheck
from pliant.catalog.algorithms.folders import AlgorithmFolders
from pliant.catalog.algorithms.logs import AlgorithmLogs
from pliant.catalog.algorithms.use_cases import AlgorithmRequests
from pliant.catalog.algorithms.walls import AlgorithmWalls
from pliant.catalog.children.reach import ChildIsolation
from pliant.core.access import Principal, Role
from pliant.core.algorithm import Algorithm, AlgorithmSettings
from pliant.core.errors import InvalidInput
from pliant.core.registry import Kept
from pliant.core.search import Search
from pliant.entry.server.rooms.algorithms import read_found
from pliant.sim.clock import VirtualClock
from pliant.sim.registry import MemoryRegistry

ANNA, BEN = (Principal(name=name, role=Role.USER) for name in ("anna", "ben"))
ADMIN: Final = Principal(name="root", role=Role.ADMIN)
OPTIMIZER: Final = "class PluginOptimizer:\n    pass\n"
RUNS: Final = (
    "-c",
    "import sys; folder = sys.argv[-1]; exec(open(folder + '/optimizer.py').read())\n"
    'print(\'{"problem": "", "class": "PluginOptimizer", "has_state": true}\')',
)
"""Runs the code as a program, and says that it is fine."""


def packed(files: Mapping[str, str], path: Path) -> Path:
    """Write a tar.gz of these files."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


class Algorithms:
    """The use cases in a folder, with what a test needs of what is behind them."""

    def __init__(
        self,
        folder: Path,
        isolation: ChildIsolation | None = None,
        program: Sequence[str] = RUNS,
        limit_s: float = 60.0,
    ) -> None:
        self.folder = folder
        self.clock = VirtualClock()
        self.registry = MemoryRegistry()
        self.searches: list[Search] = []
        """Those that run or may be resumed."""
        runs = folder / "algorithm-runs"
        self.folders = AlgorithmFolders(folder / "algorithms", runs / "code")
        self.logs = AlgorithmLogs(runs / "logs")
        self.walls = AlgorithmWalls(
            folder=runs,
            isolation=isolation or Unconfined(),
            python=sys.executable,
            python_of=self._python_of,
            program=program,
        )
        self.walls.clean()
        self.requests = AlgorithmRequests(
            registry=self.registry,
            clock=self.clock,
            folders=self.folders,
            logs=self.logs,
            check=AlgorithmCheck(self.walls, read_found, limit_s),
            unknown_users=lambda names: [name for name in names if name not in ("anna", "ben")],
            unended=self._unended,
        )
        self._num_archives = 0

    def pack(self, code: str = OPTIMIZER, **files: str) -> Path:
        """Return an archive with this `optimizer.py` and other files."""
        self._num_archives += 1
        return packed({"optimizer.py": code, **files}, self.folder / f"{self._num_archives}.tar.gz")

    def install(
        self,
        code: str = OPTIMIZER,
        *,
        name: str = "mine",
        caller: Principal = ANNA,
        replace_it: bool = False,
        **settings: object,
    ) -> Kept[Algorithm]:
        """Install an algorithm of IBM's form."""
        given = AlgorithmSettings(**settings)  # type: ignore[arg-type]
        return self.requests.install(caller, name, given, self.pack(code), replace_it=replace_it)

    def archives(self) -> list[str]:
        """Return the checksums of all archives that are kept."""
        return sorted(path.name.removesuffix(".tar.gz") for path in (self.folder / "algorithms").glob("*"))

    @contextmanager
    def _unended(self) -> Iterator[Sequence[Search]]:
        yield tuple(self.searches)

    @staticmethod
    def _python_of(name: str, person: str) -> str:
        if name != "nlp":
            raise InvalidInput.at("environment", f"there is no environment {name!r}; list them")
        return sys.executable
