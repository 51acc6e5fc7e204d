"""Objectives, constraints, rungs and populations as short texts, for command lines, files and Python.

val_loss            its last value          val_loss:min            its lowest value
val_loss:minimize   made small              acc:maximize:max        its highest value made large
memory_gb<=8        its last value at most 8    acc:max>=0.9            its highest value at least 0.9
1..27               epochs 1, 3, 9          step:100..2700:3        steps 100, 300, 900, by the factor 3
8:3..27             8 members, decided about at epochs 3, 6, …, 24
"""

import re
from dataclasses import replace
from math import isfinite
from typing import Final, cast, get_args

from pliant.core.errors import InvalidInput
from pliant.core.population import Population
from pliant.core.search import Constraint, Direction, Halving, Objective, Reading, Resource

_READINGS: Final = get_args(Reading)
_DIRECTIONS: Final = get_args(Direction)
_RESOURCES: Final = get_args(Resource)
_CONSTRAINT: Final = re.compile(
    r"(?P<metric>.*?)(?P<side><=|>=)\s*(?P<bound>[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,4})?)\s*"
)
_WHOLE: Final = 1e15
_HALVING: Final = re.compile(r"(?:(?P<of>[a-z]+):)?(?P<min>[0-9]{1,9})\.\.(?P<max>[0-9]{1,9})(?::(?P<by>[0-9]{1,9}))?")
_POPULATION: Final = re.compile(r"(?P<size>[0-9]{1,9}):(?P<every>[0-9]{1,9})\.\.(?P<max>[0-9]{1,9})")


def read_metric(text: str) -> tuple[str, Reading]:
    """Return the metric that a text `NAME[:READING]` names, and which of its values counts."""
    name, colon, last = text.rpartition(":")
    if colon and last in _READINGS:
        return name, cast(Reading, last)
    return text, "last"


def read_objective(text: str) -> Objective:
    """Return the objective that a text `NAME:DIRECTION[:READING]` says.

    Raises:
        InvalidInput: it says none.
    """
    metric, reading = read_metric(text)
    name, colon, direction = metric.rpartition(":")
    if not (colon and name and direction in _DIRECTIONS):
        message = f"{text!r:.100} says no direction; give it as val_loss:minimize, or acc:maximize:max"
        raise InvalidInput.at("", message)
    return Objective(metric=name, direction=cast(Direction, direction), reading=reading)


def write_objective(objective: Objective) -> str:
    """Return the text that says an objective."""
    reading = "" if objective.reading == "last" else f":{objective.reading}"
    return f"{objective.metric}:{objective.direction}{reading}"


def read_constraint(text: str) -> Constraint:
    """Return the constraint that a text `NAME[:READING]<=BOUND` or `NAME[:READING]>=BOUND` says.

    Raises:
        InvalidInput: it says none.
    """
    found = _CONSTRAINT.fullmatch(text)
    if found is None or not isfinite(bound := float(found["bound"])):
        message = f"{text!r:.100} says no bound; give it as 'memory_gb<=8' or 'acc>=0.9', in quotes in a shell"
        raise InvalidInput.at("", message)
    metric, reading = read_metric(found["metric"].strip())
    if not metric:
        raise InvalidInput.at("", f"{text!r:.100} names no metric; give what the script reports: 'memory_gb<=8'")
    if found["side"] == "<=":
        return Constraint(metric=metric, upper=bound, reading=reading)
    return Constraint(metric=metric, lower=bound, reading=reading)


def write_constraint(constraint: Constraint) -> str:
    """Return the text that says a sound constraint."""
    side, bound = ("<=", constraint.upper) if constraint.upper is not None else (">=", constraint.lower)
    assert bound is not None, "a sound constraint has a bound"
    shown = str(int(bound)) if bound == int(bound) and abs(bound) < _WHOLE else repr(float(bound))
    reading = "" if constraint.reading == "last" else f":{constraint.reading}"
    return f"{constraint.metric}{reading}{side}{shown}"


def read_halving(text: str) -> Halving:
    """Return the rungs that a text `[RESOURCE:]MIN..MAX[:FACTOR]` says.

    Raises:
        InvalidInput: it says none.
    """
    found = _HALVING.fullmatch(text.replace(" ", ""))
    if found is None:
        message = f"{text!r:.100} says no rungs; give the first, the end and a factor, such as 1..27:3"
        raise InvalidInput.at("", message)
    resource = found["of"] or "epoch"
    if resource not in _RESOURCES:
        raise InvalidInput.at("", f"{resource!r} is not counted; give {' or '.join(_RESOURCES)}, such as epoch:1..27:3")
    rungs = Halving(resource=cast(Resource, resource), min=int(found["min"]), max=int(found["max"]))
    return rungs if found["by"] is None else replace(rungs, factor=int(found["by"]))


def write_halving(halving: Halving) -> str:
    """Return the text that says from where to where, of what and by which factor."""
    resource = "" if halving.resource == "epoch" else f"{halving.resource}:"
    return f"{resource}{halving.min}..{halving.max}:{halving.factor}"


def read_population(text: str) -> Population:
    """Return the population that a text `SIZE:EVERY..MAX` says.

    Raises:
        InvalidInput: it says none.
    """
    found = _POPULATION.fullmatch(text.replace(" ", ""))
    if found is None:
        said = f"{text!r:.100} says no population; give its members, the epochs between decisions, and all epochs"
        raise InvalidInput.at("", f"{said}, such as 8:3..27")
    return Population(size=int(found["size"]), every=int(found["every"]), max=int(found["max"]))


def write_population(population: Population) -> str:
    """Return the text that says how many members there are, and when it is decided about them."""
    return f"{population.size}:{population.every}..{population.max}"
