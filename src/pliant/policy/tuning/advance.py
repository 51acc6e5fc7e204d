"""One step of a search: what its jobs say, what follows from that, and whether it is over.

news         job-7 has reported val_loss 0.31 at epoch 3      trial 4 waits at rung 2
rungs        all nine have come there                         4, 0 and 7 go on, six are pruned
verdict      nothing: trials are unended                      the search goes on
places       8, of which none is taken                        4, 0 and 7 train again
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan

from pliant.core.job import JobId
from pliant.core.search import Decision, DecisionKind, Search, SearchSettings, SearchState, Trial, TrialState
from pliant.policy.tuning.constraints import find_nearest
from pliant.policy.tuning.deaf import find_deaf
from pliant.policy.tuning.generation import Offspring, decide_generation
from pliant.policy.tuning.intake import JobNews, take_in
from pliant.policy.tuning.promotion import Promotion, Pruning, decide_rungs
from pliant.policy.tuning.rankings import Rankings
from pliant.policy.tuning.rungs import due_to_go_on, is_to_begin, next_bracket, unended
from pliant.policy.tuning.verdict import headline, judge_search, ran

_KINDS: Mapping[TrialState, DecisionKind] = {
    TrialState.PAUSED: "pause",
    TrialState.COMPLETED: "complete",
    TrialState.FAILED: "fail",
    TrialState.STOPPED: "stop",
    TrialState.PRUNED: "prune",
}


@dataclass(slots=True)
class SearchStep:
    """A search in the middle of a step, and what was decided in it."""

    search: Search
    trials: list[Trial]
    """All of them, by number."""
    now: float
    decisions: list[Decision] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)
    rankings: Rankings = field(default_factory=Rankings)
    """Those of the step before, which spare work."""

    def decide(self, kind: DecisionKind, reason: str, trial: Trial | None = None) -> None:
        """Note a decision, and what has become of a trial by it."""
        number = None if trial is None else trial.number
        position = self.search.position + 1
        self.decisions.append(
            Decision(
                search=self.search.name,
                position=position,
                at=self.now,
                kind=kind,
                trial=number,
                reason=headline(reason),
            )
        )
        self.search = replace(self.search, position=position)
        if trial is not None:
            self.put(trial)

    def put(self, trial: Trial) -> None:
        """Note what has become of a trial."""
        if trial.ended and trial.ended_at is None:
            trial = replace(trial, ended_at=self.now)
        self.changed.add(trial.number)
        self.trials[trial.number] = trial

    def begin(self, offspring: Offspring, job_id: JobId) -> None:
        """Note a trial that begins from the state of another one."""
        assert offspring.number == len(self.trials) == self.search.num_trials, "trials are numbered in order"
        trial = Trial(
            search=self.search.name,
            number=offspring.number,
            values=offspring.values,
            state=TrialState.PAUSED,
            reason=f"it goes on from trial {offspring.parent} at epoch {offspring.epoch}",
            job_id=job_id,
            rung=offspring.rung,
            parent=offspring.parent,
            parent_epoch=offspring.epoch,
            begun_at=self.now,
        )
        self.trials.append(trial)
        self.search = replace(self.search, num_trials=offspring.number + 1)
        self.decide("exploit", offspring.reason, trial)

    @property
    def changed_trials(self) -> tuple[Trial, ...]:
        return tuple(self.trials[number] for number in sorted(self.changed))


def advance(
    step: SearchStep,
    news: Mapping[int, JobNews],
    *,
    num_places: int,
    job_ids: Iterator[JobId],
    slot_hours: float = 0.0,
) -> None:
    """Note what follows from the news of trials' jobs.

    Args:
        step: where the search is; changed in place.
        news: by number, of trials that have not ended.
        num_places: so many trials may train at once.
        slot_hours: what the search has used; 0 if it has no such limit.
        job_ids: of jobs to come; one is taken for each trial that a population begins.
    """
    for number in sorted(news):
        _take(step, number, news[number])
    while found := (
        *decide_rungs(step.search, step.trials, step.rankings),
        *decide_generation(step.search, step.trials),
    ):
        for one in found:
            _carry_out(step, one, job_ids)
    _note_best(step)
    if step.changed and not step.search.remark and (remark := find_deaf(step.search, step.trials)):
        step.search = replace(step.search, remark=remark)
        step.decide("warn", remark)
    if step.search.state is not SearchState.RUNNING:
        return
    verdict = judge_search(step.search, step.trials, now=step.now, slot_hours=slot_hours)
    if verdict is not None:
        end(step, verdict.state, verdict.reason)
        return
    for trial in _to_resume(step, num_places):
        step.put(replace(trial, state=TrialState.RUNNING))


def _carry_out(step: SearchStep, decision: Promotion | Pruning | Offspring, job_ids: Iterator[JobId]) -> None:
    match decision:
        case Promotion():
            step.decide("promote", decision.reason, decision.trial)
        case Pruning():
            step.decide("prune", decision.reason, decision.trial)
        case Offspring():
            step.begin(decision, next(job_ids))


def _take(step: SearchStep, number: int, news: JobNews) -> None:
    before = step.trials[number]
    if before.ended:
        return
    after = take_in(step.search, before, news)
    if after.state is not before.state:
        step.decide(_KINDS[after.state], after.reason, after)
    elif after != before:
        step.put(after)


def end(step: SearchStep, state: SearchState, reason: str) -> None:
    """Note that a search is over, and with it whatever trial has not ended."""
    for trial in tuple(step.trials):
        if not trial.ended:
            stopped = replace(trial, state=TrialState.STOPPED, reason=f"its search is over: {reason}")
            step.decide("stop", stopped.reason, stopped)
    step.decide("end", reason)
    step.search = rest(replace(step.search, state=state, reason=reason), step.now)


def rest(search: Search, now: float) -> Search:
    """Return a search that does not run any more."""
    return replace(search, ran_s=ran(search, now), running_since=None, ended_at=now)


def _note_best(step: SearchStep) -> None:
    if step.changed:
        step.search = replace(step.search, nearest=find_nearest(step.search.settings, step.trials))
    if len(step.search.settings.objectives) > 1:
        return
    sign = 1 if step.search.settings.objectives[0].direction == "minimize" else -1
    best, result = step.search.best, step.search.best_result
    for number in sorted(step.changed):
        trial = step.trials[number]
        if trial.is_known or trial.state is not TrialState.COMPLETED or not trial.results or isnan(trial.results[0]):
            continue
        if not trial.is_feasible:
            continue
        own = (sign * trial.results[0], number)
        if result is None or best is None or own < (sign * result, best):
            best, result = number, trial.results[0]
    step.search = replace(step.search, best=best, best_result=result)


def _to_resume(step: SearchStep, num_places: int) -> Sequence[Trial]:
    """Return which paused trials train again now: those that go on from a rung, the highest first.

    In a population those that are to begin come first, as long as what they begin from is kept.
    """
    going = unended(step.trials)
    free = num_places - sum(trial.state is TrialState.RUNNING for trial in going)
    settings = step.search.settings
    due = due_to_go_on(settings, going)
    return sorted(due, key=lambda one: (-one.rung, not is_to_begin(one, settings), one.number))[: max(0, free)]


def bracket_to_ask(search: Search, trials: Sequence[Trial], *, num_places: int) -> int | None:
    """Return the bracket of the trial that is to be chosen now; None if none is."""
    settings = search.settings
    if search.state is not SearchState.RUNNING or search.exhausted:
        return None
    if settings.max_trials is not None and search.num_chosen >= settings.max_trials:
        return None
    going = unended(trials)
    if sum(trial.state is TrialState.RUNNING for trial in going) >= num_places:
        return None
    if due_to_go_on(settings, going):
        return None  # who was promoted goes first
    return next_bracket(search, trials)


def begins_together(settings: SearchSettings) -> bool:
    """Tell whether trials are chosen together, before anything is known of any of them."""
    return settings.population is not None or (settings.halving is not None and settings.halving.order == "rungs")


def as_seen(search: Search, trial: Trial, bracket: int) -> Trial:
    """Return a trial as the sampler sees it that chooses values for a bracket.

    By whole rungs, and in a population, nothing is known yet of those that began together with it: else what is chosen
    would depend on who was quick.
    """
    if not begins_together(search.settings) or trial.bracket != bracket or trial.is_known:
        return trial
    return replace(
        trial,
        state=TrialState.RUNNING,
        rung=0,
        reports=(),
        results=None,
        violations=(),
        reason="",
        ended_at=None,
    )
