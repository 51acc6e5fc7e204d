"""Who goes on at a rung, and who does not.

Whole rungs: a rung is decided once all its trials have come to it or have ended. The best one in `factor` goes on, one
at least. So the decision is a function of the results alone: neither slots nor the order of arrival play a part.

By arrival (asynchronous successive halving; Li et al., MLSys 2020, with trials that pause): a trial goes on as soon as
it is among the best ⌊n / factor⌋ of the n that have come to its rung so far. What still waits when nobody is to come is
pruned.

Equal values are in the order of their numbers. NaN is worse than everything and never goes on. Trials that violate
constraints there come after all that keep them, by how far they violate them; what becomes of them later plays no part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pliant.core.search import Search, Trial, TrialState
from pliant.policy.tuning.constraints import past_rung
from pliant.policy.tuning.rankings import Ranking, Rankings, has_come
from pliant.policy.tuning.rungs import chosen, is_whole, rungs_of, unended, until, value_at


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


def decide_rungs(
    search: Search, trials: Sequence[Trial], rankings: Rankings | None = None
) -> tuple[Promotion | Pruning, ...]:
    """Return what is decided by now at all rungs of all brackets that are not over; call again until it is nothing.

    Args:
        search: whose trials they are.
        trials: all of them, by number.
        rankings: of this search, which spare work and change no answer.
    """
    going = unended(trials)
    brackets = sorted({trial.bracket for trial in going if trial.state is TrialState.PAUSED})
    if search.settings.halving is None or not brackets:
        return ()
    rankings = Rankings() if rankings is None else rankings
    rankings.follow(search.settings, trials)
    newest = None if is_whole(search, chosen(trials)) else trials[-1].bracket
    return tuple(
        decision
        for bracket in brackets
        for decision in _decide_bracket(
            search, [one for one in going if one.bracket == bracket], rankings, is_complete=bracket != newest
        )
    )


def _decide_bracket(
    search: Search, going: Sequence[Trial], rankings: Rankings, *, is_complete: bool
) -> Iterator[Promotion | Pruning]:
    """Yield what is decided in a bracket, of which some trials have not ended."""
    settings, bracket = search.settings, going[0].bracket
    assert settings.halving is not None, "only halving has rungs"
    rungs = rungs_of(settings, bracket)
    for rung, resource in enumerate(rungs):
        waiting = [trial for trial in going if trial.rung == rung and trial.state is TrialState.PAUSED]
        if not waiting:
            continue
        here = [trial for trial in going if trial.rung >= rung]
        is_last = is_complete and len(here) == len(going)
        is_last = is_last and all(has_come(settings, trial, rung, resource) for trial in here)
        if is_last or settings.halving.order == "arrival":
            ranking = rankings.at(bracket, rung)
            yield from _decide(search, (rung, resource, len(rungs)), ranking, waiting, is_last=is_last)


def _decide(
    search: Search, place: tuple[int, int, int], ranking: Ranking, waiting: Sequence[Trial], *, is_last: bool
) -> Iterator[Promotion | Pruning]:
    halving = search.settings.halving
    assert halving is not None, "only halving has rungs"
    rung, resource, num_rungs = place
    num_kept, num_arrived = ranking.num_arrived // halving.factor, ranking.num_arrived
    if is_last and not ranking.num_passed:
        num_kept = max(1, num_kept)
    places = ranking.places(None if is_last else num_kept)
    at = f"{halving.resource} {resource}"
    goal = "its end" if rung + 1 == num_rungs else f"the rung after {at}"
    for trial in waiting if is_last else (one for one in waiting if one.number in places):
        own = places.get(trial.number)
        shown = f"{search.settings.objectives[0].metric} {value_at(trial, resource):g} at {at}"
        shown += "" if trial.is_feasible else ", which violates constraints,"
        if own is not None and own <= num_kept:
            reason = f"{shown} is number {own} of {num_arrived}: it goes on to {goal}"
            yield Promotion(trial=past_rung(search.settings, trial, reason), reason=reason)
        else:
            place_of = "no number" if own is None else f"number {own}"
            reason = f"{shown} is {place_of} of {num_arrived}, and {num_kept} {'go' if num_kept != 1 else 'goes'} on"
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
