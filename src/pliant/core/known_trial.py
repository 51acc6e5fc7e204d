"""Trials of another study, from which a search learns (`KnownTrial`): what they must be, and how they become trials.

A study elsewhere may have tried values that this search could not choose, or have no value for a parameter that this
one always chooses. `fit_known` leaves such trials out, and says of each why.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from typing import Annotated, Final

from annotated_types import Len, MaxLen

from pliant.core.errors import Problem
from pliant.core.input import FINITE, NUMBER, Input
from pliant.core.job import JobId
from pliant.core.search import ENDED, MAX_REPORTS, Search, SearchSettings, Trial, TrialState
from pliant.core.search_text import write_constraint
from pliant.core.space import SearchParameter, Value, Values, applies
from pliant.core.space_rules import misfit, problems_of_values

MAX_KNOWN: Final = 10_000
NO_JOB: Final = JobId("")
"""What a trial has in the place of a job that ran elsewhere."""
_NEAR: Final = 1e-8
"""A number this part of a step beside one is on it, as Optuna has it."""
_REASON: Final = "it was known when the search began"

_Result = Annotated[float, Input(FINITE, NUMBER)]


@dataclass(frozen=True, kw_only=True)
class KnownTrial:
    """A trial of another study, which has ended."""

    values: Values
    """By the names of the parameters."""
    state: TrialState = TrialState.COMPLETED
    """completed, pruned, failed or stopped."""
    results: Annotated[tuple[_Result, ...], Input(Len(1, 10))] | None = None
    """What it came to, one for each objective; needed if it has completed."""
    violations: Annotated[tuple[float, ...], Input(MaxLen(10))] = ()
    """By how much it violates each constraint, 0 or less: it keeps it; needed if it has completed."""
    reports: Annotated[tuple[tuple[int, float], ...], Input(MaxLen(MAX_REPORTS))] = ()
    """Values of the first objective: (epoch or step, value), each once, growing. NaN is one."""


def trials_of(search: Search, known: Sequence[KnownTrial]) -> tuple[Trial, ...]:
    """Return the first trials of a search that begins with some that are known."""
    return tuple(
        Trial(
            search=search.name,
            number=number,
            values=one.values,
            state=one.state,
            reason=_REASON,
            job_id=NO_JOB,
            reports=one.reports,
            results=one.results,
            violations=one.violations,
            begun_at=search.created_at,
            ended_at=search.created_at,
        )
        for number, one in enumerate(known)
    )


def problems_of_known(settings: SearchSettings, known: Sequence[KnownTrial]) -> tuple[Problem, ...]:
    """Return all that is wrong with trials for a search whose settings are sound."""
    return tuple(
        Problem(field=f"known.{index}.{field}", message=message)
        for index, one in enumerate(known)
        for field, message in _wrong(settings, one)
    )


def fit_known(settings: SearchSettings, known: Sequence[KnownTrial]) -> tuple[tuple[KnownTrial, ...], tuple[str, ...]]:
    """Return the trials that a search can learn from, with values as it would choose them; and why others cannot.

    Parameters that the search does not have are left out of a trial.
    """
    fit, reasons = [], []
    for one in known:
        candidate = replace(
            one, values={name: _as_chosen(settings, name, value) for name, value in _own(settings, one)}
        )
        wrong = next(_wrong(settings, candidate), None)
        if wrong is None:
            fit.append(candidate)
        else:
            reasons.append(f"{wrong[0].removeprefix('values.')}: {wrong[1]}")
    return tuple(fit), tuple(reasons)


def _own(settings: SearchSettings, one: KnownTrial) -> Iterator[tuple[str, Value]]:
    """Yield what a trial has of a search's parameters, in their order."""
    for name in settings.parameters:
        if name in one.values:
            yield name, one.values[name]


def _as_chosen(settings: SearchSettings, name: str, value: Value) -> Value:
    """Return a value as the search would choose it: 0.1 for 0.1, a choice for a text that is the choice in JSON."""
    parameter = settings.parameters[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if parameter.kind == "float" and is_number:
        return float(value)  # type: ignore[arg-type]
    if parameter.kind == "int" and isinstance(value, float) and isfinite(value) and value == int(value):
        return int(value)
    if parameter.kind == "choice" and isinstance(value, str) and misfit(parameter, value):
        return _choice(parameter, value)
    return value


def _on_step(parameter: SearchParameter, value: Value) -> Value:
    """Return the step that a number means: a sampler that adds 0.1 three times comes to 0.30000000000000004."""
    low, step = parameter.low, parameter.step
    if parameter.kind != "float" or step is None or low is None or not isinstance(value, float) or not isfinite(value):
        return value
    if not isfinite(steps := (value - low) / step):
        return value
    nearest = float(Decimal(repr(low)) + round(steps) * Decimal(repr(step)))
    return nearest if abs(nearest - value) < _NEAR * step else value


def _choice(parameter: SearchParameter, text: str) -> Value:
    return next((one for one in parameter.choices if json.dumps(one, separators=(",", ":")) == text), text)


def _wrong(settings: SearchSettings, one: KnownTrial) -> Iterator[tuple[str, str]]:
    """Yield fields of a trial with what is wrong with them."""
    nearest = {name: _on_step(settings.parameters[name], value) for name, value in _own(settings, one)}
    for problem in problems_of_values(settings.parameters, {**one.values, **nearest}):
        yield f"values.{problem.field}", problem.message
    fixed = {name: parameter.value for name, parameter in settings.parameters.items() if parameter.kind == "fixed"}
    there = {**fixed, **one.values}
    for name, parameter in settings.parameters.items():
        if name not in there and applies(parameter, there):
            yield f"values.{name}", "it has no value; give one, or leave the trial out"
        if name in one.values and not applies(parameter, there):
            yield f"values.{name}", "its condition does not hold; leave it out"
    if one.state not in ENDED:
        yield "state", f"it is {one.state.value}; only what has ended is known: leave the trial out"
    needs_results = one.state is TrialState.COMPLETED
    if one.results is None and needs_results:
        yield "results", f"they are missing; give one for each objective, {len(settings.objectives)}"
    elif one.results is not None and len(one.results) != len(settings.objectives):
        yield "results", f"there are {len(one.results)} for {len(settings.objectives)} objectives; give one for each"
    elif one.results is not None and not all(map(isfinite, one.results)):
        yield "results", f"{', '.join(map(repr, one.results))} is not finite; leave the trial out"
    yield from _wrong_violations(settings, one)
    places = [at for at, _ in one.reports]
    if any(later <= earlier for earlier, later in pairwise(places)):
        yield "reports", "their epochs or steps do not grow; give each once, in order"


def _wrong_violations(settings: SearchSettings, one: KnownTrial) -> Iterator[tuple[str, str]]:
    texts = [write_constraint(constraint) for constraint in settings.constraints]
    if len(one.violations) == len(texts) or (not one.violations and one.state is not TrialState.COMPLETED):
        return
    if not texts:
        yield "violations", "the search has no constraints; leave them out"
    elif not one.violations:
        yield (
            "violations",
            f"it lacks by how much it violates {', '.join(texts)}; say it, or leave the trial out",
        )
    else:
        yield "violations", f"there are {len(one.violations)} for {len(texts)} constraints; give one for each"
