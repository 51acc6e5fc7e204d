"""A search's parameters as IBM describes them to a plug-in, and a plug-in's answers as values of them. Pure.

    lr: float 0.0001..0.1, log     {type: Range, dataType: DOUBLE, minDbVal: -4.0, maxDbVal: -1.0, power: 10}
    width: int 8..64, step 8       {type: Range, dataType: INT, minIntVal: 8, maxIntVal: 64, step: 8}
    act: choice relu, gelu         {type: Discrete, dataType: STR, discreateStrVal: [relu, gelu]}

With a power bounds and answers are exponents: -2.0 is an `lr` of 0.01. So a plug-in that chooses evenly between bounds
chooses evenly by orders of magnitude. Choices that are neither all whole nor all numbers are texts, as a script would
get them. What is fixed is not there: there is nothing to choose.
"""

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from pliant.core.near_name import near_name
from pliant.core.space import Scalar, SearchParameter, Space, Value, Values, same_as, text_of_value
from pliant.core.space_rules import misfit
from pliant.tune.plugins.answers import NoScalar, pairs_of, scalar_of
from pliant.tune.plugins.failures import shown

_BASE: Final = 10
_NEAR: Final = 1e-9
"""So much of a step, or of an exponent, may be lost by computing with floats."""
_MAX_NAMED: Final = 5
_LONG: Final = 2**53
"""Whole numbers that floats hold exactly are below this."""


class WrongValues(ValueError):
    """An answer is not what the search chooses from; says all that is wrong."""


def described(space: Space) -> list[dict[str, Any]]:
    """Return what a plug-in is told of a space; each time new, for it may change it."""
    return [{"name": name, **_described(one), "userDefined": False} for name, one in _chosen(space).items()]


def values_of(space: Space, answered: object) -> Values:
    """Return a plug-in's answer as values of a space, in its order, with what is fixed.

    Raises:
        WrongValues: a value is missing, too much or cannot be.
    """
    try:
        pairs = pairs_of(answered)
    except NoScalar as error:
        raise WrongValues(str(error)) from error
    wrong = [_unknown(name, space) for name, _ in pairs if name not in space]
    given = dict(pairs)
    values: dict[str, Value] = {}
    for name, parameter in space.items():
        if parameter.kind == "fixed":
            values[name] = parameter.value
        if name not in given:
            wrong += [] if parameter.kind == "fixed" else [f"there is no value for {name!r}"]
            continue
        try:
            values[name] = _value(parameter, scalar_of(given[name]))
        except ValueError as error:
            wrong.append(f"{name!r} cannot be so: {error}")
    if wrong:
        more = f"; and {len(wrong) - _MAX_NAMED} more" if len(wrong) > _MAX_NAMED else ""
        raise WrongValues("; ".join(wrong[:_MAX_NAMED]) + more)
    return values


def answer_of(space: Space, values: Values) -> dict[str, Scalar]:
    """Return values as a plug-in would have answered with them, without what is fixed."""
    return {name: _answer(one, values[name]) for name, one in _chosen(space).items() if name in values}


def data_type(parameter: SearchParameter) -> str:
    """Return IBM's type of a parameter's values."""
    if parameter.kind == "int":
        return "INT"
    if parameter.kind == "float":
        return "DOUBLE"
    values = parameter.choices
    if all(isinstance(one, int) and not isinstance(one, bool) for one in values):
        return "INT"
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        return "DOUBLE"
    return "STR"


def _chosen(space: Space) -> Mapping[str, SearchParameter]:
    return {name: one for name, one in space.items() if one.kind != "fixed"}


def _described(parameter: SearchParameter) -> dict[str, Any]:
    kind = data_type(parameter)
    if parameter.kind == "choice":
        field = {"INT": "discreteIntVal", "DOUBLE": "discreteDbVal", "STR": "discreateStrVal"}[kind]
        return {"type": "Discrete", "dataType": kind, field: [_answer(parameter, one) for one in parameter.choices]}
    assert parameter.low is not None, "a parameter of numbers has a lowest value"
    assert parameter.high is not None, "a parameter of numbers has a highest value"
    number: Callable[[float], int | float] = int if kind == "INT" else float
    fields = ("minIntVal", "maxIntVal") if kind == "INT" else ("minDbVal", "maxDbVal")
    bounds = dict(
        zip(fields, (_answer(parameter, number(one)) for one in (parameter.low, parameter.high)), strict=True)
    )
    step = {} if parameter.step is None else {"step": number(parameter.step)}
    return {"type": "Range", "dataType": kind, **bounds, **step, **({"power": _BASE} if _has_power(parameter) else {})}


def _has_power(parameter: SearchParameter) -> bool:
    """Tell whether exponents are answered. IBM's whole numbers with a power are powers alone, so they have none."""
    return parameter.kind == "float" and parameter.log


def _answer(parameter: SearchParameter, value: Value) -> Scalar:
    if parameter.kind == "choice":
        kind = data_type(parameter)
        if kind == "STR":
            return _text_of(parameter)(value)
        assert isinstance(value, int | float), "choices are numbers"
        return int(value) if kind == "INT" else float(value)
    assert isinstance(value, int | float), "it is a number"
    return math.log10(value) if _has_power(parameter) else value


def _text_of(parameter: SearchParameter) -> Callable[[Value], str]:
    """Return how choices are texts: as a script would get them, or if that makes some the same, as JSON."""
    texts = {text_of_value(one) for one in parameter.choices}
    return text_of_value if len(texts) == len(parameter.choices) else _json


def _json(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _value(parameter: SearchParameter, answered: Scalar) -> Value:
    """Return what was answered as the value that is meant.

    Raises:
        WrongValues: there is no such value.
    """
    match parameter.kind:
        case "choice":
            return _choice(parameter, answered)
        case "fixed":
            value: Value = parameter.value if same_as(answered) == same_as(parameter.value) else answered
        case "int":
            value = int(answered) if isinstance(answered, float) and answered.is_integer() else answered
            if parameter.step is not None and isinstance(value, int) and abs(value) < _LONG:
                value = int(_on_step(parameter, value))
        case "float":
            is_int = isinstance(answered, int) and not isinstance(answered, bool)
            number = _as_float(answered) if is_int else answered
            value = _near(parameter, number) if isinstance(number, float) else number
    if message := misfit(parameter, _shortened(value)):
        raise WrongValues(message)
    return value


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError as error:
        raise WrongValues(f"a number of {number.bit_length()} bits is too large") from error


def _shortened(value: Value) -> Value:
    """Return a value that a message can show."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:
        raise WrongValues(f"a number of {value.bit_length()} bits is too large")
    return shown(value, 80) if isinstance(value, str) else value


def _choice(parameter: SearchParameter, answered: Scalar) -> Value:
    kind, text_of = data_type(parameter), _text_of(parameter)
    if kind == "STR" and isinstance(answered, str):
        found = [one for one in parameter.choices if text_of(one) == answered]
    else:
        found = [one for one in parameter.choices if same_as(one) == same_as(answered)]
    if not found:
        raise WrongValues(misfit(parameter, _shortened(answered)) or f"{answered!r:.80} is none of its texts")
    return found[0]


def _near(parameter: SearchParameter, number: float) -> float:
    """Return the value of a parameter that a number is, but for what floats lose."""
    if not math.isfinite(number):
        raise WrongValues(f"{number} is no number that can be tried")
    assert parameter.low is not None, "a parameter of numbers has a lowest value"
    assert parameter.high is not None, "a parameter of numbers has a highest value"
    low, high = float(parameter.low), float(parameter.high)
    if _has_power(parameter):
        return _power(low, high, number)
    return number if parameter.step is None else float(_on_step(parameter, number))


def _on_step(parameter: SearchParameter, number: float) -> float:
    """Return the value nearest to a number that is in the range; what is beyond it stays as it is.

    A plug-in that was written for ranges without steps knows of none. What was tried in place of its answer it sees in
    the trial's result.
    """
    assert parameter.low is not None, "a parameter of numbers has a lowest value"
    assert parameter.high is not None, "a parameter of numbers has a highest value"
    assert parameter.step is not None, "asked only with a step"
    slack = _NEAR * parameter.step
    if not parameter.low - slack <= number <= parameter.high + slack:
        return number
    low, high, step = (Decimal(repr(one)) for one in (parameter.low, parameter.high, parameter.step))
    steps = min(max(0, round((number - parameter.low) / parameter.step)), int((high - low) / step))
    return float(low + steps * step)


def _power(low: float, high: float, exponent: float) -> float:
    first, last = math.log10(low), math.log10(high)
    if not first - _NEAR <= exponent <= last + _NEAR:
        raise WrongValues(f"{exponent!r} is not from {first:g} to {last:g}; an exponent is due: its power is {_BASE}")
    return min(max(float(_BASE**exponent), low), high)


def _unknown(name: str, space: Space) -> str:
    there = f"there is no parameter {shown(name, 80)!r}"
    near = near_name(name[:80], tuple(space))
    return f"{there}; is {near!r} meant?" if near else there
