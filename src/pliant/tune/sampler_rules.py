"""Which sampler and which pruner can do what (`problems_of_sampler`). Pure: Optuna is not asked.

| | conditions | several objectives | learns from constraints | parameters |
|---|---|---|---|---|
| tpe, nsga2 | yes | yes | yes | any |
| random | yes | yes | no | any |
| gp | no | yes | yes | any |
| qmc | no | yes | no | any |
| grid | no | yes | no | choice, int, or float with a step |
| cmaes | no | no | no | float and int |
"""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

from pliant.core.errors import Problem
from pliant.core.search import MAX_TRIALS, SAMPLERS, PrunerName, SamplerName, SearchSettings
from pliant.core.space import SearchParameter, Value
from pliant.tune.sampler_options import PRUNER_OPTIONS, SAMPLER_OPTIONS, problems_of_options

SCIPY_SAMPLERS: Final[frozenset[SamplerName]] = frozenset({"gp", "qmc"})
SCIPY_PRUNERS: Final[frozenset[PrunerName]] = frozenset({"wilcoxon"})
WITHOUT_SCIPY: Final = "it needs SciPy, which is not installed here; install it with: pip install 'pliant[gp]'"
CONSTRAINED: Final[frozenset[SamplerName]] = frozenset({"tpe", "gp", "nsga2"})
"""Samplers that learn from constraints."""
_CONDITIONAL: Final[frozenset[SamplerName]] = frozenset({"tpe", "random", "nsga2"})
_LONG_NUMBER: Final = 10**15
"""From here on a power of ten says more."""


def problems_of_sampler(settings: SearchSettings, *, has_scipy: bool = True) -> tuple[Problem, ...]:
    """Return what is wrong with the sampler and the pruner of a search.

    Args:
        settings: whose parameters are right by themselves.
        has_scipy: whether it is installed where the search will be advised.
    """
    rules: tuple[Callable[[SearchSettings], Iterator[Problem]], ...] = (
        _of_options,
        _of_conditions,
        _of_objectives,
        _of_grid,
        _of_cmaes,
        _of_tpe,
        _of_ends,
        _of_threshold,
    )
    found = [problem for rule in rules for problem in rule(settings)]
    return tuple(found) if has_scipy else (*found, *_of_scipy(settings))


def grid_values(parameter: SearchParameter) -> tuple[Value, ...]:
    """Return all that a parameter can be, in its order.

    It has to be a choice, a fixed value, an int without `log`, or a float with a step.
    """
    if parameter.kind == "choice":
        return parameter.choices
    if parameter.kind == "fixed":
        return (parameter.value,)
    low, step = _exactly(parameter.low), _exactly(parameter.step or 1)
    values = [low + step * i for i in range(num_grid_values(parameter))]
    return tuple(int(value) if parameter.kind == "int" else float(value) for value in values)


def num_grid_values(parameter: SearchParameter) -> int:
    """Return how many values a parameter can be; it has to be as for `grid_values`."""
    if parameter.kind in ("choice", "fixed"):
        return max(len(parameter.choices), 1)
    low, high, step = _exactly(parameter.low), _exactly(parameter.high), _exactly(parameter.step or 1)
    return int((high - low) / step) + 1


def _exactly(number: float | None) -> Decimal:
    assert number is not None, "a parameter of numbers has both ends"
    return Decimal(repr(number))


def _of_options(settings: SearchSettings) -> Iterator[Problem]:
    sampler, pruner = settings.sampler, settings.pruner
    for name, table in SAMPLER_OPTIONS.items():
        if name == sampler.name:  # that of an algorithm of somebody's own has no table
            yield from problems_of_options(table, sampler.options, "sampler.options", f"the sampler {name}")
    if pruner is not None:
        whose = f"the pruner {pruner.name}"
        yield from problems_of_options(PRUNER_OPTIONS[pruner.name], pruner.options, "pruner.options", whose)


def _of_conditions(settings: SearchSettings) -> Iterator[Problem]:
    name = settings.sampler.name
    for parameter_name, parameter in settings.parameters.items():
        if parameter.when and name in SAMPLERS and name not in _CONDITIONAL:
            message = f"the sampler {name} cannot do with conditions; leave `when` out, or take tpe, random or nsga2"
            yield Problem(field=f"parameters.{parameter_name}.when", message=message)


def _of_objectives(settings: SearchSettings) -> Iterator[Problem]:
    if len(settings.objectives) == 1:
        return
    num = len(settings.objectives)
    if settings.sampler.name == "cmaes":
        message = f"cmaes takes one objective, and there are {num}; give one, or take tpe or nsga2"
        yield Problem(field="sampler.name", message=message)
    for field, given in (("halving", settings.halving), ("pruner", settings.pruner)):
        if given is not None:
            message = f"it compares trials by one objective, and there are {num}; leave it out, or give one objective"
            yield Problem(field=field, message=message)


def _of_grid(settings: SearchSettings) -> Iterator[Problem]:
    if settings.sampler.name != "grid":
        return
    is_endless = False
    for name, parameter in settings.parameters.items():
        if parameter.log:
            message = "a grid has no values by orders of magnitude; give `choices`, or leave `log` out"
        elif parameter.kind == "float" and parameter.step is None:
            message = "a grid needs to know which values there are; give a `step`, or `choices`"
        else:
            continue
        is_endless = True
        yield Problem(field=f"parameters.{name}", message=message)
    if not is_endless and (num := math.prod(map(num_grid_values, settings.parameters.values()))) > MAX_TRIALS:
        written = f"{num}" if num < _LONG_NUMBER else f"about 10^{int(math.log10(num))}"
        message = f"the grid has {written} points, more than the {MAX_TRIALS} trials of a search"
        yield Problem(field="sampler.name", message=f"{message}; take longer steps or random")


def _of_cmaes(settings: SearchSettings) -> Iterator[Problem]:
    if settings.sampler.name != "cmaes":
        return
    for name, parameter in settings.parameters.items():
        if parameter.kind == "choice":
            message = "cmaes takes numbers only, and choices have no order; make it float, int or fixed, or take tpe"
            yield Problem(field=f"parameters.{name}.kind", message=message)
    options = settings.sampler.options
    given = [name for name in ("use_separable_cma", "with_margin", "lr_adapt") if options.get(name) is True]
    if len(given) > 1:
        message = f"it cannot be with {given[0]}; leave one of the two out"
        yield Problem(field=f"sampler.options.{given[1]}", message=message)


def _of_tpe(settings: SearchSettings) -> Iterator[Problem]:
    options = settings.sampler.options
    if settings.sampler.name == "tpe" and options.get("group") is True and options.get("multivariate") is False:
        message = "it cannot be without multivariate; leave one of the two out"
        yield Problem(field="sampler.options.group", message=message)


def _of_ends(settings: SearchSettings) -> Iterator[Problem]:
    if settings.pruner is not None and settings.halving is not None:
        yield Problem(field="pruner", message="halving ends trials already; leave one of the two out")


def _of_threshold(settings: SearchSettings) -> Iterator[Problem]:
    pruner = settings.pruner
    if pruner is None or pruner.name != "threshold":
        return
    lower, upper = pruner.options.get("lower"), pruner.options.get("upper")
    if lower is None and upper is None:
        yield Problem(field="pruner.options", message="threshold needs one; give lower, upper or both")
    elif isinstance(lower, int | float) and isinstance(upper, int | float) and lower > upper:
        message = f"{lower} is more than upper, {upper}; give a lower that is not above it"
        yield Problem(field="pruner.options.lower", message=message)


def _of_scipy(settings: SearchSettings) -> Iterator[Problem]:
    if settings.sampler.name in SCIPY_SAMPLERS:
        yield Problem(field="sampler.name", message=WITHOUT_SCIPY)
    if settings.pruner is not None and settings.pruner.name in SCIPY_PRUNERS:
        yield Problem(field="pruner.name", message=WITHOUT_SCIPY)
