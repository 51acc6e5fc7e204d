"""Algorithms when the server starts: where their code lies, what tries it, and the processes that choose values by it.

Such a process runs as who has installed the algorithm, within walls, below a supervisor that ends what it starts. Its
home is there as long as it is.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pliant.catalog.algorithms.check import AlgorithmCheck, FoundAlgorithm
from pliant.catalog.algorithms.folders import AlgorithmFolders
from pliant.catalog.algorithms.logs import AlgorithmLogs
from pliant.catalog.algorithms.use_cases import AlgorithmRequests, UnendedSearches
from pliant.catalog.algorithms.walls import PROGRAM, AlgorithmWalls
from pliant.catalog.children.child import NICENESS
from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.children.supervisor import END_S, supervised
from pliant.catalog.environments.use_cases import EnvironmentCatalog
from pliant.core.algorithm import AlgorithmCode, AlgorithmSettings
from pliant.core.errors import UserError
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.core.search import Trial
from pliant.core.size import size
from pliant.core.space import Values
from pliant.files.space import cause_of
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import measure
from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput, AdviserLost, Asked, Exhausted, Judgement
from pliant.tune.adviser_process import AdviserProgram
from pliant.tune.plugins.found_code import decode_found
from pliant.tune.plugins.plugin_adviser import PluginAdviser

ARCHIVES = "algorithms"
"""In the state folder: what was sent."""
RUNS = "algorithm-runs"
"""What is made of it, and what it prints."""
MAX_HOME_BYTES: Final = 1 << 30
"""Of what a process may have written when it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRoom:
    """All that keeps and runs algorithms, of one server."""

    requests: AlgorithmRequests
    folders: AlgorithmFolders
    logs: AlgorithmLogs
    walls: AlgorithmWalls

    def start(self, searches: Collection[str]) -> None:
        """Remove what a killed server has left, and what nobody needs; `searches` are the names of all."""
        self.walls.clean()
        self.requests.sweep()
        self.logs.sweep(searches)

    def open_adviser(self, opening: AdviserInput, code: AlgorithmCode) -> Adviser:
        """Return what chooses the values of a search by an algorithm.

        Raises:
            AdviserFailure: it is gone, or its environment cannot be used.
            AdviserLost: its process cannot be started.
        """
        name = opening.settings.sampler.name
        installed = self.requests.find(name, code.owner)
        settings = AlgorithmSettings() if installed is None else installed
        level = settings.log_level.upper()
        with ExitStack() as stack:
            try:
                top = self.folders.unpacked(code.checksum)
                program, home = stack.enter_context(self.walls.confined(code, top, "--log-level", level))
            except UserError as error:
                raise AdviserFailure(f"the algorithm {name} cannot be run: {error}") from error
            except OSError as error:
                raise AdviserLost(f"the algorithm {name} cannot be started: {cause_of(error)}") from error
            process = PluginAdviser(
                opening,
                AdviserProgram(
                    command=supervised(program.command, niceness=NICENESS),
                    env=dict(program.env or {}),
                    deadline_s=settings.deadline_s,
                    called=f"the algorithm {name}",
                    printed=partial(self.logs.append, opening.name),
                    end_s=END_S,
                ),
            )
            return AlgorithmAdviser(process, name, home, stack.pop_all())


def read_found(line: bytes) -> FoundAlgorithm:
    """Return what the process of an algorithm has found in its code.

    Raises:
        ValueError: it says nothing of the kind.
    """
    found = decode_found(line)
    return FoundAlgorithm(problem=found.problem, class_name=found.name, has_state=found.has_state)


class AlgorithmAdviser:
    """An adviser in a process of its own, with a home that is bounded, and that is removed when the process ends."""

    def __init__(self, process: PluginAdviser, name: str, home: Path, stack: ExitStack) -> None:
        self._process = process
        self._name = name
        self._home = UntrustedPath(home.parent, home.name)
        self._stack = stack

    def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        """Return values for the trial of this number."""
        answer = self._process.ask(number, changed, given)
        self._refuse_much()
        return answer

    def judge(self, number: int, changed: Sequence[Trial]) -> Judgement:
        """Return whether a trial should end after its newest report."""
        answer = self._process.judge(number, changed)
        self._refuse_much()
        return answer

    def importances(self) -> Mapping[str, float]:
        """Return what it says; Pliant asks a sampler that is built in."""
        return self._process.importances()

    def close(self) -> None:
        """End the process with all that it has started, and remove its home."""
        self._process.close()
        self._stack.close()

    def _refuse_much(self) -> None:
        if (num_bytes := measure(self._home)) > MAX_HOME_BYTES:
            raise AdviserFailure(
                f"the algorithm {self._name} has written {size(num_bytes)} into its home, and {size(MAX_HOME_BYTES)} "
                f"is the most; let it keep what it needs in memory, or in its state"
            )


def open_algorithms(
    registry: Registry,
    clock: Clock,
    home: Path,
    environments: EnvironmentCatalog,
    children: ChildIsolation,
    knows: Callable[[str], bool],
    unended: UnendedSearches,
) -> AlgorithmRoom:
    """Return the algorithms of a server's home; nothing runs before somebody installs one.

    Args:
        knows: tells whether there is such a user.
        unended: which searches run or may be resumed.
    """

    def unknown_users(names: Collection[str]) -> Collection[str]:
        return [name for name in names if not knows(name)]

    runs = home / RUNS
    folders, logs = AlgorithmFolders(home / ARCHIVES, runs / "code"), AlgorithmLogs(runs / "logs")
    walls = AlgorithmWalls(
        folder=runs, isolation=children, python=sys.executable, python_of=environments.interpreter, program=PROGRAM
    )
    requests = AlgorithmRequests(
        registry=registry,
        clock=clock,
        folders=folders,
        logs=logs,
        check=AlgorithmCheck(walls, read_found),
        unknown_users=unknown_users,
        unended=unended,
    )
    return AlgorithmRoom(requests=requests, folders=folders, logs=logs, walls=walls)
