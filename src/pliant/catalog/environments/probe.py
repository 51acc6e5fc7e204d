"""Tries whether an interpreter can run tasks of this server, as the person whose tasks they are.

What an environment is, its files decide, and they are a stranger's: nothing of them is looked at, or run, by the
server's own user. First a program of Pliant's looks what lies where the person says; then the interpreter that it
found is run. Both are the person's processes, within bounds like those of the person's tasks.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from pliant import __version__
from pliant.catalog.children.child import Child, ChildProgram
from pliant.catalog.children.reach import AsPerson, ChildIsolation, ChildReach, ChildUser
from pliant.catalog.children.sinks import TailSink
from pliant.catalog.children.supervisor import CANNOT_RUN
from pliant.catalog.children.work_folder import work_folder
from pliant.catalog.environments import look_program
from pliant.catalog.environments.environment import BuildOutcome, last_lines
from pliant.catalog.environments.interpreters import EnvironmentNotFound, require_outside
from pliant.catalog.environments.look_program import Place, Sight
from pliant.isolation.launcher import CANNOT_ENTER

_LOOK_S: Final = 20.0
_MAX_FINGERPRINT: Final = 64
_NOT_RUN: Final = (CANNOT_ENTER, CANNOT_RUN)
_ITS_OWN: Final = {"PYTHONPATH": "", "PYTHONHOME": ""}
"""Empty, they count as not there: an environment's own packages come first, whatever the server was started with."""
_PROBE: Final = """
import json
import torch
import pliant.entry.task
print()
print(json.dumps([pliant.__version__, torch.__version__]))
"""


class EnvironmentProber:
    """Tries interpreters. Safe to call from any thread.

    Args:
        folder: gets a folder for every child while it runs.
        isolation: keeps children within their reach.
        closed: Pliant's own folder: what lies in it is no environment that somebody made.
        limit_s: how long an interpreter may take.
    """

    def __init__(self, *, folder: Path, isolation: ChildIsolation, closed: Path, limit_s: float) -> None:
        self.closed = closed
        self._folder = folder
        self._isolation = isolation
        self._limit_s = limit_s

    def probe_place(self, child: Child, place: Place, person: str, *, is_offered: bool = False) -> BuildOutcome:
        """Find the interpreter of an environment that somebody made, and try it; the rest is as for `look`.

        Raises:
            ChildStopped: before it was known.
            OSError: there is no room for it.
        """
        try:
            sight = self.look(child, place, AsPerson(person), is_offered=is_offered)
        except EnvironmentNotFound as error:
            return BuildOutcome(reason=str(error))
        outcome = self.probe(child, sight["python"], (sight["prefix"], *sight["base"]), person)
        return replace(outcome, fingerprint=sight["fingerprint"])

    def look(self, child: Child, place: Place, user: ChildUser, *, is_offered: bool = False) -> Sight:
        """Return what lies where somebody says.

        Args:
            child: runs the program that looks.
            place: where.
            user: as whom; what they cannot reach is not there.
            is_offered: the operator's own environment names the place, so it need not be open to this user.

        Raises:
            EnvironmentNotFound: nothing that the person could use.
            ChildStopped: before it was known.
            OSError: there is no room for it.
        """
        path = place["path"]
        require_outside(path, self.closed)
        out, err = TailSink(), TailSink()
        with work_folder(self._folder, self._isolation, user) as home:
            program = ChildProgram(
                command=[sys.executable, "-I", look_program.__file__],
                input=json.dumps(place).encode() + b"\n",
                limit_s=_LOOK_S,
                niceness=0,
            )
            reach = ChildReach(user=user, home=home, reads=(path,) if is_offered else (), runs_strangers=False)
            code = child.run(self._isolation.confine(program, reach), out, err)
        if code == CANNOT_ENTER:
            why = " ".join(last_lines(err.text, 1))
            raise EnvironmentNotFound(f"{path!r} could not be looked at: {why}; tell the server's administrator")
        sight = _parse_sight(out.text)
        if code != 0 or sight is None:
            raise EnvironmentNotFound(f"{path!r} could not be looked at; give the path of an environment on this disk")
        if sight["problem"]:
            raise EnvironmentNotFound(sight["problem"])
        for found in (sight["prefix"], sight["python"], *sight["base"]):
            require_outside(found, self.closed)
        return sight

    def probe(self, child: Child, python: str, reads: tuple[str, ...], person: str) -> BuildOutcome:
        """Try whether an interpreter can run tasks of this server.

        Raises:
            ChildStopped: before it was known.
            OSError: there is no room for it.
        """
        out, err = TailSink(), TailSink()
        with work_folder(self._folder, self._isolation, AsPerson(person)) as home:
            # not niced: a pool whose tasks keep all cores busy would let every try run into its limit
            program = ChildProgram(command=[python, "-c", _PROBE], env=_ITS_OWN, limit_s=self._limit_s, niceness=0)
            reach = ChildReach(user=AsPerson(person), home=home, reads=reads)
            try:
                code = child.run(self._isolation.confine(program, reach), out, err)
            except OSError as error:
                return BuildOutcome(reason=_not_run(python, error.strerror or str(error)))
        output = last_lines(err.text)
        reason = self._problem(python, code, output, last_lines(out.text, 1))
        return BuildOutcome(reason=reason, output=output) if reason else BuildOutcome(python=python)

    def _problem(self, python: str, code: int | None, output: tuple[str, ...], answer: tuple[str, ...]) -> str:
        """Return why an interpreter cannot run tasks; empty if it can."""
        install = f"{python} -m pip install pliant=={__version__}"
        if code is None:
            return f"{python} did not import Pliant and torch in {self._limit_s:g} s; try it there"
        if code in _NOT_RUN and output:
            return _not_run(python, output[-1])
        if code != 0:
            why = output[-1] if output else f"exit code {code}"
            return f"{python} cannot import Pliant and torch: {why}; install both there: {install}"
        version = _version_in(answer)
        if version is None:
            return f"{python} is no Python interpreter; name one"
        if version != __version__:
            return f"{python} has Pliant {version}, but this server is {__version__}; install that there: {install}"
        return ""


def _parse_sight(answer: str) -> Sight | None:
    """Return what the program that looks has said; None if it said nothing."""
    try:
        found = json.loads(last_lines(answer, 1)[0])
        return Sight(
            prefix=str(found["prefix"]),
            python=str(found["python"]),
            base=[str(path) for path in found["base"]],
            fingerprint=str(found["fingerprint"])[:_MAX_FINGERPRINT],
            problem=str(found["problem"]),
        )
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _not_run(python: str, why: str) -> str:
    return f"{python} cannot be run ({why}); name another interpreter"


def _version_in(answer: tuple[str, ...]) -> str | None:
    """Return the version of Pliant that an interpreter found; None if it did not run the program."""
    try:
        return str(json.loads(answer[-1])[0])[:100]
    except (IndexError, KeyError, TypeError, ValueError):
        return None
