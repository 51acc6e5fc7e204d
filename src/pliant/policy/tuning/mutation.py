"""The values of a child in a population: its parent's, a little changed, or drawn anew.

Numbers are multiplied by the factor or divided, kept in their range and on their steps, whole ones moved by one step at
least. Choices change only by being drawn anew, with the probability `resample`. What was fixed stays. A parameter
whose condition holds for the child and did not for its parent is drawn anew; one whose condition does not hold is left
out.

Every draw is a hash of what it is for (`draw`), so that a decision that is made again comes to the same.
"""

import hashlib
import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

from pliant.core.population import Population
from pliant.core.space import SearchParameter, Space, Value, Values, applies

_BITS: Final = 53


def draw(seed: int, number: int, purpose: str, name: str = "") -> float:
    """Return a number from 0 to below 1, the same for the same arguments; independent for others.

    Args:
        seed: the search's.
        number: of the trial that is made.
        purpose: what is decided by it.
        name: the parameter that it is about.
    """
    digest = hashlib.sha256(f"{seed}/{number}/{purpose}/{name}".encode()).digest()
    return float((int.from_bytes(digest[:8], "big") >> (64 - _BITS)) / (1 << _BITS))


def mutate(space: Space, values: Values, population: Population, *, seed: int, number: int) -> Values:
    """Return the values of a child.

    Args:
        space: a sound one.
        values: the parent's.
        population: which says how they change.
        seed: the search's.
        number: the child's.
    """
    child: dict[str, Value] = {}
    for name, parameter in space.items():
        if not applies(parameter, child):
            continue
        if parameter.kind == "fixed":
            child[name] = parameter.value
        elif name not in values or draw(seed, number, "resample", name) < population.resample:
            child[name] = _drawn(parameter, draw(seed, number, "value", name))
        elif parameter.kind == "choice":
            child[name] = values[name]
        else:
            is_up = draw(seed, number, "way", name) < 0.5
            child[name] = _moved(parameter, values[name], population.factor if is_up else 1 / population.factor)
    return child


def _drawn(parameter: SearchParameter, at: float) -> Value:
    """Return the value of a parameter that lies so far from its first one to its last, 0 to below 1."""
    if parameter.kind == "choice":
        return parameter.choices[int(at * len(parameter.choices))]
    low, high = _ends(parameter)
    if parameter.log:
        shift = 0.5 if parameter.kind == "int" else 0.0  # the first and the last whole number are as probable as others
        first, last = math.log(low - shift), math.log(high + shift)
        return _fit(parameter, math.exp(first + at * (last - first)))
    if parameter.kind == "int" or parameter.step is not None:
        return _on_grid(parameter, int(at * (_num_steps(parameter) + 1)))
    return _fit(parameter, low + at * (high - low))


def _moved(parameter: SearchParameter, value: Value, factor: float) -> Value:
    """Return a number times a factor, in its range and on its steps, and another one if its range has room there."""
    assert isinstance(value, int | float), "a parameter of numbers has one"
    moved = value * factor
    if parameter.kind == "float" and parameter.step is None:
        return _fit(parameter, moved)
    before = _nearest(parameter, value)
    after = _nearest(parameter, moved)
    if after == before:
        grows = moved > value if moved != value else factor > 1
        after = before + (1 if grows else -1)
    return _on_grid(parameter, after)


def _fit(parameter: SearchParameter, number: float) -> Value:
    """Return the nearest value that a parameter can have."""
    low, high = _ends(parameter)
    if parameter.kind == "int" or parameter.step is not None:
        return _on_grid(parameter, _nearest(parameter, number))
    return min(max(float(number), float(low)), float(high))


def _nearest(parameter: SearchParameter, number: float) -> int:
    """Return how many steps above the first value the nearest one to a number is; perhaps outside the range."""
    return math.floor((Fraction(Decimal(repr(number))) - _first(parameter)) / _step(parameter) + Fraction(1, 2))


def _on_grid(parameter: SearchParameter, steps: int) -> Value:
    """Return the value so many steps above the first, or the end of the range that is nearer."""
    number = _first(parameter) + min(max(steps, 0), _num_steps(parameter)) * _step(parameter)
    return int(number) if parameter.kind == "int" else float(number)


def _num_steps(parameter: SearchParameter) -> int:
    _, high = _ends(parameter)
    return int((Fraction(Decimal(repr(high))) - _first(parameter)) / _step(parameter))


def _first(parameter: SearchParameter) -> Fraction:
    return Fraction(Decimal(repr(_ends(parameter)[0])))


def _step(parameter: SearchParameter) -> Fraction:
    return Fraction(Decimal(repr(1 if parameter.step is None else parameter.step)))


def _ends(parameter: SearchParameter) -> tuple[float, float]:
    assert parameter.low is not None, "a parameter of numbers has both ends"
    assert parameter.high is not None, "a parameter of numbers has both ends"
    return parameter.low, parameter.high
