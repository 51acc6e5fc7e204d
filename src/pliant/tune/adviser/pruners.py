"""Optuna's pruners, with every argument written out, and why they end a trial, in words."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from optuna.pruners import BasePruner, MedianPruner, PatientPruner, PercentilePruner, ThresholdPruner, WilcoxonPruner
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from pliant.core.search import Objective, Pruner, PrunerName
from pliant.tune.sampler_options import PRUNER_OPTIONS, with_defaults

MAKERS: Final[Mapping[PrunerName, Callable[..., BasePruner]]] = MappingProxyType(
    {
        "median": MedianPruner,
        "percentile": PercentilePruner,
        "wilcoxon": WilcoxonPruner,
        "patient": PatientPruner,
        "threshold": ThresholdPruner,
    }
)


def make_pruner(pruner: Pruner) -> BasePruner:
    """Make a search's pruner."""
    arguments: dict[str, Any] = with_defaults(PRUNER_OPTIONS[pruner.name], pruner.options)
    if pruner.name == "patient":
        arguments["wrapped_pruner"] = None
    return MAKERS[pruner.name](**arguments)


def reason(pruner: Pruner, objective: Objective, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> str:
    """Return why a pruner ends a trial; call it only if it does."""
    step = trial.last_step
    assert step is not None, "nobody ends a trial that has reported nothing"
    metric, last = objective.metric, trial.intermediate_values[step]
    options = with_defaults(PRUNER_OPTIONS[pruner.name], pruner.options)
    if pruner.name == "threshold":
        return f"its {metric} {last:.6g} at step {step} is outside {_bounds(options)}"
    if pruner.name == "patient":
        return f"its {metric} has not become better over {options['patience']} reports, the last at step {step}"
    if pruner.name == "wilcoxon":
        return f"its {metric} up to step {step} is worse than the best trial's, by the Wilcoxon test"
    return _compared(pruner, objective, trial, trials)


def _compared(pruner: Pruner, objective: Objective, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> str:
    """Say what median and percentile compare: the best so far with what completed trials had at the same step."""
    step, metric = trial.last_step, objective.metric
    reached = [value for value in trial.intermediate_values.values() if not math.isnan(value)]
    if not reached:
        return f"all its values of {metric} up to step {step} are NaN"
    best = min(reached) if objective.direction == "minimize" else max(reached)
    complete = [one.intermediate_values for one in trials if one.state is OptunaState.COMPLETE]
    others = [values[step] for values in complete if step in values]
    percentile = 50.0 if pruner.name == "median" else float(pruner.options["percentile"] or 0.0)
    bound = np.nanpercentile(others, percentile if objective.direction == "minimize" else 100.0 - percentile)
    what = "the median" if pruner.name == "median" else f"what the best {percentile:g} % reached,"
    return f"its best {metric} up to step {step}, {best:.6g}, is worse than {what} {bound:.6g} of {len(others)} trials"


def _bounds(options: Mapping[str, Any]) -> str:
    lower, upper = options["lower"], options["upper"]
    return f"{'-∞' if lower is None else lower} to {'∞' if upper is None else upper}"
