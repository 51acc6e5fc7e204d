"""How errors reach the person: one clear paragraph on stderr, and an exit code that scripts can tell apart."""

import os
import sys
from collections.abc import Mapping
from typing import Final, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from pliant.api.faults import problems_of
from pliant.cli.screen import console, say
from pliant.cli.spelling import in_commands
from pliant.cli.usage import usage_lines
from pliant.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    PliantError,
    Problem,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
)

M = TypeVar("M", bound=BaseModel)

EXIT_CODES: Final[Mapping[type[PliantError], int]] = {
    InvalidInput: 2,
    TooLarge: 2,
    NotFound: 3,
    Unavailable: 4,
    Conflict: 5,
    Unauthorized: 6,
    Forbidden: 6,
    TooMany: 6,
}
UNEXPECTED: Final = 1


def report(error: PliantError | OSError | typer.TyperException) -> int:
    """Print an error and return the exit code that goes with it."""
    if isinstance(error, OSError):
        _drop_unwritten()
    if isinstance(error, BrokenPipeError):  # who read it has read enough
        return UNEXPECTED
    from rich.text import Text

    if isinstance(error, typer.TyperException):
        return _report_usage(error)
    text = Text("error: ", style="bold red")
    if isinstance(error, InvalidInput) and len(error.problems) > 1:
        text.append(f"{len(error.problems)} things are wrong:", style="not bold default")
        for problem in error.problems:
            text.append(f"\n  {_sentence(problem)}", style="not bold default")
    elif isinstance(error, InvalidInput) and error.problems:
        text.append(_sentence(error.problems[0]), style="not bold default")
    else:
        text.append(_message_of(error), style="not bold default")
    console(stderr=True).print(text)
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), UNEXPECTED)


def _drop_unwritten() -> None:
    """Let go of what standard output does not take: Python would try it again at its end, and say so."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _message_of(error: PliantError | OSError) -> str:
    """Return what an error says; one of the system's says of which file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return in_commands(str(error))


def validate(kind: type[M], given: Mapping[str, object]) -> M:
    """Return a request of these fields.

    Raises:
        InvalidInput: with everything that is wrong with them, in the words of the command line.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


def _report_usage(error: typer.TyperException) -> int:
    from rich.text import Text

    first, *more = usage_lines(error)
    start = Text("error: ", style="bold red") if first.startswith("error: ") else Text()
    console(stderr=True).print(start.append(first.removeprefix("error: "), style="not bold default"))
    for line in more:
        say(line, stderr=True)
    return error.exit_code


def _sentence(problem: Problem) -> str:
    message = in_commands(problem.message)
    return f"{problem.field}: {message}" if problem.field else message
