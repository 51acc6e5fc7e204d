"""One frame of a search that is watched: how it stands, its trials that train, the best so far. A pure function."""

from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from pliant.api.searches import SearchView
from pliant.cli import formatting
from pliant.cli.screen import TableColumn, table
from pliant.cli.searches.tables import state_of, trial_columns, trial_row
from pliant.client.nouns.search_line import headline, results_of, short
from pliant.core.job import Job
from pliant.core.search import Trial

NUM_BEST: Final = 5
_LINES_BETWEEN: Final = 7
"""Lines of a frame that hold no trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """A trial that trains or waits, and its job."""

    trial: Trial
    job: Job | None
    """None: it is not queued yet, or we may not see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFrame:
    """What a frame shows."""

    view: SearchView
    going: tuple[Going, ...]
    best: tuple[Trial, ...]


def draw_search(frame: SearchFrame, *, width: int, height: int) -> RenderableType:
    """Return the frame for a screen of this size."""
    settings = frame.view.settings
    head = Text(headline(frame.view)[:width], style="bold", no_wrap=True)
    best = frame.best[:NUM_BEST]
    room = max(1, height - _LINES_BETWEEN - len(best))
    shown = frame.going[:room]
    lines: list[RenderableType] = [head]
    if frame.view.reason:
        lines.append(Text(frame.view.reason[:width], style="dim", no_wrap=True))
    lines.append(Text())
    if shown:
        names = tuple(settings.parameters)
        columns = (*_GOING, *(TableColumn(title=name, cut=True) for name in names))
        lines.append(table(columns, (_going_row(one, names) for one in shown), width=width))
    else:
        lines.append(Text("No trial trains.", style="dim"))
    if len(frame.going) > len(shown):
        lines.append(Text(f"and {len(frame.going) - len(shown)} more", style="dim"))
    if best:
        rows = (trial_row(settings, one, with_reason=False) for one in best)
        lines += [Text("\nBest", style="bold"), table(trial_columns(settings, with_reason=False), rows, width=width)]
    return Group(*lines)


_GOING: Final = (
    TableColumn(title="TRIAL", right=True),
    TableColumn(title="STATE"),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="EPOCH", right=True),
    TableColumn(title="METRIC", right=True),
    TableColumn(title="JOB"),
)


def _going_row(going: Going, names: tuple[str, ...]) -> list[str | Text]:
    trial, job = going.trial, going.job
    values = (short(trial.values[name]) if name in trial.values else formatting.NOTHING for name in names)
    return [
        str(trial.number),
        state_of(trial.state),
        formatting.NOTHING if job is None else str(job.num_slots),
        formatting.NOTHING if job is None else formatting.epochs(job.progress),
        results_of(trial),
        trial.job_id,
        *values,
    ]
