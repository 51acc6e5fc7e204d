"""Which script of the code is run, in which environment, and what to know of the code before it is sent."""

import os
import re
from pathlib import Path
from typing import Final

from pliant.api.jobs import JobRequest
from pliant.cli.options import names_folder, whole_path
from pliant.cli.screen import say, say_notes
from pliant.client.folders.requirements import REQUIREMENTS
from pliant.client.folders.script import find_script
from pliant.core.errors import InvalidInput
from pliant.core.near_name import near_name

FILE_SUFFIXES: Final = (".yaml", ".yml", ".json")
"""Of files that say what a command is asked for."""
_IMPORT: Final = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


def is_job_file(path: Path) -> bool:
    """Tell whether what is submitted is a file that says what is asked for, and not code."""
    return path.suffix in FILE_SUFFIXES and not path.is_dir()


def warn_of_parts(request: JobRequest) -> None:
    """Warn if the number of parts that was asked for leaves tasks idle for a part of every step at some sizes."""
    if request.fixed or request.mode == "fast" or request.virtual_workers is None:
        return
    from pliant.cli.jobs.plan import bad_division  # few ask for a number

    if said := bad_division(request.virtual_workers, request.min_tasks, request.max_tasks):
        say_notes([said])


def script_of(code: Path, given: str | None) -> str:
    """Return the script to run, relative to what is packed.

    Raises:
        InvalidInput: there is no such path, or it is not clear which script is meant.
    """
    if code.is_file():
        if given is not None and given != code.name:
            raise _unclear(
                f"{str(code)!r} is a file and is packed alone; leave --script out or give its folder as PATH"
            )
        return code.name
    if not code.is_dir():
        near = near_name(code.name, _names_in(code.parent))
        meant = "check the path" if near is None else f"is {str(code.with_name(near))!r} meant?"
        raise InvalidInput.at("PATH", f"{str(code)!r} is neither a folder nor a file; {meant}")
    if given is not None:
        return given
    return find_script(code)


def environment_of(code: Path, environment: str | None, requirements: str | None) -> str | None:
    """Return the environment that `submit` asks for: a name, a whole path, `conda:…`, or a file of what is packed.

    Raises:
        InvalidInput: both are given, or the file lies elsewhere.
    """
    if requirements is None:
        is_path = environment is not None and names_folder(environment)
        return whole_path(environment) if is_path else environment
    if environment is not None:
        raise InvalidInput.at("--requirements", "an environment is given as well; leave one of the two out")
    folder = code if code.is_dir() else code.parent
    given = Path(requirements).expanduser()
    file = given if given.is_file() else folder / given
    if not file.is_file():
        raise InvalidInput.at("--requirements", f"there is no file {requirements!r}; check the path")
    if not file.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput.at(
            "--requirements", f"{requirements!r} lies outside {str(folder)!r}, which is packed; put it there"
        )
    return f"{REQUIREMENTS}{file.resolve().relative_to(folder.resolve())}"


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _unclear(message: str) -> InvalidInput:
    return InvalidInput.at("--script", message)


def warn_of_siblings(code: Path) -> None:
    """Warn if a file that is packed alone imports what lies beside it."""
    if not code.is_file():
        return
    imported = set(_IMPORT.findall(code.read_text(encoding="utf-8", errors="replace"))) - {code.stem}
    beside = sorted(name for name in imported if (code.parent / f"{name}.py").is_file())
    if beside:
        say(
            f"note: only {code.name} is packed, but it imports {', '.join(beside)} from beside it; "
            f"give the folder as PATH to send both",
            stderr=True,
        )
