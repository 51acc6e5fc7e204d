"""Who goes on at a rung, and who does not.

Whole rungs: a rung is decided once all its trials have come to it or have ended. The best one in `factor` goes on, one
at least. So the decision is a function of the results alone: neither slots nor the order of arrival play a part.

By arrival (asynchronous successive halving; Li et al., MLSys 2020, with trials that pause): a trial goes on as soon as
it is among the best ⌊n / factor⌋ of the n that have come to its rung so far. What still waits when nobody is to come is
pruned.

Equal values are in the order of their numbers. NaN is worse than everything and never goes on. Trials that violate
constraints there come after all that keep them, by how far they violate them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

from pliant.core.search import Search, Trial, TrialState
from pliant.policy.tuning.constraints import is_measured, total_violation
from pliant.policy.tuning.rungs import chosen, is_whole, rungs_of, until, value_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A trial goes on to its next rung, or to its end."""

    trial: Trial
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """A trial does not go on."""

    trial: Trial
    reason: str


def decide_rungs(search: Search, trials: Sequence[Trial]) -> tuple[Promotion | Pruning, ...]:
    """Return what is decided by now at all rungs of all brackets that are not over; call again until it is nothing."""
    halving = search.settings.halving
    if halving is None:
        return ()
    trials = chosen(trials)
    open_brackets = sorted({trial.bracket for trial in trials if not trial.ended})
    return tuple(decision for bracket in open_brackets for decision in _decide_bracket(search, trials, bracket))


def _decide_bracket(search: Search, trials: Sequence[Trial], bracket: int) -> Iterator[Promotion | Pruning]:
    halving = search.settings.halving
    assert halving is not None, "only halving has rungs"
    members = [trial for trial in trials if trial.bracket == bracket]
    complete = bracket != trials[-1].bracket or is_whole(search, trials)
    rungs = rungs_of(search.settings, bracket)
    for rung, resource in enumerate(rungs):
        if not any(trial.rung == rung and trial.state is TrialState.PAUSED for trial in members):
            continue  # nobody waits there
        here = [trial for trial in members if trial.rung >= rung]
        to_come = not complete or any(trial.rung < rung and not trial.ended for trial in members)
        arrived = [one for one in here if one.ended or _has_come(search, one, rung, resource)]
        waiting = [trial for trial in arrived if trial.rung == rung and trial.state is TrialState.PAUSED]
        is_decidable = not to_come and len(arrived) == len(here)
        if waiting and (is_decidable or halving.order == "arrival"):
            yield from _decide(search, (rung, resource, len(rungs)), arrived, waiting, is_last=is_decidable)


def _has_come(search: Search, trial: Trial, rung: int, resource: int) -> bool:
    """Tell whether all is known of a trial that counts at a rung."""
    is_known = trial.rung > rung or is_measured(search.settings, trial)
    return is_known and value_at(trial, resource) is not None


def _decide(
    search: Search, place: tuple[int, int, int], arrived: Sequence[Trial], waiting: Sequence[Trial], *, is_last: bool
) -> Iterator[Promotion | Pruning]:
    halving = search.settings.halving
    assert halving is not None, "only halving has rungs"
    rung, resource, num_rungs = place
    places = _places(search, arrived, waiting, resource)
    num_kept = len(arrived) // halving.factor
    if is_last and not any(trial.rung > rung for trial in arrived):
        num_kept = max(1, num_kept)
    at = f"{halving.resource} {resource}"
    goal = "its end" if rung + 1 == num_rungs else f"the rung after {at}"
    for trial in waiting:
        own = places.get(trial.number)
        shown = f"{search.settings.objectives[0].metric} {value_at(trial, resource):g} at {at}"
        shown += "" if trial.is_feasible else ", which violates constraints,"
        if own is not None and own <= num_kept:
            reason = f"{shown} is number {own} of {len(arrived)}: it goes on to {goal}"
            yield Promotion(trial=replace(trial, rung=trial.rung + 1, violations=(), reason=reason), reason=reason)
        elif is_last:
            place_of = "no number" if own is None else f"number {own}"
            reason = f"{shown} is {place_of} of {len(arrived)}, and {num_kept} {'go' if num_kept != 1 else 'goes'} on"
            yield Pruning(trial=pruned(trial, resource, reason), reason=reason)


def pruned(trial: Trial, resource: int, reason: str) -> Trial:
    """Return a trial that does not go on from where it waits: with what it had come to there."""
    value = value_at(trial, resource)
    assert value is not None, "who waits at a rung has a value there"
    return replace(
        trial,
        state=TrialState.PRUNED,
        reason=reason,
        results=(value,),
        reports=until(trial.reports, resource),
    )


def _places(search: Search, arrived: Sequence[Trial], waiting: Sequence[Trial], resource: int) -> Mapping[int, int]:
    """Return which place those have that wait, 1 for the best; by number. Who has no number at the rung has none."""
    sign = 1 if search.settings.objectives[0].direction == "minimize" else -1
    values = [(total_violation(trial), value_at(trial, resource), trial.number) for trial in arrived]
    ranked = sorted(
        (by, sign * value, number) for by, value, number in values if value is not None and not isnan(value)
    )
    numbers = {trial.number for trial in waiting}
    return {number: place for place, (*_, number) in enumerate(ranked, start=1) if number in numbers}
