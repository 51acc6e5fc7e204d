"""The schedule that a population has found: the values of a trial and of those that it goes on from, by epochs."""

from collections.abc import Callable, Iterator, Sequence

from pliant.cli import formatting
from pliant.cli.screen import TableColumn
from pliant.client.nouns.search_line import short
from pliant.core.search import SearchSettings, Trial


def lineage_of(trial: Trial, find: Callable[[int], Trial]) -> Sequence[Trial]:
    """Return those that a trial goes on from, the first one first, and itself."""
    line = [trial]
    while (parent := line[-1].parent) is not None:
        line.append(find(parent))
    return line[::-1]


def schedule_columns(settings: SearchSettings) -> Sequence[TableColumn]:
    """Return the columns of a schedule: one for every parameter."""
    names = (TableColumn(title=name, cut=True) for name in settings.parameters)
    return (TableColumn(title="EPOCHS", right=True), TableColumn(title="TRIAL", right=True), *names)


def schedule_rows(settings: SearchSettings, lineage: Sequence[Trial]) -> Iterator[list[str]]:
    """Yield the values of each trial of a lineage with the epochs in which they were used."""
    ends = [*(str(one.parent_epoch) for one in lineage[1:]), "end"]
    for trial, end in zip(lineage, ends, strict=True):
        first = str(trial.parent_epoch + 1)
        values = (trial.values.get(name, formatting.NOTHING) for name in settings.parameters)
        yield [first if first == end else f"{first}–{end}", str(trial.number), *map(short, values)]
