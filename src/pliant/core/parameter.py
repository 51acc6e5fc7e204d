"""The parameters that a template declares of its own, and whether a value fits one."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from annotated_types import Ge, Le, Len, MaxLen

from pliant.core.errors import Problem
from pliant.core.input import FINITE, NUMBER, ONE_LINE, PLAIN_TEXT, Input

MAX_TEXT: Final = 4000
"""Characters of a text."""
MAX_PARAMETERS: Final = 200

ParameterKind = Literal["int", "float", "bool", "text", "choice"]
Real = Annotated[float, Input(NUMBER, FINITE)]
Text = Annotated[str, Input(MaxLen(MAX_TEXT), PLAIN_TEXT)]
Value = bool | Annotated[int, Input(Ge(-(2**63)), Le(2**63 - 1))] | Real | Annotated[str, Input(MaxLen(MAX_TEXT))]
"""What a parameter can be."""
ParameterName = Annotated[str, Input(MaxLen(100))]
"""As it is given with a value; whether there is such a parameter is seen later."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_MAX_SHOWN: Final = 80


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A value that a template's code asks for by name."""

    name: Annotated[str, Input(Len(1, 60))]
    kind: ParameterKind
    default: Value | None = None
    """Left out: every model has to give it."""
    minimum: Real | None = None  # of a number
    maximum: Real | None = None
    choices: Annotated[tuple[Annotated[str, Input(Len(1, 200), ONE_LINE)], ...], Input(MaxLen(100))] = ()  # of a choice
    description: Text = ""


def problems_of(parameters: Sequence[Parameter]) -> tuple[Problem, ...]:
    """Return what is wrong with a template's declarations."""
    names = [parameter.name for parameter in parameters]
    problems = [
        Problem(field=f"parameters.{i}", message=f"{name!r} is declared twice; declare it once")
        for i, name in enumerate(names)
        if name in names[:i]
    ]
    if len(names) > MAX_PARAMETERS:
        problems.append(Problem(field="parameters", message=f"{len(names)} are more than {MAX_PARAMETERS}; leave some"))
    for i, parameter in enumerate(parameters):
        problems += [Problem(field=f"parameters.{i}", message=message) for message in _wrong(parameter)]
    return tuple(problems)


def _wrong(parameter: Parameter) -> Iterator[str]:
    if not _NAME.fullmatch(parameter.name):
        yield f"{parameter.name!r:.{_MAX_SHOWN}} is no name; take letters, digits and _, 60 at most, no digit first"
    bounds = [bound for bound in (parameter.minimum, parameter.maximum) if bound is not None]
    if bounds and parameter.kind not in ("int", "float"):
        yield f"{parameter.name}: only numbers have a minimum and a maximum; leave them out"
    if not all(math.isfinite(bound) for bound in bounds) or bounds != sorted(bounds):
        yield f"{parameter.name}: minimum {parameter.minimum} and maximum {parameter.maximum} leave no number"
    if (parameter.kind == "choice") != bool(parameter.choices):
        yield f"{parameter.name}: a choice needs `choices`, and nothing else has them"
    if parameter.default is not None and (message := misfit(parameter, parameter.default)):
        yield f"{parameter.name}: its default {message}"


def misfit(parameter: Parameter, value: Value) -> str:
    """Return why a value is none for this parameter; empty if it is one."""
    shown = f"{value!r:.{_MAX_SHOWN}}"
    match parameter.kind:
        case "bool":
            return "" if isinstance(value, bool) else f"{shown} is neither true nor false"
        case "text":
            fits = isinstance(value, str) and len(value) <= MAX_TEXT and "\0" not in value
            return "" if fits else f"{shown} is no text of at most {MAX_TEXT} characters without NUL"
        case "choice":
            return "" if value in parameter.choices else f"{shown} is none of {', '.join(parameter.choices)}"
        case "int" | "float":
            return _no_number(parameter, value, shown)


def _no_number(parameter: Parameter, value: Value, shown: str) -> str:
    kinds = int if parameter.kind == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return f"{shown} is no {'whole ' * (parameter.kind == 'int')}number"
    if not math.isfinite(value):
        return f"{shown} is no finite number"
    if parameter.minimum is not None and value < parameter.minimum:
        return f"{shown} is below {parameter.minimum:g}"
    if parameter.maximum is not None and value > parameter.maximum:
        return f"{shown} is above {parameter.maximum:g}"
    return ""


def fill_in(parameters: Sequence[Parameter], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return a value for every parameter: the one that was given, or else its default; None of them is left open."""
    values = {parameter.name: given.get(parameter.name, parameter.default) for parameter in parameters}
    return {name: value for name, value in values.items() if value is not None}


def problems_of_values(parameters: Sequence[Parameter], given: Mapping[str, Value]) -> tuple[Problem, ...]:
    """Return what is wrong with the values that were given for these parameters."""
    known = {parameter.name: parameter for parameter in parameters}
    problems = []
    for name, value in given.items():
        if name not in known:
            there = ", ".join(known) or "none"
            message = f"the template has no such parameter (it has: {there}); leave it out"
            problems.append(Problem(field=f"parameters.{name}"[:200], message=message))
        elif message := misfit(known[name], value):
            problems.append(Problem(field=f"parameters.{name}", message=f"{message}; give another value"))
    problems += [
        Problem(field=f"parameters.{parameter.name}", message="it has no default; give a value")
        for parameter in parameters
        if parameter.default is None and parameter.name not in given
    ]
    return tuple(problems)
