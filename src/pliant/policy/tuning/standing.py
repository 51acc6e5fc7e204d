"""Why a search has as many trials as it has, in sentences: who trains, who waits at which rung for whom, what is next.

It decides nothing: it says what `advance` and `promotion` go by.
"""

from collections.abc import Iterator, Sequence

from pliant.core.search import Search, SearchState, Trial, TrialState
from pliant.policy.tuning.advance import bracket_to_ask
from pliant.policy.tuning.places import Places
from pliant.policy.tuning.rungs import chosen, has_arrived, is_whole, rungs_of, size_of, value_at


def explain_search(search: Search, trials: Sequence[Trial], places: Places | None) -> tuple[str, ...]:
    """Return how a search stands.

    Args:
        places: so many trials may train at once; None: it does not run.
    """
    if places is None:
        return _at_rest(search, trials)
    own = chosen(trials)
    waiting = _waiting(search, own) if search.settings.population is None else _members_waiting(search, own)
    return (_training(own, places), *waiting, *_next(search, trials, places.num))


def _at_rest(search: Search, trials: Sequence[Trial]) -> tuple[str, ...]:
    said = f"It is {search.state.value}: {search.reason or 'nobody said why'}."
    unended = sum(not trial.ended for trial in trials)
    if search.state is not SearchState.STOPPED or not unended:
        return (said,)
    return (said, f"{_trials(unended)} {_verb(unended, 'stay')} paused until it is resumed.")


def _training(trials: Sequence[Trial], places: Places) -> str:
    number = sum(trial.state is TrialState.RUNNING for trial in trials)
    who = f"{_trials(number)} {_verb(number, 'train')} or {_verb(number, 'wait')} for slots"
    return f"{who}, of {places.num:,} that may at once: {places.reason}."


def _members_waiting(search: Search, trials: Sequence[Trial]) -> Iterator[str]:
    """Yield what the members of a population wait for."""
    population, living = search.settings.population, [trial for trial in trials if not trial.ended]
    assert population is not None, "only a population has members"
    rung = min((trial.rung for trial in living), default=len(population.ends))
    if rung == len(population.ends):
        return
    epoch = population.ends[rung]
    num_waiting = sum(trial.rung == rung and value_at(trial, epoch) is not None for trial in living)
    if num_waiting:
        who = f"{_trials(num_waiting)} {_verb(num_waiting, 'wait')} at epoch {epoch}"
        total = len(living) if is_whole(search, trials) else population.size
        to_come = total - num_waiting
        yield f"{who}: {to_come} of {total} {'is' if to_come == 1 else 'are'} to come, then the worst are replaced."


def _waiting(search: Search, trials: Sequence[Trial]) -> Iterator[str]:
    """Yield for every rung at which trials wait what they wait for."""
    if search.settings.halving is None:
        return
    for bracket in sorted({trial.bracket for trial in trials if not trial.ended}):
        members = [trial for trial in trials if trial.bracket == bracket]
        is_complete = bracket != trials[-1].bracket or is_whole(search, trials)
        num_missing = 0 if is_complete else max(0, size_of(search.settings, bracket) - len(members))
        for rung, resource in enumerate(rungs_of(search.settings, bracket)):
            here = [trial for trial in members if trial.rung == rung and not trial.ended]
            num_waiting = sum(value_at(trial, resource) is not None for trial in here)
            if num_waiting:
                yield _at_rung(search, members, (rung, resource), num_waiting, num_missing)


def _at_rung(
    search: Search, members: Sequence[Trial], place: tuple[int, int], num_waiting: int, num_missing: int
) -> str:
    halving, (rung, resource) = search.settings.halving, place
    assert halving is not None, "only halving has rungs"
    who = f"{_trials(num_waiting)} {_verb(num_waiting, 'wait')} at {halving.resource} {resource}"
    best = f"the best one in {halving.factor}"
    if halving.order == "arrival":
        return f"{who}: {best} of those that have come there goes on at any time."
    on_the_way = [trial for trial in members if not trial.ended and trial.rung <= rung]
    to_come = sum(value_at(trial, resource) is None for trial in on_the_way) + num_missing
    total = sum(trial.rung >= rung or not trial.ended for trial in members) + num_missing
    return f"{who}: {to_come} of {total} {'is' if to_come == 1 else 'are'} to come, then {best} goes on."


def _next(search: Search, trials: Sequence[Trial], num_places: int) -> Iterator[str]:
    """Yield what begins or goes on next, and what it waits for."""
    due = sum(
        trial.state is TrialState.PAUSED and not has_arrived(trial, rungs_of(search.settings, trial.bracket))
        for trial in trials
    )
    is_full = sum(trial.state is TrialState.RUNNING for trial in trials) >= num_places
    if due:
        wait = "as soon as another one leaves its place" if is_full else "now"
        yield f"{_trials(due)} that passed a rung {'goes' if due == 1 else 'go'} on {wait}."
    limit = search.settings.max_trials
    if search.exhausted:
        yield f"No trial begins any more: {search.exhausted}."
    elif limit is not None and search.num_chosen >= limit:
        yield f"No trial begins any more: all {limit:,} have." if limit > 1 else "No other trial begins."
    elif bracket_to_ask(search, trials, num_places=num_places) is not None:
        yield "The values of the next trial are being chosen."
    elif is_full:
        yield "The next trial begins as soon as another one leaves its place."
    elif not due:
        yield "The next trials begin once all that began together have ended."


def _trials(number: int) -> str:
    return "1 trial" if number == 1 else f"{number:,} trials"


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb
