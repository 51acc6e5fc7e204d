"""What a frame of `pliant top` shows of searches: a line for each, and below it its trials that train. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from pliant.api.searches import SearchView
from pliant.cli import formatting
from pliant.cli.screen import TableColumn, state_text, table
from pliant.client.nouns.search_line import best_of, counted, short
from pliant.core.job import Job
from pliant.core.lifecycle import JobState
from pliant.core.search import TrialState
from pliant.core.space import Values

_NUM_TRIALS: Final = 5
"""So many of a search are shown at most."""
_BAR: Final = 10

_COLUMNS: Final = (
    TableColumn(title="SEARCH", cut=True),
    TableColumn(title="STATE"),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="RUN", right=True),
    TableColumn(title="PAUSED", right=True, optional=True),
    TableColumn(title="DONE", right=True),
    TableColumn(title="PROGRESS", optional=True),
    TableColumn(title="BEST", right=True),
    TableColumn(title="LEFT", right=True),
    TableColumn(title="OWNER", optional=True),
    TableColumn(title="VALUES", cut=True, optional=True),
)


def trials_of(searches: Sequence[SearchView], jobs: Sequence[Job]) -> Mapping[str, Sequence[Job]]:
    """Return the jobs that are trials of these searches, by search, oldest first."""
    found: dict[str, list[Job]] = {view.name: [] for view in searches}
    for job in reversed(jobs):
        if job.spec.trial is not None and job.spec.trial.search in found:
            found[job.spec.trial.search].append(job)
    return found


def search_lines(
    searches: Sequence[SearchView],
    trials: Mapping[str, Sequence[Job]],
    colour_of: Mapping[str, str],
    *,
    width: int,
    num_lines: int,
) -> list[RenderableType]:
    """Return the searches with the trials that train, in so many lines about, but all searches that fit.

    Args:
        trials: the jobs of each that have not ended.
        num_lines: so many rows may be shown; one at least is.
    """
    if not searches:
        return []
    shown = searches[: max(1, num_lines)]
    room = max(0, num_lines - len(shown))
    rows: list[list[str | Text]] = []
    for view in shown:
        own = trials.get(view.name, ())
        training = sorted((job for job in own if not job.hold), key=lambda job: (job.num_slots == 0, _number_of(job)))
        rows.append(_search_row(view, sum(job.num_slots for job in own)))
        here = training[: min(room, _NUM_TRIALS)]
        rows += [_trial_row(job, colour_of) for job in here]
        room -= len(here)
        if here and len(training) > len(here):
            rows.append([Text(f"  … {len(training) - len(here)} more", style="dim"), *[""] * (len(_COLUMNS) - 1)])
            room -= 1
    lines: list[RenderableType] = [table(_COLUMNS, rows, width=width)]
    if len(searches) > len(shown):
        lines.append(Text(f"and {len(searches) - len(shown)} more", style="dim"))
    return [*lines, Text()]


def bar(fraction: float, style: str = "") -> Text:
    """Return how much is done, drawn."""
    done = round(fraction * _BAR)
    return Text("█" * done, style=style or "default").append("░" * (_BAR - done), style="bright_black")


def _search_row(view: SearchView, num_slots: int) -> list[str | Text]:
    drawn: str | Text = formatting.NOTHING
    if view.progress is not None:
        drawn = bar(view.progress).append(f" {100 * view.progress:3.0f}%", style="default")
    return [
        Text(view.name, style="bold"),
        state_text(JobState(view.state.value)),
        str(num_slots),
        str(view.trials.get(TrialState.RUNNING, 0)),
        str(view.trials.get(TrialState.PAUSED, 0)),
        counted(view),
        drawn,
        best_of(view),
        formatting.NOTHING if view.eta_s is None else formatting.short_rough(view.eta_s),
        view.owner,
        "" if view.best is None else f"best: {_words(view.best.values)}",
    ]


def _trial_row(job: Job, colour_of: Mapping[str, str]) -> list[str | Text]:
    style = colour_of.get(job.id, "")
    done = formatting.fraction_done(job.progress)
    return [
        Text(f"  {job.id} #{_number_of(job)}", style=style),
        state_text(job.state),
        str(job.num_slots),
        "",
        "",
        formatting.epochs(job.progress),
        bar(done, style).append(f" {formatting.percent(job.progress):>4}", style="default"),
        "",
        formatting.time_left(job, formatting.short_duration),
        "",
        _words({} if job.spec.trial is None else job.spec.trial.values),
    ]


def _number_of(job: Job) -> int:
    return -1 if job.spec.trial is None else job.spec.trial.number


def _words(values: Values) -> str:
    return " ".join(f"{name}={short(value)}" for name, value in values.items())
