"""What was given wrongly, in the spelling of the command that it was given to: `--priority`, not `priority`."""

import functools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pliant.core.errors import InvalidInput, Problem

_ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "height": "--size",
        "hosts": "--host",
        "hosts.labels": "--label",
        "hosts.names": "--host",
        "hyperparameters": "--set",
        "parameters": "--set",
        "shared_with": "USER",
        "source.path": "--root",
        "url": "--url",
        "webhook_secret": "PLIANT_WEBHOOK_SECRET",
        "width": "--size",
    }
)
"""Fields of requests that have no option of their own; one stands in a variable alone."""
_WITH_DOTS: Final = frozenset({"tags"})
"""Fields that hold values by names in which a dot may stand."""
_LISTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "data set": "pliant data list",
        "endpoint": "pliant endpoints",
        "environment": "pliant env list",
        "job": "pliant ps --all",
        "model": "pliant models list",
        "search": "pliant searches",
        "template": "pliant templates list",
        "token": "pliant tokens",
        "user": "pliant users",
    }
)
"""Where people see which things there are; a server that is asked by REST says only that they can be listed."""
_LIST_THEM: Final = re.compile(rf"(?s)(no ({'|'.join(_LISTS)})\b[^;]*); list them to see which (there are|you may use)")
_MORE_WORDS: Final = (
    (
        re.compile(r"(?s)^(job-\d+) (has already .*); run it again if it is needed"),
        r"\1 \2; `pliant rerun \1` runs it again",
    ),
    (re.compile(r"list jobs to see which array each is of"), "`pliant ps --all` says which array each job is of"),
)
_ONE_OF: Final = re.compile(r"(?:(?<=: give one of )|(?<=give exactly one of ))[a-z_, ]+")


class SpelledInput(InvalidInput):
    """What is wrong with an input is said in its spelling already."""


def use_spelling_of(command: Any) -> None:
    """Let a command, and those below it, say what is wrong with their input in their own spelling."""
    for below in getattr(command, "commands", {}).values():
        use_spelling_of(below)
    if command.callback is not None:
        command.callback = _spelled(command.callback, {one.name: spelling(one) for one in command.params})


def spelling(parameter: Any) -> str:
    """Return how an option or an argument of typer's is written."""
    options = [option for option in parameter.opts if option.startswith("--")]
    return str(options[0]) if options else str(parameter.metavar or parameter.name.upper()).strip("[]")


def respell(problem: Problem, names: Mapping[str, str]) -> Problem:
    """Return a problem whose field, and the fields that its message names, are written as options."""
    long = "|".join(sorted((name for name in names if "_" in name), key=len, reverse=True))
    message = _ONE_OF.sub(
        lambda found: re.sub("[a-z_]+", lambda one: names.get(one[0], one[0]), found[0]), problem.message
    )
    if long:
        message = re.sub(rf"\b({long})\b", lambda found: names[found[0]], message)
    return Problem(field=_field(problem.field, {**_ELSEWHERE, **names}), message=message)


def in_commands(text: str) -> str:
    """Return what a server says, with commands where it leaves open how something is done."""
    for found, said in _MORE_WORDS:
        text = found.sub(said, text)
    return _LIST_THEM.sub(lambda found: f"{found[1]}; `{_LISTS[found[2]]}` lists those you may use", text)


def _field(field: str, names: Mapping[str, str]) -> str:
    """Return the option for a field such as `priority`, `hyperparameters.epochs`, `hosts.names.0` or `split.seed`."""
    parts = field.split(".")
    for num in range(len(parts), 0, -1):
        if (option := names.get(".".join(parts[:num]))) is not None:
            if parts[0] in _WITH_DOTS:
                return f"{option} {'.'.join(parts[num:])}".strip()
            return " ".join([option, *(part for part in parts[num:] if not part.isdecimal())])
    return names.get(parts[-1], field)


def _spelled(run: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(run)
    def command(*args: Any, **values: Any) -> Any:
        try:
            return run(*args, **values)
        except SpelledInput:
            raise
        except InvalidInput as error:
            raise InvalidInput(*(respell(problem, names) for problem in error.problems)) from error

    return command
