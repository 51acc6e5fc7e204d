"""Writes to the terminal: tables that keep their ids whole, JSON, errors.

A program that reads from a pipe gets plain lines: no colours, nothing wrapped or cut, no blanks at the ends; columns
are as wide as what is in them. What draws is imported when something is drawn: a server is asked before that.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pliant.cli.readable import readable, readable_json
from pliant.core.lifecycle import JobState, TaskState

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_PIPED_WIDTH: Final = 1_000_000
"""Nothing is wrapped or cut when a program reads it."""
_GAP: Final = 2
_LEAST_NAME: Final = 16
_LEAST_SENTENCE: Final = 24

STATE_STYLES: Final = {
    JobState.PENDING: "yellow",
    JobState.STARTING: "cyan",
    JobState.RUNNING: "green",
    JobState.PAUSED: "yellow",
    JobState.STOPPING: "magenta",
    JobState.COMPLETED: "blue",
    JobState.FAILED: "bold red",
    JobState.STOPPED: "dim",
    TaskState.WARM: "cyan",
    TaskState.TRAINING: "green",
    TaskState.LEAVING: "magenta",
    TaskState.EXITED: "dim",
    TaskState.LOST: "bold red",
}
ENDPOINT_STYLES: Final = {
    "serving": "green",
    "idle": "blue",
    "starting": "cyan",
    "waiting": "yellow",
    "failed": "bold red",
    "stopped": "dim",
    "ready": "green",
    "leaving": "magenta",
    "retired": "dim",
}
"""States of endpoints, their versions and kernels."""
_SERVING_WORDS: Final[Mapping[JobState | TaskState, str]] = {TaskState.TRAINING: "serving", TaskState.WARM: "loaded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a table. Without a flag it is always whole."""

    title: str
    right: bool = False
    cut: bool = False
    """Names: cut where the terminal is narrow."""
    wrap: bool = False
    """Sentences: go on in the next line."""
    optional: bool = False
    """Left out where the terminal is too narrow for all; the last such column first."""


def console(*, stderr: bool = False) -> "Console":
    """Return the terminal, or a pipe on which nothing is cut."""
    from pliant.cli.readable_console import ReadableConsole

    stream = sys.stderr if stderr else sys.stdout
    return ReadableConsole(stderr=stderr, width=None if stream.isatty() else _PIPED_WIDTH, highlight=False, emoji=False)


def say(text: str, *, style: str | None = None, stderr: bool = False) -> None:
    """Print a sentence: into a pipe as it is, without what draws, which takes a tenth of a command's time to come."""
    stream = sys.stderr if stderr else sys.stdout
    if not stream.isatty():
        print(readable(text), file=stream, flush=True)
        return
    from rich.text import Text

    console(stderr=stderr).print(Text(text, style=style or ""))


def show(what: "RenderableType") -> None:
    """Print something that rich can draw; into a pipe without the blanks that fill its lines."""
    screen = console()
    if screen.file.isatty():
        screen.print(what)
        return
    with screen.capture() as captured:
        screen.print(what)
    drawn = captured.get().removesuffix("\n").split("\n")
    screen.file.write("".join(f"{line.rstrip()}\n" for line in drawn))


def table(
    columns: Sequence[TableColumn], rows: "Iterable[Sequence[str | Text]]", *, width: int | None = None
) -> "Table":
    """Return a table without borders for a terminal of this width (of our own, if none is given)."""
    from rich.table import Table

    cells = [[_cell(column, cell) for column, cell in zip(columns, row, strict=True)] for row in rows]
    widths = [max([len(c.title), *(row[i].cell_len for row in cells)]) for i, c in enumerate(columns)]
    kept = _fit(columns, widths, console().width if width is None else width)
    drawn = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    for i, fitted in kept.items():
        drawn.add_column(
            columns[i].title,
            justify="right" if columns[i].right else "left",
            no_wrap=not columns[i].wrap,
            overflow="fold" if columns[i].wrap else "ellipsis",
            width=fitted,
        )
    for row in cells:
        drawn.add_row(*(row[i] for i in kept))
    return drawn


def _cell(column: TableColumn, cell: "str | Text") -> "Text":
    """Return what stands in a cell: of one line, where sentences do not go on in the next."""
    from rich.text import Text

    if isinstance(cell, Text):
        return cell
    return Text(cell if column.wrap else " ".join(cell.splitlines()))


def _fit(columns: Sequence[TableColumn], widths: Sequence[int], width: int) -> dict[int, int]:
    """Return the columns that stay, by number, and how wide each is."""
    least = [_least(column, natural) for column, natural in zip(columns, widths, strict=True)]
    kept = list(range(len(columns)))
    for i in reversed(range(len(columns))):
        if columns[i].optional and sum(least[k] + _GAP for k in kept) - _GAP > width:
            kept.remove(i)
    spare = width - sum(least[k] + _GAP for k in kept) + _GAP
    fitted = {}
    for k in kept:
        more = max(0, min(spare, widths[k] - least[k]))
        fitted[k] = least[k] + more
        spare -= more
    return fitted


def _least(column: TableColumn, width: int) -> int:
    if column.cut:
        return min(width, _LEAST_NAME)
    return min(width, _LEAST_SENTENCE) if column.wrap else width


def show_facts(facts: "Iterable[tuple[str, str | Text]]") -> None:
    """Print names and values."""
    from rich.text import Text

    rows = table(
        (TableColumn(title=""), TableColumn(title="", wrap=True)),
        ([Text(name, style="bold"), value] for name, value in facts),
    )
    rows.show_header = False
    show(rows)


def show_list(
    page: Any,
    columns: Sequence[TableColumn],
    rows: "Iterable[Sequence[str | Text]]",
    nothing: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Print all that was found, as JSON or as a table; where `nothing` is given, that instead of an empty table."""
    found = list(rows)
    if as_json:
        print_json(page)
    elif found or nothing is None:
        show(table(columns, found))
    else:
        say(nothing)


def print_outcome(noun: Any, text: str, *, as_json: bool) -> None:
    """Print a noun as JSON, or a sentence about it."""
    if as_json:
        print_json(noun)
    else:
        say(text)


def state_text(state: JobState | TaskState, *, serves: bool = False) -> "Text":
    """Return a state in its colour.

    Args:
        state: of a job or a task.
        serves: it is one of a kernel, or of the job of an endpoint, which trains nothing.
    """
    from rich.text import Text

    word = _SERVING_WORDS.get(state, state.value) if serves else state.value
    return Text(word, style=STATE_STYLES.get(state, ""))


def say_notes(notes: Iterable[str]) -> None:
    """Say what somebody should know, beside what was asked for."""
    for note in notes:
        say(f"note: {note}", stderr=True)


def print_json(noun: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(readable_json(_adapter_of(noun).dump_json(noun, indent=2).decode()) + "\n")


def print_json_line(noun: Any) -> None:
    """Print one JSON object on a line of its own, at once."""
    sys.stdout.write(readable_json(_adapter_of(noun).dump_json(noun).decode()) + "\n")
    sys.stdout.flush()


def _adapter_of(noun: Any) -> Any:
    from pliant.client.http.lazy_adapter import LazyAdapter  # what is shown as text, and errors, need no client

    return LazyAdapter(type(noun))
