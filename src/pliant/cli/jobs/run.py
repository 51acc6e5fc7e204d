"""The command `run`: a script alone on this machine, with IBM's module names on its path and no server."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

import pliant
from pliant.core.errors import InvalidInput

_PACKAGE: Final = Path(pliant.__file__).parent


def run(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A Python file.", show_default=False)],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Passed to the script.", show_default=False)
    ] = None,
) -> None:
    """Run a script alone, without a server.

    It is the only worker of its training. Everything after SCRIPT belongs to the script.

    \b
    pliant run train.py --epochs 1
    """
    if not script.is_file():
        raise InvalidInput.at("SCRIPT", f"{str(script)!r} is not a file; check the path")
    environment = os.environ | {"PYTHONPATH": python_path(os.environ.get("PYTHONPATH", ""))}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, str(script), *(args or [])], environment)


def python_path(present: str) -> str:
    """Return the module path of a script: IBM's names first, then what was there, then Pliant itself."""
    given = [folder for folder in present.split(os.pathsep) if folder]
    return os.pathsep.join([str(_PACKAGE / "ibm" / "modules"), *given, str(_PACKAGE.parent)])
