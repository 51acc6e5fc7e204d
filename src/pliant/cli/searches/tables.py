"""What commands show of searches and trials: columns, rows, and sentences. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Final

from rich.text import Text

from pliant.api.searches import SearchView
from pliant.cli import formatting
from pliant.cli.screen import TableColumn
from pliant.client.nouns.search_line import best_of, counted, left_of, no_best, results_of, short, words_of
from pliant.core.search import Decision, SearchSettings, SearchState, Trial, TrialState
from pliant.core.search_text import write_constraint, write_halving, write_objective, write_population
from pliant.core.space import Value, text_of_value
from pliant.core.space_text import write_domain
from pliant.policy.tuning.verdict import headline

STATE_STYLES: Final[Mapping[str, str]] = {
    SearchState.RUNNING: "green",
    SearchState.STOPPED: "dim",
    SearchState.COMPLETED: "blue",
    SearchState.FAILED: "bold red",
    TrialState.PAUSED: "yellow",
    TrialState.PRUNED: "dim",
}
SEARCH_COLUMNS: Final = (
    TableColumn(title="SEARCH"),
    TableColumn(title="STATE"),
    TableColumn(title="TRIALS", right=True),
    TableColumn(title="BEST", right=True),
    TableColumn(title="OF", cut=True, optional=True),
    TableColumn(title="RAN", right=True),
    TableColumn(title="LEFT", right=True),
    TableColumn(title="OWNER"),
)
DECISION_COLUMNS: Final = (
    TableColumn(title="N", right=True),
    TableColumn(title="TIME"),
    TableColumn(title="WHAT"),
    TableColumn(title="TRIAL", right=True),
    TableColumn(title="WHY", wrap=True),
)


def state_of(state: SearchState | TrialState) -> Text:
    """Return a state in its colour."""
    return Text(state.value, style=STATE_STYLES.get(state, ""))


def search_row(view: SearchView) -> list[str | Text]:
    """Return a search for a table."""
    return [
        view.name,
        state_of(view.state),
        counted(view),
        best_of(view),
        ", ".join(one.metric for one in view.settings.objectives),
        formatting.short_duration(view.ran_s),
        formatting.NOTHING if view.eta_s is None else formatting.short_rough(view.eta_s),
        view.owner,
    ]


def decision_row(decision: Decision) -> list[str | Text]:
    """Return a decision for a table."""
    trial = formatting.NOTHING if decision.trial is None else str(decision.trial)
    return [str(decision.position), formatting.date_time(decision.at), decision.kind, trial, decision.reason]


def trial_columns(settings: SearchSettings, *, with_reason: bool = True) -> tuple[TableColumn, ...]:
    """Return the columns for the trials of a search: one for every parameter."""
    reason = (TableColumn(title="WHY", wrap=True, optional=True),) if with_reason else ()
    bounds = (TableColumn(title="VIOLATES"),) if settings.constraints else ()
    return (
        TableColumn(title="TRIAL", right=True),
        TableColumn(title="STATE"),
        TableColumn(title=_objective_title(settings), right=True),
        *bounds,
        TableColumn(title=_place_title(settings), right=True),
        *((TableColumn(title="FROM"),) if settings.population else ()),
        *(TableColumn(title=name, cut=True) for name in settings.parameters),
        TableColumn(title="JOB"),
        *reason,
    )


def _place_title(settings: SearchSettings) -> str:
    if settings.population is not None:
        return "EPOCH"
    return "AT" if settings.halving is None else settings.halving.resource.upper()


def _objective_title(settings: SearchSettings) -> str:
    return ", ".join(one.metric for one in settings.objectives)


def trial_row(settings: SearchSettings, trial: Trial, *, with_reason: bool = True) -> list[str | Text]:
    """Return a trial for a table of those columns."""
    values = (short(trial.values[name]) if name in trial.values else formatting.NOTHING for name in settings.parameters)
    return [
        str(trial.number),
        state_of(trial.state),
        results_of(trial),
        *([violations_of(settings, trial)] if settings.constraints else []),
        str(trial.reports[-1][0]) if trial.reports else formatting.NOTHING,
        *((origin_of(trial),) if settings.population else ()),
        *values,
        trial.job_id,
        *([headline(trial.reason)] if with_reason else []),
    ]


def violations_of(settings: SearchSettings, trial: Trial) -> str:
    """Return which constraints a trial violates, and by how much: `memory_gb<=8 by 1.5`; `nothing` if it keeps them."""
    if not trial.violations:
        return formatting.NOTHING
    broken = [
        f"{write_constraint(one)} by {formatting.number(by)}" if isfinite(by) else write_constraint(one)
        for one, by in zip(settings.constraints, trial.violations, strict=False)
        if not by <= 0
    ]
    return ", ".join(broken) or "nothing"


def say_no_best(view: SearchView) -> str:
    """Return why no trial is the best, as a sentence."""
    said = no_best(view) or f"no trial of {view.name} has completed yet"
    return f"{said[0].upper()}{said[1:]}."


def origin_of(trial: Trial) -> str:
    """Return from which trial's state a trial began, and at which epoch that was: `2 at 6`."""
    return formatting.NOTHING if trial.parent is None else f"{trial.parent} at {trial.parent_epoch}"


def facts_of(view: SearchView) -> Iterator[tuple[str, str | Text]]:
    """Yield what there is to say of a search, but for its trials."""
    settings = view.settings
    yield "search", f"{view.name}, by {view.owner} since {formatting.date_time(view.created_at)}"
    yield "state", state_of(view.state).append(f": {view.reason}" if view.reason else "", style="default")
    if view.remark:
        yield "note", view.remark
    states = ", ".join(f"{number} {state.value}" for state in TrialState if (number := view.trials.get(state, 0)))
    yield "trials", f"{counted(view)}" + (f": {states}" if states else "")
    if view.best is not None:
        yield (
            "best",
            f"trial {view.best.number}: {results_of(view.best)} with {words_of(view.best)} ({view.best.job_id})",
        )
    elif said := no_best(view):
        yield "best", said
    yield "ran", ", ".join(filter(None, (formatting.duration(view.ran_s), left_of(view))))
    yield from _asked(settings)
    if view.num_at_once is not None:
        yield "parallel", f"{view.num_at_once} at most: {view.why_at_once}"
    yield "job", f"{view.job.script}, {view.job.min_tasks} to {view.job.max_tasks} tasks, queue {view.job.queue}"
    yield "shared", ", ".join(view.settings.shared_with) or "with nobody"


def _asked(settings: SearchSettings) -> Iterator[tuple[str, str]]:
    """Yield what was asked for."""
    for name, parameter in settings.parameters.items():
        yield name, write_domain(parameter)
    yield "objective", ", ".join(map(write_objective, settings.objectives))
    if settings.constraints:
        yield "constraints", ", ".join(map(write_constraint, settings.constraints))
    yield "sampler", f"{settings.sampler.name}, seed {settings.sampler.seed}{_options(settings.sampler.options)}"
    if settings.halving is not None:
        brackets = f", {settings.halving.brackets} brackets" * (settings.halving.brackets > 1)
        yield "halving", f"{write_halving(settings.halving)}, by {settings.halving.order}{brackets}"
    if (population := settings.population) is not None:
        options = ("fraction", "factor", "resample")
        yield "population", write_population(population) + _options({n: getattr(population, n) for n in options})
    if settings.pruner is not None:
        yield "pruner", f"{settings.pruner.name}{_options(settings.pruner.options)}"
    if limits := ", ".join(_limits(settings)):
        yield "limits", limits


def _options(options: Mapping[str, Value]) -> str:
    return "".join(f", {name}={text_of_value(value)}" for name, value in options.items())


def _limits(settings: SearchSettings) -> Sequence[str]:
    return [
        words
        for value, words in (
            (settings.max_trials, f"{settings.max_trials} trials"),
            (settings.parallel, f"{settings.parallel} at once"),
            (settings.max_time_s, formatting.duration(settings.max_time_s or 0)),
            (settings.max_slot_hours, f"{settings.max_slot_hours or 0:g} slot hours"),
            (settings.target, f"target {settings.target}"),
        )
        if value is not None
    ]
