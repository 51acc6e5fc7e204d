"""Tries an algorithm before it is installed: its process loads it, within its walls, and says what it has found."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.catalog.algorithms.walls import AlgorithmWalls
from pliant.catalog.children.child import Child
from pliant.catalog.children.sinks import TailSink
from pliant.core.algorithm import AlgorithmCode
from pliant.core.errors import InvalidInput, Unavailable
from pliant.files.space import cause_of
from pliant.isolation.launcher import CANNOT_ENTER

LIMIT_S: Final = 120.0
"""A first import of a large library takes a while on a machine whose tasks keep it busy."""
_MAX_RUNNING: Final = 2
_PATIENCE_S: Final = 60.0
_NUM_LINES: Final = 30
_MAX_LINE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAlgorithm:
    """What the process has found in the code."""

    problem: str = ""
    """Why it cannot be used; empty if it can."""
    class_name: str
    has_state: bool


class AlgorithmCheck:
    """Tries algorithms, a few at once. Safe to call from any thread.

    Args:
        walls: say how their processes are started.
        read: understands the line that a process says what it has found by; raises `ValueError` if it is none.
        limit_s: how long a process may take.
    """

    def __init__(
        self, walls: AlgorithmWalls, read: Callable[[bytes], FoundAlgorithm], limit_s: float = LIMIT_S
    ) -> None:
        self._walls = walls
        self._read = read
        self._limit_s = limit_s
        self._turns = threading.BoundedSemaphore(_MAX_RUNNING)

    def __call__(self, code: AlgorithmCode, top: Path) -> FoundAlgorithm:
        """Return what is found in the code at this folder.

        Raises:
            InvalidInput: it cannot be used; with what it printed.
            Unavailable: too many others are tried now, or no process can be started.
        """
        if not self._turns.acquire(timeout=_PATIENCE_S):
            raise Unavailable("other algorithms are tried now; install it again in a minute")
        out, err = TailSink(), TailSink()
        try:
            with self._walls.confined(code, top, "--check", limit_s=self._limit_s) as (program, _):
                exit_code = Child().run(program, out, err)
        except OSError as error:
            raise Unavailable(f"the algorithm cannot be tried ({cause_of(error)}); install it again later") from error
        finally:
            self._turns.release()
        return self._found(exit_code, out.text, err.text)

    def _found(self, exit_code: int | None, out: str, err: str) -> FoundAlgorithm:
        said = _last_lines(err)
        if exit_code is None:
            raise _wrong(f"it was not loaded after {self._limit_s:g} s; let it compute when it is asked", said)
        if exit_code == CANNOT_ENTER:
            raise _wrong("it could not be run within its walls; tell the server's administrator", said)
        try:
            found = self._read(out.strip().rpartition("\n")[2].encode())
        except ValueError:
            message = f"its process ended with exit code {exit_code} before it was loaded; mend the code"
            raise _wrong(message, said) from None
        if found.problem:
            raise _wrong(found.problem, said)
        return found


def _wrong(message: str, said: str) -> InvalidInput:
    return InvalidInput.at("code", f"{message}\nit printed:\n{said}" if said else message)


def _last_lines(text: str) -> str:
    """Return the last lines of what was printed that say anything, each of them cut, as plain text."""
    lines = [line.rstrip()[:_MAX_LINE] for line in text.splitlines() if line.strip()]
    return "\n".join(map(_plain, lines[-_NUM_LINES:]))


def _plain(text: str) -> str:
    """Return a stranger's text without what a terminal would obey."""
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text)
