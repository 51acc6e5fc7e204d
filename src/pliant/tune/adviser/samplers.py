"""Optuna's samplers, with every argument written out."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    GridSampler,
    NSGAIISampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)

from pliant.core.search import SAMPLERS, SamplerName, SearchSettings
from pliant.tune.adviser.distributions import Distributions
from pliant.tune.sampler_options import SAMPLER_OPTIONS, with_defaults
from pliant.tune.sampler_rules import grid_values


def arguments_of(settings: SearchSettings) -> dict[str, Any]:
    """Return the arguments of a search's sampler, as Optuna calls them, without those that follow from parameters."""
    sampler = settings.sampler
    arguments: dict[str, Any] = with_defaults(SAMPLER_OPTIONS[_built_in(settings)], sampler.options)
    if sampler.name == "tpe":
        _decide_tpe(arguments, settings)
    if sampler.name in ("gp", "cmaes", "qmc"):
        arguments["warn_independent_sampling"] = False
    return {**arguments, "seed": sampler.seed}


def make_sampler(settings: SearchSettings) -> BaseSampler:
    """Make a search's sampler, as it is before its first trial."""
    arguments = arguments_of(settings)
    if settings.sampler.name == "grid":
        arguments["search_space"] = _grid(settings)
    return MAKERS[_built_in(settings)](**arguments)


def _built_in(settings: SearchSettings) -> SamplerName:
    name = next((one for one in SAMPLERS if one == settings.sampler.name), None)
    assert name is not None, "an algorithm of somebody's own is asked in its own process"
    return name


def _decide_tpe(arguments: dict[str, Any], settings: SearchSettings) -> None:
    """Say what TPE would guess: one objective is modelled jointly, and with conditions in groups."""
    if arguments["multivariate"] is None:
        arguments["multivariate"] = bool(arguments["group"]) or len(settings.objectives) == 1
    if arguments["group"] is None:
        has_conditions = any(parameter.when for parameter in settings.parameters.values())
        arguments["group"] = arguments["multivariate"] and has_conditions


def _grid(settings: SearchSettings) -> dict[str, list[Any]]:
    """Return what is tried of each parameter, in Optuna's form."""
    space = {name: one for name, one in settings.parameters.items() if one.kind != "fixed"}
    distributions = Distributions(space)
    return {
        name: [distributions.internal({name: value})[0][name] for value in grid_values(one)]
        for name, one in space.items()
    }


MAKERS: Final[Mapping[SamplerName, Callable[..., BaseSampler]]] = MappingProxyType(
    {
        "tpe": TPESampler,
        "random": RandomSampler,
        "grid": GridSampler,
        "gp": GPSampler,
        "cmaes": CmaEsSampler,
        "nsga2": NSGAIISampler,
        "qmc": QMCSampler,
    }
)
