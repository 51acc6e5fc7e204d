"""How long a search will go on, from what its trials have taken so far; nothing where that says nothing.

With rungs, what is counted is epochs or steps: what all trials have trained, in the time that the search has run, and
what is to come if one in `factor` passes each rung; who leaves a population is followed by another. Without, it is
trials: how long those took that have ended, and how many trained at once on average. Both take it that slots stay as
they were; a limit of time is kept to in any case.

Example: 40 trials, of which 10 have ended after 60 s each, 2 at a time, and 2 train since 20 s. The 28 that are to come
and the rest of these 2 are 28 · 60 + 2 · 40 = 1,760 s of trials; two at a time, 880 s are left.
"""

from collections.abc import Sequence

from pliant.core.population import Population
from pliant.core.search import Halving, Search, SearchState, Trial
from pliant.policy.tuning.rungs import chosen, rungs_of
from pliant.policy.tuning.verdict import ran


def seconds_left(search: Search, trials: Sequence[Trial], now: float) -> float | None:
    """Return how many seconds a search will still run, about; None if nobody can tell."""
    if search.state is not SearchState.RUNNING:
        return None
    ran_s, limit = ran(search, now), search.settings.max_time_s
    by_trials = _until_all_have_ended(search, chosen(trials), ran_s, now)
    found = [one for one in (by_trials, None if limit is None else max(0.0, limit - ran_s)) if one is not None]
    return min(found, default=None)


def _until_all_have_ended(search: Search, trials: Sequence[Trial], ran_s: float, now: float) -> float | None:
    to_begin = _num_to_begin(search)
    if to_begin is None or ran_s <= 0:
        return None
    if search.settings.population is not None:
        return _by_epochs(search.settings.population, trials, ran_s, to_begin)
    if search.settings.halving is not None:
        return _by_resource(search, search.settings.halving, trials, ran_s, to_begin)
    return _by_time(trials, ran_s, now, to_begin)


def _num_to_begin(search: Search) -> int | None:
    """Return how many trials are still to be chosen; None if nothing says so."""
    if search.exhausted:
        return 0
    limit, population = search.settings.max_trials, search.settings.population
    if population is not None:
        limit = min(population.size, limit or population.size)
    return None if limit is None else max(0, limit - search.num_chosen)


def _by_time(trials: Sequence[Trial], ran_s: float, now: float, to_begin: int) -> float | None:
    took = [min(ran_s, one.ended_at - one.begun_at) for one in trials if one.ended_at is not None]
    ages = [min(ran_s, max(0.0, now - one.begun_at)) for one in trials if one.ended_at is None]
    if not took or (at_once := (sum(took) + sum(ages)) / ran_s) <= 0:
        return None
    usual = sum(took) / len(took)
    rests = [max(0.0, usual - age) for age in ages]
    left = max([(to_begin * usual + sum(rests)) / at_once, *rests])
    return left if left > 0 else None  # all that train have taken longer than others: who knows how long


def _by_resource(
    search: Search, halving: Halving, trials: Sequence[Trial], ran_s: float, to_begin: int
) -> float | None:
    done = sum(_reached(trial) for trial in trials)
    if done <= 0:
        return None
    paths = [(*rungs_of(search.settings, bracket), halving.max) for bracket in range(halving.brackets)]
    of_new = sum(_to_come(path, halving.factor, rung=0, at=0) for path in paths) / len(paths)
    unended = (trial for trial in trials if not trial.ended)
    of_begun = sum(
        _to_come(
            (*rungs_of(search.settings, trial.bracket), halving.max),
            halving.factor,
            rung=trial.rung,
            at=_reached(trial),
        )
        for trial in unended
    )
    left = (to_begin * of_new + of_begun) * ran_s / done
    return left if left > 0 else None


def _by_epochs(population: Population, trials: Sequence[Trial], ran_s: float, to_begin: int) -> float | None:
    done = sum(max(0, _reached(trial) - trial.parent_epoch) for trial in trials)
    if done <= 0:
        return None
    of_begun = sum(population.max - max(trial.parent_epoch, _reached(trial)) for trial in trials if not trial.ended)
    left = (to_begin * population.max + of_begun) * ran_s / done
    return left if left > 0 else None


def _reached(trial: Trial) -> int:
    """Return at which epoch or step a trial has reported last."""
    return trial.reports[-1][0] if trial.reports else 0


def _to_come(path: Sequence[int], factor: int, *, rung: int, at: int) -> float:
    """Return how much a trial trains from `at` on, if one in `factor` passes each rung from `rung` on.

    Args:
        path: the rungs, and the end.
    """
    total, part, here = 0.0, 1.0, at
    for stop in path[rung:]:
        total += part * max(0, stop - here)
        part, here = part / factor, max(here, stop)
    return total
