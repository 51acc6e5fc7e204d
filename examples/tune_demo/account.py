"""The account of both searches, and the checks that decide the demo's exit status.

Pure: it is handed what was seen, and says what holds and what does not. Of times only one is checked: slots that trials
left are free for less long than the next process needs until it trains on them. How long the searches took is told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from examples.demo.account import Check
from examples.demo.recording import Seen
from examples.tune_demo.handover import Handover, handovers_of
from examples.tune_demo.scenario import Run, TuneOutcome
from pliant.core.event import EventKind
from pliant.core.job import JobId, TaskId
from pliant.core.search import SearchState, Trial, TrialState

SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAccount:
    """What happened to a search."""

    label: str
    state: str
    trials: tuple[Trial, ...]
    best: int | None
    digests: Mapping[int, str]
    """Of the final states of trials that came to their end, by number."""
    took_s: float
    slots: float
    """Held by its trials and the training beside it, the mean while it ran."""
    step_s: float
    """Of its trials: the median over all epochs."""
    starts_s: tuple[float, ...]
    """From the start of each process of its jobs until it trained."""
    handovers: tuple[Handover, ...]

    @property
    def trials_per_min(self) -> float:
        return SECONDS * len(self.trials) / self.took_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneAccount:
    """What happened to both searches, and to what was repeated."""

    elastic: SearchAccount
    rigid: SearchAccount
    best_alone: str
    """Digests, as of the trainings."""
    training: tuple[str, str]
    training_alone: str

    @property
    def speedup(self) -> float:
        return self.elastic.trials_per_min / self.rigid.trials_per_min


def account_of(seen: Seen, outcome: TuneOutcome) -> TuneAccount:
    """Return the account of all that was seen."""
    digests = {job_id: detail.job.digest for job_id, detail in seen.details.items()}
    return TuneAccount(
        elastic=_search_account(seen, outcome.elastic, digests),
        rigid=_search_account(seen, outcome.rigid, digests),
        best_alone=digests[outcome.best_alone],
        training=(digests[outcome.elastic.beside], digests[outcome.rigid.beside]),
        training_alone=digests[outcome.training_alone],
    )


def _search_account(seen: Seen, run: Run, digests: Mapping[JobId, str]) -> SearchAccount:
    trials = [trial.job_id for trial in run.trials]
    jobs = (run.beside, *trials)
    held = seen.held()
    steps = steps_of(seen, trials)
    limits = {job_id: (seen.details[job_id].job.min_tasks, seen.details[job_id].job.max_tasks) for job_id in jobs}
    return SearchAccount(
        label=run.label,
        state=run.view.state.value,
        trials=run.trials,
        best=None if run.view.best is None else run.view.best.number,
        digests={trial.number: digests[trial.job_id] for trial in run.trials if trial.state is TrialState.COMPLETED},
        took_s=run.took_s,
        slots=sum(held[job_id].mean(run.began_at, run.ended_at) for job_id in jobs if job_id in held),
        step_s=median(steps) if steps else 0.0,
        starts_s=starts_of(seen, jobs),
        handovers=handovers_of(seen.events, num_slots=seen.num_slots, limits=limits, trials=trials),
    )


def steps_of(seen: Seen, job_ids: Sequence[JobId]) -> list[float]:
    """Return what a step took in each epoch of these jobs that was trained at one go, in seconds."""
    found = []
    for job_id in job_ids:
        last: tuple[float, int] | None = None
        for event in seen.events:
            if event.job_id != job_id:
                continue
            if event.kind is EventKind.EPOCH_FINISHED:
                step = int(event.data["step"] or 0)
                if last is not None and step > last[1]:
                    found.append((event.at - last[0]) / (step - last[1]))
                last = (event.at, step)
            elif event.kind is EventKind.GENERATION_SWITCHED:
                last = (event.at, int(event.data["step"] or 0))
    return found


def starts_of(seen: Seen, job_ids: Sequence[JobId]) -> tuple[float, ...]:
    """Return what each process of these jobs needed from its start until it trained; those that never did are left out.

    It trains with the first switch after it was ready.
    """
    started: dict[TaskId, float] = {}
    ready: dict[JobId, list[TaskId]] = {job_id: [] for job_id in job_ids}
    found = []
    for event in seen.events:
        if event.job_id not in ready:
            continue
        if event.kind is EventKind.TASK_STARTED and event.task_id is not None:
            started[event.task_id] = event.at
        elif event.kind is EventKind.TASK_READY and event.task_id in started:
            ready[event.job_id].append(event.task_id)
        elif event.kind is EventKind.GENERATION_SWITCHED:
            found += [event.at - started[task_id] for task_id in ready[event.job_id]]
            ready[event.job_id].clear()
    return tuple(found)


def checks_of(account: TuneAccount) -> tuple[Check, ...]:
    """Return every claim with what was found."""
    elastic, rigid = account.elastic, account.rigid
    return (
        *(_completed(one) for one in (elastic, rigid)),
        _same_trials(elastic, rigid),
        _same_best(elastic, rigid),
        _repeated(account),
        _undisturbed(account),
        _handed_over(elastic),
    )


def _completed(one: SearchAccount) -> Check:
    failed = [trial for trial in one.trials if trial.state not in (TrialState.COMPLETED, TrialState.PRUNED)]
    num_pruned = sum(trial.state is TrialState.PRUNED for trial in one.trials)
    found = f"{one.state}, {len(one.trials) - num_pruned - len(failed)} to their end, {num_pruned} pruned"
    faults = [f"trial {trial.number} {trial.state.value}: {trial.reason}" for trial in failed[:3]]
    return Check(
        label=f"search {one.label}",
        claim="completed, and no trial failed",
        holds=one.state == SearchState.COMPLETED.value and not failed and bool(one.trials),
        found="; ".join([found, *faults]),
    )


def _same_trials(elastic: SearchAccount, rigid: SearchAccount) -> Check:
    facts = [[facts_of(trial) for trial in one.trials] for one in (elastic, rigid)]
    differing = [number for number, (a, b) in enumerate(zip(*facts, strict=False)) if a != b]
    holds = not differing and len(facts[0]) == len(facts[1]) > 0
    num = sum(len(trial.reports) for trial in elastic.trials)
    same = f"{len(facts[0])} trials, {num} values of the metric, every pruning and promotion"
    return Check(
        label="both searches",
        claim="chose the same trials, which came to the same values and decisions, bit for bit",
        holds=holds,
        found=same if holds else f"trials {differing} of {len(facts[0])} and {len(facts[1])} differ",
    )


def facts_of(trial: Trial) -> tuple[object, ...]:
    """Return what of a trial must not depend on slots."""
    return trial.number, dict(trial.values), trial.state, trial.rung, trial.reports, trial.results


def _same_best(elastic: SearchAccount, rigid: SearchAccount) -> Check:
    a, b = (one.digests.get(-1 if one.best is None else one.best, "") for one in (elastic, rigid))
    return Check(
        label="both searches",
        claim="found the same best trial, with the same parameters, bit for bit",
        holds=elastic.best is not None and elastic.best == rigid.best and a == b != "",
        found=f"trial {elastic.best} ({a[:12]}) and trial {rigid.best} ({b[:12]})",
    )


def _repeated(account: TuneAccount) -> Check:
    best = account.elastic.best
    digest = account.elastic.digests.get(-1 if best is None else best, "")
    return _same(
        "the best trial", "is, repeated alone on one slot, the same, bit for bit", (digest, account.best_alone)
    )


def _undisturbed(account: TuneAccount) -> Check:
    digests = (*account.training, account.training_alone)
    return _same("A", "came to the same beside both searches as undisturbed on one slot, bit for bit", digests)


def _same(label: str, claim: str, digests: Sequence[str]) -> Check:
    shown = ", ".join(digest[:12] or "none" for digest in dict.fromkeys(digests))
    return Check(label=label, claim=claim, holds=len({*digests}) == 1 and all(digests), found=shown)


def _handed_over(one: SearchAccount) -> Check:
    took = [handover.took_s for handover in one.handovers]
    found = "; ".join(
        [describe_handovers(one), *([f"a process trained {_describe_starts(one)}"] if one.starts_s else [])]
    )
    return Check(
        label=f"search {one.label}",
        claim="left slots to others, who held them sooner than a resize takes",
        holds=bool(took and one.starts_s) and max(took) <= max(one.starts_s),
        found=found,
    )


def describe_handovers(one: SearchAccount) -> str:
    """Say how often slots were left that others wanted, and how long they were free."""
    took = [handover.took_s for handover in one.handovers]
    if not took:
        return "never"
    steps = f" ({median(took) / one.step_s:.1f} steps)" if one.step_s else ""
    times = "once" if len(took) == 1 else f"{len(took)} times"
    return f"{times}, free for {1000 * median(took):.0f} ms{steps} by the median, {1000 * max(took):.0f} ms at most"


def _describe_starts(one: SearchAccount) -> str:
    return f"{median(one.starts_s):.1f} s after its start by the median, {max(one.starts_s):.1f} at most"
