"""What is to be run, as arguments name it: a Python script, or any other command. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from pliant.core.errors import InvalidInput
from pliant.core.job import refuse_notebook
from pliant.ibm.rest.translate.arguments import Arguments

RUNNER: Final = "_pliant_command.py"
"""The script that stands in for a command: it is put beside the code, and the job's arguments are the command."""
RUNNER_TEXT: Final = '''"""Runs the command that this job's arguments are, in place of this process."""

import os
import signal
import sys

os.environ["PATH"] = os.pathsep.join(filter(None, (os.path.dirname(sys.executable), os.environ.get("PATH"))))
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())
sys.stdout.flush()
sys.stderr.flush()
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit(f"{sys.argv[1]!r} cannot be run: {error.strerror}")
'''
DEFAULT_MAIN: Final = "main.py"
_PYTHONS: Final = ("python", "python3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What every process runs."""

    main: str = ""
    """The Python script, relative to the code folder; empty for a command."""
    words: tuple[str, ...] = ()
    """The command."""
    args: tuple[str, ...] = ()
    """What a Python script is given."""
    file: str = ""
    """The file that was named, relative to the code folder: what a client that sends one file alone has sent."""

    @property
    def is_script(self) -> bool:
        return not self.words

    @property
    def script(self) -> str:
        """The Python file that the job's tasks begin with."""
        return self.main if self.is_script else RUNNER

    @property
    def arguments(self) -> tuple[str, ...]:
        """What that file is given."""
        return self.args if self.is_script else self.words


def program_of(arguments: Arguments) -> Program:
    """Return what is to be run.

    Raises:
        InvalidInput: nothing is named, or a prebuilt model is.
    """
    if arguments.get("--pbmodel-name") is not None:
        raise _wrong("--pbmodel-name", "there are no prebuilt models here; send the program, with --model-main")
    main, folder = arguments.get("--model-main"), arguments.get("--model-dir")
    if "--user-cmd" in arguments.options:
        if not arguments.command:
            raise _wrong("--user-cmd", "the command is missing; write it at the end, after --")
        before = arguments.program[: len(arguments.program) - len(arguments.command)]
        made = of_words((*arguments.command, *before))
        return made if main is None else replace(made, file=_relative(main, folder))
    if main is None and folder is None:
        raise _wrong("--model-main", "nothing is named to run; give --model-main, --model-dir or --user-cmd")
    name = _relative(main or DEFAULT_MAIN, folder)
    try:
        refuse_notebook(name)
    except InvalidInput as error:
        raise InvalidInput(*(replace(one, field="--model-main") for one in error.problems)) from error
    if PurePosixPath(name).suffix == ".py":
        return Program(main=name, args=arguments.program, file=name)
    return Program(file=name, words=(f"./{name}", *arguments.program))


def of_words(words: Sequence[str]) -> Program:
    """Return the program that a command runs; `python SCRIPT.py …` is that script, so that tasks start warm."""
    if len(words) > 1 and words[0] in _PYTHONS and PurePosixPath(words[1]).suffix == ".py":
        return Program(main=words[1], args=tuple(words[2:]), file=words[1])
    return Program(words=tuple(words))


def _relative(main: str, folder: str | None) -> str:
    """Return a program's path in the code folder: clients send a folder under its name, or one file alone."""
    path = PurePosixPath(main)
    if folder is None:
        return path.name
    root = PurePosixPath(folder).name
    parts = path.parts[1:] if path.parts[:1] == (root,) else path.parts
    return str(PurePosixPath(*parts))


def _wrong(field: str, message: str) -> InvalidInput:
    return InvalidInput.at(field, message)
