"""Every sampler on standard functions, through an adviser's process, against plain Optuna with the same seed."""

import itertools
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import optuna
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

from bench._report import Claim, table
from bench.tune.part import Part
from pliant.core.job import JobId
from pliant.core.search import Objective, Sampler, SamplerName, SearchSettings, Trial, TrialState
from pliant.core.space import SearchParameter, Values
from pliant.tune.advice import AdviserInput, Asked, Exhausted
from pliant.tune.adviser_process import AdviserProcess, own_program

NUM_POINTS: Final = 9
"""Of each of a grid's parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A function to be made small."""

    name: str
    function: Callable[[Sequence[float]], float]
    bounds: Sequence[tuple[float, float]]


def _branin(x: Sequence[float]) -> float:
    a, b = x
    inner = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return inner**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


def _ackley(x: Sequence[float]) -> float:
    size = math.sqrt(sum(one * one for one in x) / len(x))
    waves = sum(math.cos(2 * math.pi * one) for one in x) / len(x)
    return -20 * math.exp(-0.2 * size) - math.exp(waves) + 20 + math.e


PROBLEMS: Final = (
    Problem(name="sphere", function=lambda x: sum(a * a for a in x), bounds=[(-5.0, 10.0)] * 3),
    Problem(
        name="rosenbrock",
        function=lambda x: sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x)),
        bounds=[(-5.0, 10.0)] * 3,
    ),
    Problem(
        name="rastrigin",
        function=lambda x: sum(a * a - 10 * math.cos(2 * math.pi * a) + 10 for a in x),
        bounds=[(-5.12, 5.12)] * 3,
    ),
    Problem(name="branin", function=_branin, bounds=[(-5.0, 10.0), (0.0, 15.0)]),
    Problem(name="ackley", function=_ackley, bounds=[(-32.0, 32.0)] * 3),
)
SAMPLERS: Final[Mapping[SamplerName, Callable[..., BaseSampler]]] = {
    "tpe": TPESampler,
    "random": RandomSampler,
    "grid": GridSampler,
    "gp": GPSampler,
    "cmaes": CmaEsSampler,
    "nsga2": NSGAIISampler,
    "qmc": QMCSampler,
}


def measure(num_trials: int, num_gp_trials: int, seed: int) -> Part:
    """Return the best value of every sampler for every function, and whether all values were plain Optuna's.

    Args:
        num_gp_trials: of a Gaussian process, whose choices take long.
    """
    rows: list[Sequence[str]] = [("sampler", *(problem.name for problem in PROBLEMS), "values that differ")]
    num_chosen = num_differing = 0
    for name in SAMPLERS:
        bests, differing = [], 0
        for problem in PROBLEMS:
            wanted = num_gp_trials if name == "gp" else num_trials
            ours = list(by_pliant(name, problem, wanted, seed))
            theirs = by_optuna(name, problem, len(ours), seed)
            num_chosen += len(ours)
            differing += sum(a != b for a, b in zip(ours, theirs, strict=True))
            bests.append(f"{min(problem.function(x) for x in ours):.4g}")
        rows.append((name, *bests, str(differing)))
        num_differing += differing
    claim = Claim(
        text="every sampler chooses exactly what plain Optuna does with the same seed",
        found=f"{num_chosen - num_differing:,} of {num_chosen:,} trials",
        holds=num_differing == 0,
    )
    fewer = f"{num_gp_trials} of gp, and all points of a grid that has fewer"
    how = f"The best of {num_trials} trials one after the other ({fewer}), seed {seed}."
    return Part(title="What is found", text=f"{how}\n\n{table(*rows)}", claims=(claim,))


def by_pliant(name: SamplerName, problem: Problem, num_trials: int, seed: int) -> Iterator[tuple[float, ...]]:
    """Yield what an adviser's process chooses: as many points as are wanted, or all of a grid that has fewer."""
    settings = SearchSettings(
        parameters={f"x{i}": _parameter(name, low, high) for i, (low, high) in enumerate(problem.bounds)},
        objectives=(Objective(metric="value", direction="minimize"),),
        sampler=Sampler(name=name, seed=seed),
    )
    opening = AdviserInput(name="bench", settings=settings)
    adviser = AdviserProcess(opening, own_program(opening, os.environ))
    changed: list[Trial] = []
    try:
        for number in range(num_trials):
            asked = adviser.ask(number, changed)
            if isinstance(asked, Exhausted):
                return
            x = _point(asked.values)
            yield x
            changed = [_completed(number, asked, problem.function(x))]
    finally:
        adviser.close()


def _completed(number: int, asked: Asked, result: float) -> Trial:
    trial = Trial(
        search="bench",
        number=number,
        values=asked.values,
        state=TrialState.RUNNING,
        job_id=JobId(f"job-{number}"),
        attributes=asked.attributes.get(number, {}),
        begun_at=0.0,
    )
    return replace(trial, state=TrialState.COMPLETED, results=(result,), ended_at=1.0)


def _parameter(sampler: SamplerName, low: float, high: float) -> SearchParameter:
    step = (high - low) / (NUM_POINTS - 1) if sampler == "grid" else None
    return SearchParameter(kind="float", low=low, high=high, step=step)


def _point(values: Values) -> tuple[float, ...]:
    return tuple(float(one) for one in values.values() if isinstance(one, int | float))


def by_optuna(name: SamplerName, problem: Problem, num_trials: int, seed: int) -> list[tuple[float, ...]]:
    """Return what plain Optuna chooses, with its own defaults."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    options: dict[str, Any] = {"seed": seed}
    parameters = [_parameter(name, low, high) for low, high in problem.bounds]
    if name == "grid":
        options["search_space"] = {f"x{i}": _steps_of(one) for i, one in enumerate(parameters)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a sampler is experimental
        study = optuna.create_study(sampler=SAMPLERS[name](**options))
    chosen = []
    for _ in range(num_trials):
        trial = study.ask()
        x = tuple(
            trial.suggest_float(f"x{i}", low, high, step=parameters[i].step)
            for i, (low, high) in enumerate(problem.bounds)
        )
        with suppress(RuntimeError):  # plain Optuna raises at the last point of a grid, which it has kept by then
            study.tell(trial, problem.function(x))
        chosen.append(x)
    return chosen


def _steps_of(parameter: SearchParameter) -> list[float]:
    assert parameter.low is not None
    assert parameter.step is not None
    return [round(parameter.low + i * parameter.step, 6) for i in range(NUM_POINTS)]
