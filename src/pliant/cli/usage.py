"""How a command was called wrongly, in words, and what was meant.

Knows typer's errors by what they carry: an unknown option its name, a wrong value its parameter and pydantic's finding.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import typer
from pydantic import ValidationError

from pliant.api.faults import sentence_of
from pliant.cli.spelling import spelling
from pliant.core.near_name import near_name

_UNKNOWN_COMMAND: Final = re.compile(r"No such command '(.*?)'")
_TOO_MANY: Final = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")
_FOR_A_SCRIPT: Final = "args"
"""The parameter that takes what is passed to a script."""


def usage_lines(error: typer.TyperException) -> list[str]:
    """Return what is wrong, and where to read how it is right; the page of help if nothing was given."""
    found: Any = error
    if type(found).__name__ == "NoArgsIsHelpError":
        return [found.format_message()]
    context = getattr(found, "ctx", None)
    lines = [f"error: {_sentence(found, context)}"]
    if context is not None:
        lines += [context.get_usage(), f"`{context.command_path} {context.help_option_names[0]}` tells more."]
    return lines


def _sentence(error: Any, context: Any) -> str:
    parameter = getattr(error, "param", None)
    if hasattr(error, "possibilities"):
        return _unknown_option(error.option_name, context)
    if hasattr(error, "option_name"):
        return f"{error.option_name} needs a value"
    if parameter is not None and hasattr(error, "param_type"):
        help_text = getattr(parameter, "help", None)
        return f"{spelling(parameter)} is missing" + (f": {help_text}" if help_text else "")
    if parameter is not None:
        return f"{spelling(parameter)}: {_wrong_value(error)}"
    return _without_parameter(str(error.message), context)


def _without_parameter(said: str, context: Any) -> str:
    if found := _UNKNOWN_COMMAND.match(said):
        near = near_name(found[1], context.command.list_commands(context))
        return f"there is no command {found[1]!r}" + (f"; is {near!r} meant?" if near else "")
    if found := _TOO_MANY.match(said):
        return f"{found[1]!r} is more than the command takes; leave it out"
    return said[:1].lower() + said[1:].rstrip(".")


def _unknown_option(name: str, context: Any) -> str:
    said = f"there is no option {name}"
    names = {} if context is None else {one.removeprefix("--"): one for one in _options(context)}
    near = names.get(near_name(name.lstrip("-"), [*names]) or "")
    if near is not None:
        return f"{said}; is {near} meant?"
    if context is not None and any(one.name == _FOR_A_SCRIPT for one in context.command.params):
        return f"{said}; the script's own come after --: `{context.command_path} PATH -- {name} …`"
    return said


def _options(context: Any) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))


def _wrong_value(error: Any) -> str:
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return str(error.message)
    said = sentence_of(cause.errors()[0])
    known, _, choices = said.partition(" is not one of ")
    near = near_name(known.strip("'"), re.findall(r"'([^']*)'", choices))
    return said if near is None else f"{said}; is {near!r} meant?"
