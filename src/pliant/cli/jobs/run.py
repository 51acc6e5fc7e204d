"""The command `run`: a script alone on this machine, with IBM's module names on its path and no server."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

import pliant
from pliant.api.jobs import JobRequest
from pliant.cli.fields import Given, ask, options_of, takes
from pliant.cli.options import JOB
from pliant.cli.problems import validate
from pliant.core.errors import InvalidInput
from pliant.core.task_environment import LoneTask

_PACKAGE: Final = Path(pliant.__file__).parent
_ASKED: Final = {"virtual_workers": ask("Parts of the batch; default: as few as it can have."), "mode": JOB["mode"]}


@takes(options_of(LoneTask, _ASKED))
def run(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A Python file.", show_default=False)],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Passed to the script.", show_default=False)
    ] = None,
    *,
    given: Given,
) -> None:
    """Run a script alone, without a server.

    It is the only worker of its training, and comes to what it comes to when it
    is submitted with as many virtual workers. Everything after SCRIPT belongs to
    the script.

    \b
    pliant run train.py --epochs 1
    pliant run --virtual-workers 8 train.py    # the bits of submit with as many
    """
    if not script.is_file():
        raise InvalidInput.at("SCRIPT", f"{str(script)!r} is not a file; check the path")
    asked = validate(JobRequest, {"script": script.name, **given}).spec()
    settings = LoneTask(virtual_workers=asked.virtual_workers, mode=asked.mode)
    environment = os.environ | {"PYTHONPATH": python_path(os.environ.get("PYTHONPATH", ""))} | settings.to_env()
    sys.stdout.flush()
    argv = [sys.executable, "-P", "-m", "pliant.entry.alone", str(script), *(args or [])]
    os.execve(argv[0], argv, environment)


def python_path(present: str) -> str:
    """Return the module path of a script: IBM's names first, then what was there, then Pliant itself."""
    given = [folder for folder in present.split(os.pathsep) if folder]
    return os.pathsep.join([str(_PACKAGE / "ibm" / "modules"), *given, str(_PACKAGE.parent)])
