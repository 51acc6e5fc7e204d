"""Rungs and brackets of a search with halving: where trials pause, and how many begin together.

Example: epochs 1 to 27 by the factor 3 have the rungs 1, 3 and 9; a trial that passes them all trains to its end. Of 27
trials that begin 9 pass the first rung, 3 the second and 1 the third. Hyperband (Li et al., JMLR 18, 2018) has brackets
in turns that begin later with fewer trials: with the rungs 3 and 9, and 9 only.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pliant.core.search import ENDED, Halving, Resource, Search, SearchSettings, Trial, TrialState

_NOT_LEARNING: Final = frozenset({"random", "grid", "qmc"})
"""Samplers whose choice does not depend on results; that of an algorithm that somebody has installed may."""


def all_rungs(halving: Halving) -> tuple[int, ...]:
    """Return the rungs of the first bracket, in epochs or steps."""
    rungs, at = [], halving.min
    while at < halving.max:
        rungs.append(at)
        at *= halving.factor
    return tuple(rungs)


def rungs_of(settings: SearchSettings, bracket: int) -> tuple[int, ...]:
    """Return the rungs of a bracket; of a population the epochs at which it is decided; else none."""
    halving = settings.halving
    if settings.population is not None:
        return settings.population.ends
    if halving is None:
        return ()
    rungs = all_rungs(halving)
    return rungs[bracket % min(halving.brackets, len(rungs) + 1) :]


def size_of(settings: SearchSettings, bracket: int) -> int:
    """Return how many trials begin together in a bracket, if the search still has so many to come."""
    halving = settings.halving
    assert halving is not None, "only halving has brackets"
    rungs, factor = all_rungs(halving), halving.factor
    learns = settings.sampler.name not in _NOT_LEARNING or halving.brackets > 1 or settings.max_trials is None
    first = halving.size or (int(pow(factor, len(rungs))) if learns else settings.max_trials or 1)
    skipped = len(rungs) - len(rungs_of(settings, bracket))
    whole = len(rungs) + 1
    begins_later = (whole - skipped) * int(pow(factor, skipped))
    return max(1, -(-first * whole // begins_later))


def resource_of(settings: SearchSettings) -> Resource:
    """Return what rungs count; without rungs the epochs that reports are of."""
    return "epoch" if settings.halving is None else settings.halving.resource


def value_at(trial: Trial, resource: int) -> float | None:
    """Return what a trial came to at a rung: its first value there or after; of one that is complete its result.

    None: it has not come there.
    """
    for at, value in trial.reports:
        if at >= resource:
            return value
    if trial.state is TrialState.COMPLETED and trial.results:
        return trial.results[0]
    return None


def until(reports: Sequence[tuple[int, float]], resource: int) -> tuple[tuple[int, float], ...]:
    """Return the values up to the first one at a rung or after it: what came later plays no part in its decision."""
    kept: list[tuple[int, float]] = []
    for report in reports:
        kept.append(report)
        if report[0] >= resource:
            break
    return tuple(kept)


def has_arrived(trial: Trial, rungs: Sequence[int]) -> bool:
    """Tell whether a trial is at the rung that it trains towards."""
    return trial.rung < len(rungs) and bool(trial.reports) and trial.reports[-1][0] >= rungs[trial.rung]


def due_to_go_on(settings: SearchSettings, trials: Iterable[Trial]) -> Sequence[Trial]:
    """Return the paused trials that wait for a place only: they are not at a rung."""
    paused = [trial for trial in trials if trial.state is TrialState.PAUSED]
    rungs = {bracket: rungs_of(settings, bracket) for bracket in {trial.bracket for trial in paused}}
    return [trial for trial in paused if not has_arrived(trial, rungs[trial.bracket])]


def is_to_begin(trial: Trial, settings: SearchSettings) -> bool:
    """Tell whether a trial of a population that goes on from another one waits to begin: it has no job yet."""
    if trial.parent is None or trial.state is not TrialState.PAUSED or settings.population is None:
        return False
    ends = settings.population.ends
    return ends[trial.rung - 1] == trial.parent_epoch and not has_arrived(trial, ends)


def chosen(trials: Sequence[Trial]) -> Sequence[Trial]:
    """Return the trials without those that came with their search, which are its first ones, and of no bracket."""
    num_known = next((place for place, trial in enumerate(trials) if not trial.is_known), len(trials))
    return trials[num_known:]


def unended(trials: Sequence[Trial]) -> Sequence[Trial]:
    """Return the trials that have not ended."""
    return [trial for trial in trials if trial.state not in ENDED]


def is_whole(search: Search, trials: Sequence[Trial]) -> bool:
    """Tell whether all trials of the newest bracket, or of the population, were chosen.

    A rung that was decided is not opened again.

    Args:
        trials: those that were chosen.
    """
    if not trials or search.exhausted or _is_last(search):
        return True
    if search.settings.population is not None:
        return search.num_chosen >= search.settings.population.size
    bracket, halving = trials[-1].bracket, search.settings.halving
    newest = [trial for trial in trials if trial.bracket == bracket]
    closes = halving is not None and halving.order == "rungs"
    if closes and any(trial.rung > 0 or trial.state is TrialState.PRUNED for trial in newest):
        return True
    return len(newest) >= size_of(search.settings, bracket)


def _is_last(search: Search) -> bool:
    return search.settings.max_trials is not None and search.num_chosen >= search.settings.max_trials


def next_bracket(search: Search, trials: Sequence[Trial]) -> int | None:
    """Return the bracket that the next trial is of; None while no trial may be chosen.

    By whole rungs, the next bracket begins when the one before it is over, so that what the sampler knows then does not
    depend on who was quick.
    """
    halving, trials = search.settings.halving, chosen(trials)
    if search.settings.population is not None and trials:
        return None if is_whole(search, trials) else 0
    if halving is None or not trials:
        return 0
    newest = trials[-1].bracket
    if not is_whole(search, trials):
        return newest
    is_over = halving.order == "arrival" or all(trial.ended for trial in trials if trial.bracket == newest)
    return newest + 1 if is_over else None
