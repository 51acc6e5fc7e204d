"""Runs a program inside a confinement: a command line that enters it and then becomes the program.

For processes that are not tasks: whoever looks at an interpreter, or builds an environment. What the command line tells
is no secret. Exit code 126 and a line on stderr mean that the confinement could not be entered.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pliant
from pliant.core.confinement import Confinement, RunAs
from pliant.isolation.enter import enter, missing

CANNOT_ENTER: Final = 126
_PROGRAM: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from pliant.isolation.launcher import main; main()"


def confined(command: Sequence[str], confinement: Confinement) -> list[str]:
    """Return a command line that runs a command inside a confinement."""
    packages = str(Path(pliant.__file__).parent.parent)
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, packages, json.dumps(asdict(confinement)), *command]


def _read(text: str) -> Confinement:
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(text).items()}
    user = given.pop("user")
    return Confinement(user=None if user is None else RunAs(**user), **given)


def probing(confinement: Confinement) -> list[str]:
    """Return a command line that tries a confinement and prints what came of it, as JSON."""
    return confined((), confinement)


def main() -> None:
    """Enter the confinement that the first argument says, and become the program that the others say."""
    given, *command = sys.argv[1:]
    try:
        entered = enter(_read(given))
    except OSError as error:
        print(f"cannot be isolated: {error}", file=sys.stderr)
        raise SystemExit(CANNOT_ENTER) from error
    if not command:
        print(json.dumps({**asdict(entered), "missing": missing(entered)}))
        return
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} cannot be run: {error.strerror}", file=sys.stderr)
        raise SystemExit(127) from error
