"""Who goes on in a population, who ends, and who begins in their place.

It is decided at the end of every so many epochs, when all members that live have come there. Of 8 members and a
fraction of a quarter the two worst end, and each is followed by a child of one of the two best. A member that has no
number there, since its script failed or its value is NaN, is followed by a child as well, whatever the fraction; it is
never a parent. So the population keeps its size as long as any member has a number and `max_trials` has room.

The decision is a function of the results: neither slots nor the order of arrival play a part, nor what a quick member
has reported after that epoch. Equal values are in the order of their numbers.

Invariant: all members that live are in the same generation, which is the number of decisions before (`Trial.rung`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import isnan

from pliant.core.population import Population
from pliant.core.search import MAX_TRIALS, Search, Trial, TrialState
from pliant.core.space import Values, text_of_value
from pliant.policy.tuning.constraints import is_measured, total_violation
from pliant.policy.tuning.mutation import draw, mutate
from pliant.policy.tuning.promotion import Promotion, Pruning, pruned
from pliant.policy.tuning.rungs import chosen, has_arrived, is_whole, value_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Offspring:
    """A trial begins in the place of another one, from the state that its parent had."""

    number: int
    parent: int
    epoch: int
    """Epochs that its parent had trained then."""
    rung: int
    values: Values
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A member at the end of an epoch."""

    trial: Trial
    place: int | None
    """1 for the best; None: it has no number."""
    shown: str
    """Its value there, and which place that is."""


def decide_generation(search: Search, trials: Sequence[Trial]) -> tuple[Promotion | Pruning | Offspring, ...]:
    """Return what is decided by now about a population; empty: it is not all there."""
    population = search.settings.population
    if population is None:
        return ()
    trials = chosen(trials)
    living = [trial for trial in trials if not trial.ended]
    if not living or not is_whole(search, trials):
        return ()
    rung, ends = living[0].rung, population.ends
    if rung == len(ends) or not all(_has_come(search, trial, ends) for trial in living):
        return ()
    members = [trial for trial in trials if trial.rung == rung and _counts(trial)]
    return tuple(_decide(search, population, ends[rung], _ranked(search, members, ends[rung])))


def _has_come(search: Search, trial: Trial, ends: Sequence[int]) -> bool:
    """Tell whether a member waits, and all is known of it that counts."""
    return trial.state is TrialState.PAUSED and has_arrived(trial, ends) and is_measured(search.settings, trial)


def _counts(trial: Trial) -> bool:
    """Tell whether a trial has a place: not if it came to its end before, or somebody stopped it."""
    return not trial.ended or trial.state is TrialState.FAILED


def _decide(
    search: Search, population: Population, epoch: int, places: Sequence[_Place]
) -> Iterator[Promotion | Pruning | Offspring]:
    """Yield what becomes of each member, and then the children, in the order of the places that they take."""
    ranked = [one for one in places if one.place is not None]
    num_replaced = min(max(1, int(_exactly(population.fraction) * len(places))), len(ranked) // 2)
    parents = ranked[: max(1, num_replaced)] if ranked else []
    limit = MAX_TRIALS if search.settings.max_trials is None else search.settings.max_trials
    room = max(0, limit - search.num_chosen) if parents else 0
    worst = [one for one in reversed(places) if one.place is None]
    worst += list(reversed(ranked))[:num_replaced]
    followed = worst[:room]
    lost = {one.trial.number for one in worst if one.place is None} | {one.trial.number for one in followed}
    children = tuple(_children(search, population, epoch, followed, parents))
    follower = {one.trial.number: child for one, child in zip(followed, children, strict=True)}
    for one in sorted(places, key=lambda one: one.trial.number):
        trial, child = one.trial, follower.get(one.trial.number)
        if trial.ended:
            continue
        if trial.number not in lost:
            reason = f"{one.shown}: it goes on"
            yield Promotion(trial=replace(trial, rung=trial.rung + 1, violations=(), reason=reason), reason=reason)
            continue
        after = "" if child is None else f": trial {child.number} goes on in its place, from trial {child.parent}"
        yield Pruning(trial=pruned(trial, epoch, f"{one.shown}{after}"), reason=f"{one.shown}{after}")
    yield from children


def _children(
    search: Search, population: Population, epoch: int, followed: Sequence[_Place], parents: Sequence[_Place]
) -> Iterator[Offspring]:
    seed = search.settings.sampler.seed
    for number, one in enumerate(followed, start=search.num_trials):
        parent = parents[int(draw(seed, number, "parent") * len(parents))].trial
        values = mutate(search.settings.parameters, parent.values, population, seed=seed, number=number)
        shown = " ".join(f"{name}={text_of_value(value)}" for name, value in values.items())
        yield Offspring(
            number=number,
            parent=parent.number,
            epoch=epoch,
            rung=parent.rung + 1,
            values=values,
            reason=f"{shown}, from trial {parent.number} at epoch {epoch}, in the place of trial {one.trial.number}",
        )


def _ranked(search: Search, members: Sequence[Trial], epoch: int) -> Sequence[_Place]:
    """Return the members with their places, the best first: those that violate constraints come behind those that keep
    them, and those that have no number come last."""
    objective = search.settings.objectives[0]
    sign = 1 if objective.direction == "minimize" else -1
    values = {trial.number: None if trial.ended else value_at(trial, epoch) for trial in members}

    def key(trial: Trial) -> tuple[bool, float, float, int]:
        value = values[trial.number]
        if value is None or isnan(value):
            return True, 0.0, 0.0, trial.number
        return False, total_violation(trial), sign * value, trial.number

    places = []
    for place, trial in enumerate(sorted(members, key=key), start=1):
        value, has_number = values[trial.number], not key(trial)[0]
        where = f"number {place} of {len(members)}" if has_number else "no number"
        broken = "" if trial.is_feasible else ", which violates constraints,"
        places.append(
            _Place(
                trial=trial,
                place=place if has_number else None,
                shown="" if value is None else f"{objective.metric} {value:g}{broken} is {where} at epoch {epoch}",
            )
        )
    return places


def _exactly(number: float) -> Fraction:
    return Fraction(Decimal(repr(number)))
