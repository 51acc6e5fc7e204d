"""When a search is over, and why; how many trials may train, and which."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pliant.core.search import Search, SearchState, Trial, TrialState
from pliant.core.space import text_of_value
from pliant.policy.tuning.constraints import say_infeasible
from pliant.policy.tuning.rungs import chosen

_EQUAL_FAILURES: Final = 3
"""So many first trials that fail alike end a search, or as many as train at once if these are fewer."""
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEnd:
    """A search is over."""

    state: SearchState
    reason: str


def judge_search(search: Search, trials: Sequence[Trial], *, now: float, slot_hours: float) -> SearchEnd | None:
    """Return that a running search is over, and why; None if it goes on.

    Args:
        slot_hours: what its trials have used; 0 if it has no such limit.
    """
    settings, trials = search.settings, chosen(trials)
    if alike := _fail_alike(search, trials):
        return SearchEnd(state=SearchState.FAILED, reason=alike)
    if settings.target is not None and (found := _on_target(search, trials)) is not None:
        return _ended(search, trials, f"trial {found.number}: {found.reason}; {settings.target:g} was the target")
    ran_s = ran(search, now)
    if settings.max_time_s is not None and ran_s >= settings.max_time_s:
        return _ended(search, trials, f"it has run for {ran_s:.0f} s; {settings.max_time_s:g} s is its limit")
    if settings.max_slot_hours is not None and slot_hours >= settings.max_slot_hours:
        used = f"it has used {slot_hours:.2f} slot-hours; {settings.max_slot_hours:g} is its limit"
        return _ended(search, trials, used)
    if (why := _nothing_left(search)) and all(trial.ended for trial in trials):
        return _ended(search, trials, why)
    return None


def ran(search: Search, now: float) -> float:
    """Return for how long a search has run, seconds."""
    return search.ran_s + (0.0 if search.running_since is None else max(0.0, now - search.running_since))


def _nothing_left(search: Search) -> str:
    """Return why no further trial will be chosen; empty if one may be."""
    if search.exhausted:
        return search.exhausted
    limit, population = search.settings.max_trials, search.settings.population
    if population is not None and search.num_chosen >= population.size:
        return f"all {search.num_chosen:,} trials of its population have ended"
    if limit is not None and search.num_chosen >= limit:
        return f"all of its {limit:,} trials have ended" if limit > 1 else "its trial has ended"
    return ""


def _ended(search: Search, trials: Sequence[Trial], reason: str) -> SearchEnd:
    if search.nearest is not None:
        said = say_infeasible(search.settings, search.nearest)
        return SearchEnd(state=SearchState.COMPLETED, reason=f"{reason}, and {said}")
    failed = [trial for trial in trials if trial.state is TrialState.FAILED]
    if any(trial.state is TrialState.COMPLETED for trial in trials):
        return SearchEnd(state=SearchState.COMPLETED, reason=f"{reason}{_childless(trials)}")
    said = f"; trial {failed[-1].number}: {_headline(failed[-1])}" if failed else ""
    return SearchEnd(state=SearchState.FAILED, reason=f"{reason}, and no trial came to a result{said}")


def _childless(trials: Sequence[Trial]) -> str:
    """Return that all who were to go on from another trial's state have failed, and how the last did."""
    children = [trial for trial in trials if trial.parent is not None]
    if not children or any(child.state is not TrialState.FAILED for child in children):
        return ""
    return (
        f", and all that began from another one's state failed; trial {children[-1].number}: {_headline(children[-1])}"
    )


def _headline(trial: Trial) -> str:
    return headline(trial.reason) or "it failed"


def headline(reason: str) -> str:
    """Return one line of a reason: its first; with the last if that is what the first announces."""
    lines = [line for line in reason.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].rstrip().endswith(":"):
        return f"{lines[0].rstrip()} {lines[-1].strip()}"
    return lines[0] if lines else ""


def _fail_alike(search: Search, trials: Sequence[Trial]) -> str:
    """Return what the first trials that ended all failed with; empty if there are too few, or any came to something."""
    if any(trial.ended and trial.state is not TrialState.FAILED for trial in trials):
        return ""
    ended = sorted((trial for trial in trials if trial.ended), key=lambda one: (one.ended_at or 0.0, one.number))
    needed = min(_EQUAL_FAILURES, search.settings.parallel or _EQUAL_FAILURES)
    if len(ended) < needed:
        return ""
    if any(trial.reports and trial.state is TrialState.PAUSED for trial in trials):
        return ""
    if len({_fault(trial) for trial in ended[:needed]}) != 1:
        return ""
    first = "its first trial failed" if needed == 1 else f"its first {needed} trials failed alike"
    return f"{first}, so it ends: {_headline(ended[0])}"


def _fault(trial: Trial) -> str:
    """Return what a trial failed with, without what names this trial: its values, and numbers such as its job's."""
    text = _headline(trial)
    for name, value in trial.values.items():
        text = text.replace(f"{name}={text_of_value(value)}", f"{name}=")
    return _NUMBER.sub("#", text)


def _on_target(search: Search, trials: Sequence[Trial]) -> Trial | None:
    target, direction = search.settings.target, search.settings.objectives[0].direction
    assert target is not None, "asked only with a target"
    for trial in trials:
        if trial.state is not TrialState.COMPLETED or not trial.results or not trial.is_feasible:
            continue
        if trial.results[0] <= target if direction == "minimize" else trial.results[0] >= target:
            return trial
    return None
