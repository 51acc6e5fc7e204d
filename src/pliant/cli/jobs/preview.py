"""What `set` and `submit` print with `--dry-run`: who would have how many slots, and why."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pliant.cli import formatting
from pliant.cli.screen import TableColumn, print_json, say, say_notes, show, table
from pliant.core.errors import Conflict, InvalidInput, Problem

if TYPE_CHECKING:
    from pliant.api.previews import SharePreview, SubmissionPreview

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; tell who would have how many slots, and why.")
]
_COLUMNS: Final = (
    TableColumn(title="JOB"),
    TableColumn(title="NAME"),
    TableColumn(title="HELD", right=True),
    TableColumn(title="WOULD GET", right=True),
    TableColumn(title="WHY", wrap=True),
)
_OTHERS: Final = "others"


def show_preview(preview: "SharePreview", *, as_json: bool) -> None:
    """Print what would come of a change, or of a submission.

    Raises:
        InvalidInput, Conflict: it would be refused, for this.
    """
    if preview.problems:
        raise InvalidInput(*(Problem(field=one.field, message=one.message) for one in preview.problems))
    if preview.refused:
        raise Conflict(preview.refused)
    if as_json:
        print_json(preview)
        return
    from pliant.api.previews import SubmissionPreview  # which a command that only has the option does without

    if isinstance(preview, SubmissionPreview):
        say(f"{_outlook(preview)}\n")
    show(table(_COLUMNS, _rows(preview)))
    free = f"{preview.would_be_free} of {formatting.count_of(preview.num_slots, 'slot')} would be free"
    say(f"\n{free}. Nothing was changed; others may change something before you do.")
    say_notes(preview.notes)


def _outlook(preview: "SubmissionPreview") -> str:
    if not preview.would_get:
        place = preview.waiting
        of = (
            "" if place is None else f" It would be number {place.place} of {place.num_waiting} that wait in its queue."
        )
        return f"It would wait.{of}"
    from_others = [f"{one.num_slots} of {one.id} ({one.name})" for one in preview.takes]
    if preview.num_taken_from_others:
        from_others.append(f"{preview.num_taken_from_others} of others")
    taken = f", which takes {' and '.join(from_others)}" if from_others else ""
    grows = formatting.count_of(preview.would_get, "slot")
    if not preview.starts:
        return f"It would start as soon as slots fall idle, and have {grows}{taken}."
    return f"It would start now with {formatting.count_of(preview.starts_with, 'slot')}, and have {grows}{taken}."


def _rows(preview: "SharePreview") -> Iterator[list[str]]:
    for one in preview.workloads:
        yield [one.id or "(new)", one.name, str(one.held), str(one.would_get), one.reason]
    if preview.others.num_workloads:
        others = preview.others
        yield [_OTHERS, "", str(others.held), str(others.would_get), "jobs that are not yours to see"]
