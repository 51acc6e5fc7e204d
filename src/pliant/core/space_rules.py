"""What is wrong with a space, before anything is chosen from it; and with values that somebody wants to be tried in it.

    {"lr": {"kind": "float", "low": 0, "high": 1, "log": true}}
    parameters.lr.low: 0 has no order of magnitude; give more than 0, or leave log out

All that is wrong is said at once, each with its field. Numbers are meant as they are written: 0.3 is three times 0.1.
"""

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from pliant.core.errors import Problem
from pliant.core.near_name import near_name
from pliant.core.space import ParameterKind, SearchParameter, Value, Values, same_as, variable_of

Wrong = Iterator[tuple[str, str]]
"""Fields of a parameter, each with what is wrong with it."""

_OF_NUMBERS: Final = ("low", "high", "step", "log")
_FIELDS: Final[Mapping[ParameterKind, tuple[str, ...]]] = {
    "float": _OF_NUMBERS,
    "int": _OF_NUMBERS,
    "choice": ("choices",),
    "fixed": ("value",),
}
_LARGEST_INT: Final = 2**53
_MAX_SHOWN: Final = 8
_MAX_TEXT: Final = 80


def misfit(parameter: SearchParameter, value: Value) -> str:
    """Return why a sound parameter cannot have a value; empty if it can."""
    match parameter.kind:
        case "choice":
            fits = same_as(value) in map(same_as, parameter.choices)
            return "" if fits else f"{_shown(value)} is none of its choices: {_listed(parameter.choices)}"
        case "fixed":
            fits = same_as(value) == same_as(parameter.value)
            return "" if fits else f"{_shown(value)} is not its fixed value {_shown(parameter.value)}"
        case "int" | "float":
            return _no_number(parameter, value)


def problems_of_space(space: Mapping[str, SearchParameter]) -> tuple[Problem, ...]:
    """Return all that is wrong with a space, each with its field: `parameters.lr.low`."""
    problems = []
    variables: dict[str, str] = {}
    for name, parameter in space.items():
        wrong = [*_wrong(parameter), *_wrong_condition(name, parameter, space)]
        if (other := variables.setdefault(variable_of(name), name)) != name:
            same = f"{other!r} and {name!r} would have the same variable {variable_of(name)}"
            wrong.append(("", f"{same}; call one of them otherwise"))
        problems += [
            Problem(field=".".join(filter(None, ("parameters", name, part))), message=said) for part, said in wrong
        ]
    return tuple(problems)


def problems_of_values(space: Mapping[str, SearchParameter], values: Values) -> tuple[Problem, ...]:
    """Return what is wrong with values that somebody wants to be tried in a sound space, each with its name."""
    problems = []
    for name, value in values.items():
        if name not in space:
            problems.append(Problem(field=name, message=_unknown(name, space)))
        elif message := misfit(space[name], value):
            problems.append(Problem(field=name, message=message))
        else:
            message = next(_against_condition(space, space[name], values), "")
            problems += [Problem(field=name, message=message)] if message else []
    return tuple(problems)


def _against_condition(
    space: Mapping[str, SearchParameter], parameter: SearchParameter, values: Values
) -> Iterator[str]:
    fixed = {name: one.value for name, one in space.items() if one.kind == "fixed"}
    for name, allowed in parameter.when.items():
        known = {**fixed, **values}
        if name in known and same_as(known[name]) not in map(same_as, allowed):
            yield f"it is there only if {name!r} is {_listed(allowed)}, and that is {_shown(known[name])}; leave it out"


def _wrong(parameter: SearchParameter) -> Wrong:
    kind, empty = parameter.kind, SearchParameter(kind=parameter.kind)
    for part in ("low", "high", "step", "log", "choices", "value"):
        if part not in _FIELDS[kind] and getattr(parameter, part) != getattr(empty, part):
            yield part, f"a parameter of the kind {kind} has no {part}; leave it out, or give another kind"
    match kind:
        case "choice":
            yield from _wrong_choices(parameter.choices)
        case "fixed":
            if parameter.value is None:
                yield "value", "it is missing; give the value that all trials get"
            elif not _is_finite(parameter.value):
                yield "value", f"{_shown(parameter.value)} is not finite; give a number"
        case "int" | "float":
            yield from _wrong_bounds(parameter)


def _wrong_choices(choices: tuple[Value, ...]) -> Wrong:
    if not choices:
        yield "choices", "there are none; give at least one value"
    seen: dict[Hashable, Value] = {}
    for value in choices:
        if not _is_finite(value):
            yield "choices", f"{_shown(value)} is not finite; give a number, or the text {json.dumps(repr(value))}"
        if same_as(value) in seen:
            first = seen[same_as(value)]
            as_what = "twice" if repr(first) == repr(value) else f"as {_shown(first)} and as {_shown(value)}"
            yield "choices", f"{_shown(value)} is given {as_what}; give every value once"
        seen.setdefault(same_as(value), value)


def _wrong_bounds(parameter: SearchParameter) -> Wrong:
    low, high, step = parameter.low, parameter.high, parameter.step
    known = {"low": low, "high": high, "step": step}
    if low is None:
        yield "low", "it is missing; give the lowest value"
    if high is None:
        yield "high", "it is missing; give the highest value"
    wrong = [
        (part, said) for part, value in known.items() if value is not None if (said := _no_bound(parameter, value))
    ]
    yield from wrong
    if low is not None and high is not None and not {"low", "high"} & {part for part, _ in wrong}:
        if low > high:
            yield "low", f"{_number(low)} is above high, {_number(high)}; exchange them"
        elif low == high:
            yield "high", f"low and high are both {_number(low)}; a parameter of one value is of the kind fixed"
        elif step is not None and step > 0 and not wrong and not parameter.log:
            yield from _wrong_division(low, high, step)
    if parameter.log and low is not None and low <= 0:
        yield "low", f"{_number(low)} has no order of magnitude; give more than 0, or leave log out"
    if step is not None and parameter.log:
        yield "step", "log and step exclude each other; leave one of them out"
    if step is not None and step <= 0:
        yield "step", f"{_number(step)} leads nowhere; give more than 0, or leave it out"


def _no_bound(parameter: SearchParameter, value: float) -> str:
    if not math.isfinite(value):
        return f"{value!r} is not finite; give a number"
    if parameter.kind == "int" and value != int(value):
        return f"{_number(value)} is not whole; give a whole number, or the kind float"
    if parameter.kind == "int" and abs(value) > _LARGEST_INT:
        return f"{_number(value)} is too large for a whole number; give {_LARGEST_INT} at most, or the kind float"
    return ""


def _wrong_division(low: float, high: float, step: float) -> Wrong:
    first, last, each = (Fraction(Decimal(repr(value))) for value in (low, high, step))
    if (last - first) % each:
        nearest = float(first + max(1, round((last - first) / each)) * each)
        said = f"{_number(high)} is no whole number of steps of {_number(step)} above {_number(low)}"
        yield "high", f"{said}; the nearest high that fits is {_number(nearest)}"


def _wrong_condition(name: str, parameter: SearchParameter, space: Mapping[str, SearchParameter]) -> Wrong:
    order = list(space)
    for other, values in parameter.when.items():
        part = f"when.{other}"
        if other == name:
            yield part, "a parameter cannot depend on itself; name one that stands before it"
        elif other not in space:
            yield part, _unknown(other, space)
        elif order.index(other) > order.index(name):
            yield part, f"{other!r} stands after {name!r}, and is chosen later; let it stand before"
        elif not values:
            yield part, f"there is no value; give one or more that {other!r} can have"
        elif space[other].kind == "float" and space[other].step is None:
            yield part, f"{other!r} can be any number between its ends; name a choice, an int, or a float with a step"
        elif not any(_wrong(space[other])):
            said = filter(None, (misfit(space[other], value) for value in values))
            yield from ((part, f"{one}; {other!r} never has it") for one in said)


def _no_number(parameter: SearchParameter, value: Value) -> str:
    is_int = parameter.kind == "int"
    if isinstance(value, bool) or not isinstance(value, int if is_int else int | float):
        return f"{_shown(value)} is no {'whole ' * is_int}number"
    assert isinstance(value, int | float)
    assert parameter.low is not None
    assert parameter.high is not None
    if not parameter.low <= value <= parameter.high:
        return f"{_shown(value)} is not from {_number(parameter.low)} to {_number(parameter.high)}"
    first, each = (Fraction(Decimal(repr(one))) for one in (parameter.low, parameter.step or 1.0))
    if parameter.step is not None and (Fraction(Decimal(repr(value))) - first) % each:
        return (
            f"{_shown(value)} is no whole number of steps of {_number(parameter.step)} above {_number(parameter.low)}"
        )
    return ""


def _is_finite(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _unknown(name: str, space: Mapping[str, SearchParameter]) -> str:
    near = near_name(name, tuple(space))
    there = ", ".join(list(space)[:_MAX_SHOWN]) + " …" * (len(space) > _MAX_SHOWN)
    return f"there is no parameter {name!r:.80}" + (f"; is {near!r} meant?" if near else f"; there are: {there}")


def _number(value: float) -> str:
    return str(int(value)) if abs(value) <= _LARGEST_INT and value == int(value) else repr(value)


def _shown(value: Value) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}…"


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(_shown, values[:_MAX_SHOWN])) + " …" * (len(values) > _MAX_SHOWN)
