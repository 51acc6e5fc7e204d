"""How far trials violate the constraints of their search, and which one is nearest to keeping them.

    memory_gb<=8    9.5 violates it by 1.5, 8 keeps it by 0     acc>=0.9    0.7 violates it by 0.2

Of several constraints the violations are added, as Optuna's samplers do. A value that is no number, or not finite, can
be compared with nothing: it violates by infinity. What has no value yet at a rung counts as kept there.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import Final

from pliant.core.search import Constraint, SearchSettings, Trial, TrialState
from pliant.core.search_text import write_constraint

_LOWEST: Final = -1.7976931348623157e308
"""The lowest finite number: the difference of two finite ones may be beyond it, and JSON has no infinity."""


def violation_of(constraint: Constraint, value: float) -> float:
    """Return by how much a value violates a constraint; 0 or less: it keeps it."""
    if not isfinite(value):
        return inf
    beyond = value - constraint.upper if constraint.upper is not None else (constraint.lower or 0.0) - value
    return max(beyond, _LOWEST)


def is_measured(settings: SearchSettings, trial: Trial) -> bool:
    """Tell whether it is known how far a trial violates the constraints where it waits."""
    return not settings.constraints or bool(trial.violations)


def total_violation(trial: Trial) -> float:
    """Return by how much a trial violates all constraints together; 0: it keeps them."""
    return sum(max(0.0, violation) for violation in trial.violations)


def violation_at(trial: Trial, rung: int) -> float:
    """Return by how much a trial violated all constraints together at a rung: its own, or one that it has passed."""
    if rung == trial.rung:
        return total_violation(trial)
    return trial.rung_violations[rung] if rung < len(trial.rung_violations) else 0.0


def past_rung(settings: SearchSettings, trial: Trial, reason: str) -> Trial:
    """Return a trial that goes on from its rung: what it violated there counts there from now on, and nowhere else."""
    noted = trial.rung_violations
    if settings.constraints:
        noted = (*noted, *(0.0,) * (trial.rung - len(noted)), total_violation(trial))
    return replace(trial, rung=trial.rung + 1, violations=(), rung_violations=noted, reason=reason)


def find_nearest(settings: SearchSettings, trials: Sequence[Trial]) -> int | None:
    """Return the number of the trial that violates the constraints least; None if one keeps them, or none can tell."""
    if not settings.constraints:
        return None
    completed = [one for one in trials if one.state is TrialState.COMPLETED and not one.is_known]
    if not completed or any(one.is_feasible for one in completed):
        return None
    return min(completed, key=lambda one: (total_violation(one), one.number)).number


def say_infeasible(settings: SearchSettings, nearest: int) -> str:
    """Return that no trial keeps the constraints, in words."""
    texts = [write_constraint(one) for one in settings.constraints]
    return f"no trial keeps {' and '.join(texts)}; trial {nearest} is nearest"
