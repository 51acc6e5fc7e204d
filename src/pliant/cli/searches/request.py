"""What was typed for `tune`, as a request; and values that are typed."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from pliant.api.searches import SearchRequest
from pliant.cli.fields import Given, read_typed
from pliant.cli.jobs.asked import size_of, validate_job
from pliant.cli.options import leave_out_none
from pliant.cli.searches.asked import OPTIONS
from pliant.core.errors import InvalidInput, Problem
from pliant.core.input import values_of
from pliant.core.population import Population
from pliant.core.search import Constraint, Halving, Objective
from pliant.core.search_text import read_constraint, read_halving, read_metric, read_objective, read_population
from pliant.core.space import SearchParameter, Value
from pliant.core.space_text import read_parameter, read_value

T = TypeVar("T")

_OPTION_OF: Final[Mapping[str, str]] = {
    "halving.order": "halving_order",
    "halving.brackets": "brackets",
    "halving.size": "rung_size",
    "sampler.seed": "seed",
    "sampler.options": "sampler_option",
    "sampler.name": "sampler",
    "pruner.options": "pruner_option",
    "pruner.name": "pruner",
    "population.fraction": "population_option",
    "population.factor": "population_option",
    "population.resample": "population_option",
}
"""Fields within fields that have options of their own."""

_OF_POPULATION: Final = ("fraction", "factor", "resample")
_OF_ONE_METRIC: Final = {"objectives.0.metric": "metric", "objectives.0.direction": "direction"}


def read_request(typed: Given, own: Mapping[str, object]) -> SearchRequest:
    """Return what is asked for with what was typed.

    Args:
        typed: for the options of `OPTIONS`, and `direction`.
        own: fields that were found otherwise.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    given = read_typed(OPTIONS, typed)
    search = _taken(given)
    problems: list[Problem] = []
    fields = dict(_fields_of(search, typed.get("direction"), problems))
    if problems:
        raise InvalidInput(*problems)
    try:
        return validate_job(SearchRequest, leave_out_none({**given, **own, **fields, **size_of(given)}))
    except InvalidInput as error:
        options = {**_OPTION_OF, **(_OF_ONE_METRIC if "metric" in search else {})}
        raise InvalidInput(*(_at_option(problem, options) for problem in error.problems)) from error


def read_values(texts: Sequence[str], option: str = "--param") -> dict[str, Value]:
    """Return values given as NAME=VALUE, such as `lr=0.1`.

    Raises:
        InvalidInput: with all that are none.
    """
    problems: list[Problem] = []
    pairs = [pair for text in texts if (pair := _tried(_pair, text, option, problems)) is not None]
    problems += _twice(pairs, option)
    if problems:
        raise InvalidInput(*problems)
    return dict(pairs)


def _taken(given: Given) -> Given:
    """Take from what is given what is no field of a request, or is said otherwise there."""
    names = ("parameters", "metric", "objectives", "sampler", "seed", "sampler_option", "halving", "halving_order")
    more = ("constraints", "brackets", "rung_size", "pruner", "pruner_option", "population", "population_option")
    return {name: given.pop(name) for name in (*names, *more) if given.get(name) is not None}


def _fields_of(search: Given, direction: str | None, problems: list[Problem]) -> Iterator[tuple[str, object]]:
    """Yield the fields of a request that a search is asked for with."""
    texts = search.get("parameters", [])
    found = [pair for text in texts if (pair := _tried(_parameter, text, "parameters", problems)) is not None]
    problems += _twice(found, "parameters")
    if not texts:
        problems.append(
            Problem(field="parameters", message="nothing may be chosen; give lr=log:1e-5..1e-1 or the like")
        )
    yield "parameters", dict(found)
    yield "objectives", list(_objectives(search, direction, problems))
    bounds = (_tried(read_constraint, text, "constraints", problems) for text in search.get("constraints", []))
    yield "constraints", [values_of(Constraint, bound) for bound in bounds if bound is not None] or None
    sampler = {"name": search.get("sampler"), "seed": search.get("seed")}
    options = _options(search, "sampler_option", problems)
    yield "sampler", leave_out_none({**sampler, "options": options or None}) or None
    yield "halving", _halving(search, problems)
    pruner, options = search.get("pruner"), _options(search, "pruner_option", problems)
    if options and pruner is None:
        problems.append(Problem(field="pruner_option", message="it is an argument of a pruner; give --pruner as well"))
    yield "pruner", None if pruner is None else {"name": pruner, "options": options}
    yield "population", _population(search, problems)


def _objectives(search: Given, direction: str | None, problems: list[Problem]) -> Iterator[dict[str, Any]]:
    metric, several = search.get("metric"), search.get("objectives", [])
    if metric is None and not several:
        problems.append(Problem(field="metric", message="nothing says what is better; give what the script reports"))
    if metric is not None:
        if several:
            problems.append(Problem(field="metric", message="objectives are given as well; leave one of the two out"))
        name, reading = read_metric(metric)
        yield {"metric": name, "direction": direction or "minimize", "reading": reading}
    elif direction is not None and several:
        problems.append(Problem(field="direction", message="every objective says its own; leave it out"))
    for text in several:
        if (one := _tried(read_objective, text, "objectives", problems)) is not None:
            yield values_of(Objective, one)


def _halving(search: Given, problems: list[Problem]) -> dict[str, Any] | None:
    more = {"halving_order": "order", "brackets": "brackets", "rung_size": "size"}
    given = {field: search[name] for name, field in more.items() if name in search}
    if "halving" in search:
        rungs = _tried(read_halving, search["halving"], "halving", problems)
        return None if rungs is None else {**values_of(Halving, rungs), **given}
    message = "it says how halving goes; give --halving as well, such as 1..27:3"
    problems += [Problem(field=name, message=message) for name in more if name in search]
    return None


def _population(search: Given, problems: list[Problem]) -> dict[str, Any] | None:
    options = _options(search, "population_option", problems)
    if "population" not in search:
        message = "it says how a population changes; give --population as well, such as 8:3..27"
        problems += [Problem(field="population_option", message=message)] if options else []
        return None
    for name in options:
        if name not in _OF_POPULATION:
            message = f"there is no {name!r:.80}; there are: {', '.join(_OF_POPULATION)}"
            problems.append(Problem(field="population_option", message=message))
    read = _tried(read_population, search["population"], "population", problems)
    return None if read is None else {**values_of(Population, read), **options}


def _options(search: Given, field: str, problems: list[Problem]) -> dict[str, Value]:
    pairs = (_tried(_pair, text, field, problems) for text in search.get(field, []))
    return dict(pair for pair in pairs if pair is not None)


def _twice(pairs: Sequence[tuple[str, object]], field: str) -> list[Problem]:
    counts = Counter(name for name, _ in pairs)
    return [
        Problem(field=field, message=f"{name!r} is given twice; give it once")
        for name, num in counts.items()
        if num > 1
    ]


def _pair(text: str) -> tuple[str, Value]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidInput.at("", f"{text!r:.100} has no name or no value; give it as NAME=VALUE")
    return name, read_value(value)


def _parameter(text: str) -> tuple[str, dict[str, Any]]:
    """Return a parameter that is given in the grammar, or as fields in JSON: `lr={"kind": "float", …}`."""
    name, _, body = text.partition("=")
    if not body.startswith("{"):
        name, parameter = read_parameter(text)
        return name, values_of(SearchParameter, parameter)
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at("", f"{text!r:.100} is no JSON ({error}); mend it there") from error
    return name, dict(_sound(fields))


def _sound(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield fields of a parameter as a request takes them: a kind `log`, numbers that are texts, one value alone."""
    for name, value in fields.items():
        if name == "kind" and value == "log":
            yield from {"kind": "float", "log": True}.items()
        elif name in ("low", "high", "step") and isinstance(value, str):
            yield name, _number(value)
        elif name == "when" and isinstance(value, dict):
            yield name, {other: one if isinstance(one, list) else [one] for other, one in value.items()}
        else:
            yield name, value


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _tried(read: Callable[[str], T], text: str, field: str, problems: list[Problem]) -> T | None:
    """Return what a text says; None if it says nothing, and that is among the problems then."""
    try:
        return read(text)
    except InvalidInput as error:
        problems += [Problem(field=field, message=one.message) for one in error.problems]
    return None


def _at_option(problem: Problem, options: Mapping[str, str]) -> Problem:
    """Return a problem with the field whose option it is."""
    for field, option in options.items():
        if problem.field == field or problem.field.startswith(f"{field}."):
            return replace(problem, field=problem.field.replace(field, option, 1))
    return problem
