"""What has become of a trial, by what its job says.

By whole rungs, results alone decide: a trial that has a value at the rung it trains towards counts as having come there
and no further, whatever its job did before it could pause. Example: its rung is epoch 3; the job was quick, reported
epochs 3 and 4 and raised in epoch 5. It waits at the rung all the same. If it is to go on, it has failed; if not, it is
pruned as it would have been had it paused in time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Final, Literal

from pliant.core.lifecycle import JobState
from pliant.core.search import MAX_REPORTS, Constraint, Objective, Search, Trial, TrialState
from pliant.core.search_text import write_constraint
from pliant.policy.tuning.constraints import violation_of
from pliant.policy.tuning.rungs import has_arrived, resource_of, rungs_of

_MAX_NAMED: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """One value of a metric."""

    epoch: int
    step: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNews:
    """What is known of the job of a trial."""

    state: JobState | Literal["deleted"]
    reason: str = ""
    series: Mapping[str, Sequence[SeriesPoint]] = field(default_factory=dict)
    """New values of the first objective, in order; of a job that has ended all values of all objectives and of what
    its constraints bound."""
    at_rung: Mapping[str, Sequence[SeriesPoint]] | None = None
    """Of a trial that waits at a rung: all that was reported by then of what constraints bound; None: not known yet."""
    reported: Sequence[str] = ()
    """Names of the metrics that a job that has ended has reported."""


def take_in(search: Search, trial: Trial, news: JobNews) -> Trial:
    """Return a trial that has not ended, with what its job has come to."""
    trial = _with_reports(search, trial, news)
    rungs = rungs_of(search.settings, trial.bracket)
    if has_arrived(trial, rungs):
        if trial.state is TrialState.PAUSED:
            return trial if news.at_rung is None else _measured(search, trial, news.at_rung)
        reason = (
            f"it waits at rung {trial.rung + 1} of {len(rungs)}, {resource_of(search.settings)} {rungs[trial.rung]}"
        )
        return replace(trial, state=TrialState.PAUSED, reason=reason)
    match news.state:
        case JobState.COMPLETED:
            return _complete(search, trial, news)
        case JobState.FAILED:
            return replace(trial, state=TrialState.FAILED, reason=news.reason or "its script failed")
        case JobState.STOPPED:
            return replace(trial, state=TrialState.STOPPED, reason=news.reason or "somebody stopped its job")
        case "deleted":
            return replace(trial, state=TrialState.FAILED, reason=f"its job {trial.job_id} was deleted")
        case _:
            return trial


def _measured(search: Search, trial: Trial, at_rung: Mapping[str, Sequence[SeriesPoint]]) -> Trial:
    """Return a trial that waits at a rung with how far it violates the constraints there."""
    violations = []
    for one in search.settings.constraints:
        values = [point.value for point in at_rung.get(one.metric, ())]
        violations.append(violation_of(one, _read(one, values)) if values else 0.0)
    return replace(trial, violations=tuple(violations))


def _with_reports(search: Search, trial: Trial, news: JobNews) -> Trial:
    """Add values of the first objective: of each epoch or step the first, later ones belong to what follows."""
    counts_steps = resource_of(search.settings) == "step"
    rungs, reports = rungs_of(search.settings, trial.bracket), list(trial.reports)
    for point in news.series.get(search.settings.objectives[0].metric, ()):
        at = point.step if counts_steps else point.epoch
        last = reports[-1][0] if reports else -1
        if at > last and (len(reports) < MAX_REPORTS or any(last < rung <= at for rung in rungs)):
            reports.append((at, point.value))
    return trial if len(reports) == len(trial.reports) else replace(trial, reports=tuple(reports))


def _complete(search: Search, trial: Trial, news: JobNews) -> Trial:
    settings = search.settings
    read: list[float] = []
    wanted: tuple[Objective | Constraint, ...] = (*settings.objectives, *settings.constraints)
    for one in wanted:
        values = [point.value for point in news.series.get(one.metric, ())]
        if not values:
            return replace(trial, state=TrialState.FAILED, reason=_never_reported(one, news))
        read.append(_read(one, values))
    results, bounded = read[: len(settings.objectives)], read[len(settings.objectives) :]
    if any(isnan(result) for result in results):
        which = next(o.metric for o, result in zip(settings.objectives, results, strict=True) if isnan(result))
        return replace(trial, state=TrialState.FAILED, reason=f"its {which} is NaN at the end: there is no result")
    shown = ", ".join(f"{o.metric} {result:g}" for o, result in zip(settings.objectives, results, strict=True))
    violations = tuple(map(violation_of, settings.constraints, bounded))
    broken = ", ".join(
        f"its {one.metric} {value:g} violates {write_constraint(one)}"
        for one, value, violation in zip(settings.constraints, bounded, violations, strict=True)
        if violation > 0
    )
    reason = f"it came to {shown}" + (f", but {broken}" if broken else "")
    return replace(trial, state=TrialState.COMPLETED, results=tuple(results), violations=violations, reason=reason)


def _read(objective: Objective | Constraint, values: Sequence[float]) -> float:
    numbers = [value for value in values if not isnan(value)]
    if objective.reading == "last" or not numbers:
        return values[-1]
    return min(numbers) if objective.reading == "min" else max(numbers)


def _never_reported(objective: Objective | Constraint, news: JobNews) -> str:
    names = ", ".join(sorted(news.reported)[:_MAX_NAMED])
    there = f"it reported {names}" if names else "it reported no metric at all"
    return (
        f"it ended without a value of {objective.metric}; {there}. Report it with run.log({objective.metric}=...), or "
        f"name another metric"
    )
