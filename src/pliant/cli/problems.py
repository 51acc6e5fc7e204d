"""How errors reach the person: one clear paragraph on stderr, and an exit code that scripts can tell apart."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from rich.text import Text

from pliant.cli.fields import option_names
from pliant.cli.options import JOB
from pliant.cli.screen import console
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

_OPTIONS: Final = {
    **option_names(JOB),
    "max_workers": "--max",
    "slots_per_worker": "--slots-per-worker",
    "hyperparameters": "--set",
    "parameters": "--set",
}
_OPTION_NAMES: Final = re.compile(rf"\b({'|'.join(name for name in _OPTIONS if '_' in name)})\b")


def report(error: PliantError | TimeoutError) -> int:
    """Print an error and return the exit code that goes with it."""
    text = Text("error: ", style="bold red")
    if isinstance(error, InvalidInput) and len(error.problems) > 1:
        text.append(f"{len(error.problems)} things are wrong:", style="not bold default")
        for problem in error.problems:
            text.append(f"\n  {_sentence(problem)}", style="not bold default")
    elif isinstance(error, InvalidInput) and error.problems:
        text.append(_sentence(error.problems[0]), style="not bold default")
    else:
        text.append(str(error), style="not bold default")
    console(stderr=True).print(text)
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), UNEXPECTED)


def validate(kind: type[M], given: Mapping[str, object]) -> M:
    """Return a request of these fields.

    Raises:
        InvalidInput: with everything that is wrong with them, in the words of the command line.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise _input_error(error) from error


def _input_error(error: ValidationError) -> InvalidInput:
    problems = []
    for found in error.errors(include_url=False):
        field = ".".join(str(part) for part in found["loc"])
        message = found["msg"].removeprefix("Value error, ")
        problems.append(Problem(field=field, message=f"{message} (got {found['input']!r:.80})" if field else message))
    return InvalidInput(*problems)


def _sentence(problem: Problem) -> str:
    name, dot, rest = problem.field.partition(".")
    field = _OPTIONS.get(name, name) + (f" {rest}" if dot else "")
    message = _OPTION_NAMES.sub(lambda found: _OPTIONS[found[0]], problem.message)
    return f"{field}: {message}" if field else message
