"""What a sampler and a pruner can be told (`Sampler.options`, `Pruner.options`), with Optuna's own defaults.

The defaults are written out here, and given with every call: what another version of Optuna would choose by itself
changes no search. Arguments that take objects or functions are left out, and so are those that Optuna is giving up.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from pliant.core.errors import Problem
from pliant.core.search import PrunerName, SamplerName
from pliant.core.space import Scalar

OptionKind = Literal["bool", "int", "float", "text"]
_TYPES: Final[Mapping[OptionKind, tuple[type, ...]]] = MappingProxyType(
    {"bool": (bool,), "int": (int,), "float": (float, int), "text": (str,)}
)
_WORDS: Final[Mapping[OptionKind, str]] = MappingProxyType(
    {"bool": "true or false", "int": "a whole number", "float": "a number", "text": "a text"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerOption:
    """An argument of a sampler or of a pruner."""

    kind: OptionKind
    default: Scalar = None
    """What it is if nobody says; None: Optuna decides by the search, as its documents say."""
    required: bool = False
    """Somebody has to say."""
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    """All that a text may be."""

    def refusal(self, value: Scalar) -> str:
        """Return what it has to be instead, in words; empty if it may be this value."""
        if value is None and self.default is None and not self.required:
            return ""
        fits = isinstance(value, _TYPES[self.kind]) and (self.kind == "bool" or not isinstance(value, bool))
        if fits and isinstance(value, int | float):
            fits = self.low <= value <= self.high
        if fits and self.choices:
            fits = value in self.choices
        return "" if fits else self._expected()

    def _expected(self) -> str:
        if self.choices:
            return " or ".join(self.choices)
        ends = (f" from {self.low:g}" if self.low > -math.inf else "") + (
            f" to {self.high:g}" if self.high < math.inf else ""
        )
        return _WORDS[self.kind] + ends


OptionTable = Mapping[str, SamplerOption]


def _count(default: int | None, low: int = 0) -> SamplerOption:
    return SamplerOption(kind="int", default=default, low=low)


def _flag(default: bool | None) -> SamplerOption:
    return SamplerOption(kind="bool", default=default)


def _part(default: float | None, high: float = 1.0, *, required: bool = False) -> SamplerOption:
    return SamplerOption(kind="float", default=default, low=0.0, high=high, required=required)


SAMPLER_OPTIONS: Final[Mapping[SamplerName, OptionTable]] = MappingProxyType(
    {
        "tpe": {
            "n_startup_trials": _count(10),
            "n_ei_candidates": _count(24, low=1),
            "multivariate": _flag(None),
            "group": _flag(None),
            "constant_liar": _flag(True),
        },
        "random": {},
        "grid": {},
        "gp": {"n_startup_trials": _count(10), "deterministic_objective": _flag(False)},
        "cmaes": {
            "n_startup_trials": _count(1),
            "popsize": _count(None, low=2),
            "consider_pruned_trials": _flag(False),
            "use_separable_cma": _flag(False),
            "with_margin": _flag(False),
            "lr_adapt": _flag(False),
        },
        "nsga2": {
            "population_size": _count(50, low=2),
            "mutation_prob": _part(None),
            "crossover_prob": _part(0.9),
            "swapping_prob": _part(0.5),
        },
        "qmc": {
            "qmc_type": SamplerOption(kind="text", default="sobol", choices=("sobol", "halton")),
            "scramble": _flag(False),
        },
    }
)
"""By the sampler's name. What is None for `tpe` follows from the search: see `tune.adviser.samplers`."""

_AFTER: Final[OptionTable] = MappingProxyType({"n_warmup_steps": _count(0), "interval_steps": _count(1, low=1)})
_COMPARED: Final[OptionTable] = MappingProxyType(
    {"n_startup_trials": _count(5), **_AFTER, "n_min_trials": _count(1, 1)}
)

PRUNER_OPTIONS: Final[Mapping[PrunerName, OptionTable]] = MappingProxyType(
    {
        "median": _COMPARED,
        "percentile": {"percentile": _part(None, 100.0, required=True), **_COMPARED},
        "wilcoxon": {"p_threshold": _part(0.1), "n_startup_steps": _count(2)},
        "patient": {
            "patience": SamplerOption(kind="int", low=0, required=True),
            "min_delta": SamplerOption(kind="float", default=0.0, low=0.0),
        },
        "threshold": {"lower": SamplerOption(kind="float"), "upper": SamplerOption(kind="float"), **_AFTER},
    }
)
"""By the pruner's name."""


def with_defaults(table: OptionTable, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return every argument: as it is given, or its default."""
    return {name: given.get(name, option.default) for name, option in table.items()}


def problems_of_options(table: OptionTable, given: Mapping[str, Scalar], field: str, whose: str) -> Iterator[Problem]:
    """Yield what is wrong with options.

    Args:
        field: where they stand, such as `sampler.options`.
        whose: a few words, such as "the sampler tpe".
    """
    for name, value in given.items():
        where = f"{field}.{name}"
        if (option := table.get(name)) is None:
            there = f"there is {', '.join(table)}" if table else "it has none"
            yield Problem(field=where, message=f"{whose} has no option {name!r:.60}; {there}")
        elif expected := option.refusal(value):
            yield Problem(field=where, message=f"{value!r:.60} is not possible; give {expected}")
    for name, option in table.items():
        if option.required and name not in given:
            expected = option.refusal(None)
            yield Problem(field=f"{field}.{name}", message=f"{whose} needs it; give {expected}")
