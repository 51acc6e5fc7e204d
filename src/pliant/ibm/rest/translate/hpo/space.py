"""IBM's hyperparameters as the parameters of a search. Pure.

    {name: lr, type: Range, dataType: DOUBLE, minDbVal: -4, maxDbVal: -1, power: 10}    0.0001 to 0.1, log
    the same with step: 1                                                               one of 0.0001, 0.001, 0.01, 0.1
    {name: width, type: Range, dataType: INT, minIntVal: 4, maxIntVal: 6, power: 2}     one of 16, 32, 64

With a power the bounds are exponents. Numbers are meant as they are written: 0.3 is three times 0.1.
"""

import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal, InvalidOperation, Overflow
from typing import Final

from pliant.core.errors import InvalidInput, Problem
from pliant.core.space import MAX_CHOICES, MAX_TEXT, Scalar, SearchParameter, Values
from pliant.ibm.rest.translate.hpo.request import HpoExperiment, HyperParam

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,59}")
_KINDS: Final = ("int", "double", "str")
_LARGEST: Final = 2**53


def to_space(given: Sequence[HyperParam]) -> Mapping[str, SearchParameter]:
    """Return what may be chosen.

    Raises:
        InvalidInput: with what is wrong with each of the hyperparameters.
    """
    space: dict[str, SearchParameter] = {}
    problems: list[Problem] = []
    for place, one in enumerate(given):
        try:
            _check_name(one.name, space)
            space[one.name] = _parameter(one)
        except InvalidInput as error:
            problems += (_of(f"hyperParams.{place}", one.name, problem) for problem in error.problems)
    if problems:
        raise InvalidInput(*problems)
    return space


def to_trials(experiments: Sequence[HpoExperiment]) -> tuple[Mapping[str, SearchParameter], tuple[Values, ...]]:
    """Return the values of each experiment, and the smallest space that holds them all.

    Raises:
        InvalidInput: with what is wrong with each of the experiments.
    """
    trials: list[dict[str, Scalar]] = []
    problems: list[Problem] = []
    for place, experiment in enumerate(experiments):
        values: dict[str, Scalar] = {}
        for index, one in enumerate(experiment.hyperParams):
            try:
                _check_name(one.name, values)
                values[one.name] = _fixed(one)
            except InvalidInput as error:
                where = f"experiments.{place}.hyperParams.{index}"
                problems += (_of(where, one.name, problem) for problem in error.problems)
        trials.append(values)
    if not problems:
        problems = [*_differing(trials)]
    if problems:
        raise InvalidInput(*problems)
    space = {name: _space_of([values[name] for values in trials]) for name in trials[0]}
    return space, tuple(trials)


def no_name(name: str) -> str:
    """Return why a hyperparameter cannot be called so; empty if it can."""
    if _NAME.fullmatch(name):
        return ""
    rule = "give letters, digits, '_', '-' and '.', 60 at most, a letter or '_' first"
    return f"{name!r:.80} is no name of a hyperparameter; {rule}"


def kind_of(one: HyperParam) -> str:
    """Return int, double or str.

    Raises:
        InvalidInput: it is none of them.
    """
    kind = one.dataType.strip().lower()
    if kind not in _KINDS:
        said = f"{one.dataType!r:.60} is none of them" if one.dataType else "it is missing"
        raise InvalidInput.at("dataType", f"{said}; give INT, DOUBLE or STR")
    return kind


def _of(where: str, name: str, problem: Problem) -> Problem:
    message = f"of {name!r:.60}: {problem.message}" if name and problem.field != "name" else problem.message
    return Problem(field=f"{where}.{problem.field}", message=message)


def _check_name(name: str, before: Mapping[str, object]) -> None:
    if message := no_name(name):
        raise InvalidInput.at("name", message)
    if name in before:
        raise InvalidInput.at("name", f"{name!r} is given twice; give it once")


def _differing(trials: Sequence[Mapping[str, Scalar]]) -> Sequence[Problem]:
    """Return which experiments have other hyperparameters than the first: nothing is there to choose the rest from."""
    names = list(trials[0])
    if not names:
        return [Problem(field="experiments.0.hyperParams", message="there are none; give each with its fixedVal")]
    return [
        Problem(
            field=f"experiments.{place}.hyperParams",
            message=f"there are {', '.join(values) or 'none'}, and the first experiment has {', '.join(names)}; give "
            f"every experiment the same",
        )
        for place, values in enumerate(trials)
        if set(values) != set(names)
    ]


def _space_of(values: Sequence[Scalar]) -> SearchParameter:
    distinct = tuple(dict.fromkeys(values))
    if len(distinct) == 1:
        return SearchParameter(kind="fixed", value=distinct[0])
    if len(distinct) <= MAX_CHOICES:
        return SearchParameter(kind="choice", choices=distinct)
    numbers = [one for one in distinct if isinstance(one, int | float)]
    if len(numbers) < len(distinct):
        message = f"a hyperparameter has {len(distinct):,} different texts; {MAX_CHOICES:,} are the most"
        raise InvalidInput.at("experiments", message)
    is_int = all(isinstance(one, int) for one in numbers)
    return SearchParameter(kind="int" if is_int else "float", low=float(min(numbers)), high=float(max(numbers)))


def _parameter(one: HyperParam) -> SearchParameter:
    match one.type.strip().lower():
        case "range":
            return _range(one)
        case "discrete":
            return _discrete(one)
        case "fix" | "fixed":
            return SearchParameter(kind="fixed", value=_fixed(one))
        case _:
            if not one.type and one.fixedVal is not None:
                return SearchParameter(kind="fixed", value=_fixed(one))
            said = f"{one.type!r:.60} is none of them" if one.type else "it is missing"
            raise InvalidInput.at("type", f"{said}; give Range, Discrete or fix")


def _fixed(one: HyperParam) -> Scalar:
    kind, text = kind_of(one), one.fixedVal
    if text is None:
        raise InvalidInput.at("fixedVal", "it is missing; give the value")
    if kind == "str":
        return _checked_text(text, "fixedVal")
    number = _number(text, "fixedVal")
    return _whole(number, "fixedVal") if kind == "int" else float(number)


def _discrete(one: HyperParam) -> SearchParameter:
    kind = kind_of(one)
    field = {"int": "discreteIntVal", "double": "discreteDbVal", "str": "discreateStrVal"}[kind]
    values: Sequence[Scalar] = getattr(one, field)
    if not values:
        raise InvalidInput.at(field, f"it is empty or missing; give the values to choose from, of the type {kind}")
    if kind == "str":
        values = [_checked_text(str(value), field) for value in values]
    return _choice(values, field)


def _choice(values: Sequence[Scalar], field: str) -> SearchParameter:
    distinct = tuple(dict.fromkeys(values))
    if len(distinct) > MAX_CHOICES:
        raise InvalidInput.at(field, f"there are {len(distinct):,} values; {MAX_CHOICES:,} are the most: give fewer")
    return SearchParameter(kind="choice", choices=distinct)


def _checked_text(text: str, field: str) -> str:
    if len(text) > MAX_TEXT or not text.isprintable():
        raise InvalidInput.at(field, f"{text!r:.60} is no line of {MAX_TEXT} characters at most; give one")
    return text


def _range(one: HyperParam) -> SearchParameter:
    kind = kind_of(one)
    if kind == "str":
        raise InvalidInput.at("type", "a text has no range; make it Discrete, with discreateStrVal")
    fields = ("minIntVal", "maxIntVal") if kind == "int" else ("minDbVal", "maxDbVal")
    given = [getattr(one, field) for field in fields]
    missing = [field for field, value in zip(fields, given, strict=True) if value is None]
    if missing:
        raise InvalidInput(*(Problem(field=field, message="it is missing; give the bound") for field in missing))
    low, high = (Decimal(repr(value)) for value in given)
    if low > high:
        raise InvalidInput.at(fields[0], f"the range is empty: {low} is above {fields[1]}, {high}; exchange them")
    step = None if one.step is None or not one.step.strip() else _positive(one.step, "step")
    if one.power is None or not one.power.strip():
        return _plain(kind, low, high, step)
    base = _positive(one.power, "power")
    if base == 1:
        raise InvalidInput.at("power", "all powers of 1 are 1; give another base")
    if kind == "double" and step is None:
        return _log(base, low, high)
    return _choice([_power(kind, base, low + i * (step or 1)) for i in range(_count(low, high, step or 1))], "power")


def _plain(kind: str, low: Decimal, high: Decimal, step: Decimal | None) -> SearchParameter:
    if step is not None:
        if kind == "int" and step != step.to_integral_value():
            raise InvalidInput.at("step", f"{step} is not whole, and the values are; give a whole number")
        high = low + ((high - low) / step).to_integral_value(ROUND_FLOOR) * step
    if low == high:
        return SearchParameter(kind="fixed", value=int(low) if kind == "int" else float(low))
    return SearchParameter(
        kind="int" if kind == "int" else "float",
        low=float(low),
        high=float(high),
        step=None if step is None or (kind == "int" and step == 1) else float(step),
    )


def _log(base: Decimal, low: Decimal, high: Decimal) -> SearchParameter:
    first, last = sorted(float(_power("double", base, exponent)) for exponent in (low, high))
    if first == last:
        return SearchParameter(kind="fixed", value=first)
    return SearchParameter(kind="float", low=first, high=last, log=True)


def _count(low: Decimal, high: Decimal, step: Decimal | int) -> int:
    num = int(((high - low) / step).to_integral_value(ROUND_FLOOR)) + 1
    if num > MAX_CHOICES:
        raise InvalidInput.at("step", f"the range has {num:,} values; {MAX_CHOICES:,} are the most: give a longer step")
    return num


def _power(kind: str, base: Decimal, exponent: Decimal) -> int | float:
    """Return a power; of whole exponents the number that is nearest to it."""
    magnitude = float(exponent) * math.log2(float(base))
    if kind == "int":
        is_whole = base == base.to_integral_value() and exponent == exponent.to_integral_value()
        if not is_whole or exponent < 0 or magnitude > 53:
            message = f"{base} to the power of {exponent} is no whole number up to {_LARGEST}; give other bounds"
            raise InvalidInput.at("power", message)
        return int(pow(int(base), int(exponent)))
    if not -1000 < magnitude < 1000:
        raise InvalidInput.at("power", f"{base} to the power of {exponent} is no number that can be kept; give others")
    if exponent == exponent.to_integral_value():
        return float(base ** int(exponent))
    return float(float(base) ** float(exponent))


def _positive(text: str, field: str) -> Decimal:
    number = _number(text, field)
    if number <= 0:
        raise InvalidInput.at(field, f"{text.strip()!r:.60} is not above 0; give more, or leave it out")
    return number


def _number(text: str, field: str) -> Decimal:
    try:
        number = Decimal(text.strip())
        if not number.is_finite() or (number and not -300 < number.adjusted() < 300):
            raise InvalidOperation
    except (InvalidOperation, Overflow) as error:
        raise InvalidInput.at(field, f"{text!r:.60} is no number; give one") from error
    return number


def _whole(number: Decimal, field: str) -> int:
    if number != number.to_integral_value() or abs(number) > _LARGEST:
        raise InvalidInput.at(field, f"{number} is no whole number; give one, or the dataType DOUBLE")
    return int(number)
