"""In which order people look at the trials of a search.

By value the best come first: of several objectives the first one counts. Those without a number come last, and before
them those that violate a constraint; among equals the number decides, so that pages of a list fit together.
"""

from collections.abc import Callable, Collection, Sequence
from math import isnan
from typing import Literal

from pliant.core.search import Objective, Trial, TrialState

TrialOrder = Literal["number", "-number", "value", "-value", "duration", "-duration"]


def order_trials(
    trials: Sequence[Trial], objectives: Sequence[Objective], order: TrialOrder, states: Collection[TrialState] = ()
) -> Sequence[Trial]:
    """Return the trials that are in one of these states, or all, in an order."""
    found = [trial for trial in trials if not states or trial.state in states]
    if order == "number":
        return sorted(found, key=lambda trial: trial.number)
    if order == "-number":
        return sorted(found, key=lambda trial: -trial.number)
    if order in ("duration", "-duration"):
        return _with_last(found, _duration, is_falling=order == "-duration")
    best_is_large = objectives[0].direction == "maximize"
    return _with_last(found, _value, is_falling=best_is_large == (order == "value"))


def _with_last(trials: Sequence[Trial], key: Callable[[Trial], float | None], *, is_falling: bool) -> Sequence[Trial]:
    """Return trials by a key; those that have none are the last ones, whichever way it goes."""
    sign = -1 if is_falling else 1

    def rank(trial: Trial) -> tuple[bool, bool, float, int]:
        value = key(trial)
        return value is None, not trial.is_feasible, 0.0 if value is None else sign * value, trial.number

    return sorted(trials, key=rank)


def _value(trial: Trial) -> float | None:
    value = trial.results[0] if trial.results else None
    return None if value is None or isnan(value) else value


def _duration(trial: Trial) -> float | None:
    return None if trial.ended_at is None else trial.ended_at - trial.begun_at
