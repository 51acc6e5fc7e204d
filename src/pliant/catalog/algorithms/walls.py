"""What a process that runs an algorithm may reach: its unpacked code, its Python, and a home that is removed after it.

It runs as who has installed the algorithm, whoever's search it chooses values for. It makes no sockets of the network,
sees nothing else of the server or of people, and has none of the server's variables.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pliant.catalog.children.child import ChildProgram
from pliant.catalog.children.reach import AsPerson, ChildIsolation, ChildReach
from pliant.catalog.children.work_folder import PREFIX, remove_strange, work_folder
from pliant.core.algorithm import AlgorithmCode
from pliant.files.space import translate_disk_errors
from pliant.files.untrusted.removal import empty_trash
from pliant.isolation.interpreter import reads_of_interpreter

PROGRAM: Final = ("-P", "-m", "pliant.entry.plugin")
_ITS_OWN: Final[Mapping[str, str]] = MappingProxyType({"PYTHONPATH": "", "PYTHONHOME": ""})
"""Empty, they count as not there: an environment's own packages come first, whatever the server was started with."""
_PASS_THROUGH: Final = 0o711


class AlgorithmWalls:
    """Says how the processes of algorithms are started. Safe to call from any thread.

    Args:
        folder: gets a folder for every process while it runs.
        isolation: keeps them within their reach.
        python: the server's own interpreter.
        python_of: returns the interpreter of an environment, by its name and who uses it; raises `InvalidInput`.
        program: what an interpreter is given to run an algorithm.
    """

    def __init__(
        self,
        *,
        folder: Path,
        isolation: ChildIsolation,
        python: str,
        python_of: Callable[[str, str], str],
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._folder = folder
        self._isolation = isolation
        self._python = python
        self._python_of = python_of
        self._program = program

    def clean(self) -> None:
        """Remove what a killed server has left; call before any process runs."""
        with translate_disk_errors(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(_PASS_THROUGH)
            for left in self._folder.glob(f"{PREFIX}*"):
                remove_strange(left)
            empty_trash(self._folder)

    @contextmanager
    def confined(
        self, code: AlgorithmCode, top: Path, *options: str, limit_s: float | None = None
    ) -> Iterator[tuple[ChildProgram, Path]]:
        """Yield the program of an algorithm within its walls, and its home, which is removed after.

        Args:
            code: which version of it.
            top: the folder of its code.
            options: come before the kind and the folder.
            limit_s: after this time it is to be ended.

        Raises:
            InvalidInput: its environment cannot be used.
            OSError: there is no room for it.
        """
        own = code.environment is None
        python = self._python if code.environment is None else self._python_of(code.environment, code.owner)
        user = AsPerson(code.owner)
        with work_folder(self._folder, self._isolation, user) as home:
            program = ChildProgram(
                command=[python, *self._program, *options, code.kind, str(top)],
                env={"PYTHONUNBUFFERED": "1", **({} if own else _ITS_OWN)},
                limit_s=limit_s,
            )
            reads = (str(top), *(() if own else reads_of_interpreter(python)))
            reach = ChildReach(user=user, home=home, reads=reads, has_network=False)
            yield self._isolation.confine(program, reach), home
