"""The command `audit`."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from pliant.cli import formatting
from pliant.cli.completion import complete
from pliant.cli.options import JsonLinesOption
from pliant.cli.screen import TableColumn, print_json_line, say, show, table
from pliant.cli.session import open_client
from pliant.client import Client
from pliant.core.registry import AuditEntry

_PAGE: Final = 1000
_COLUMNS: Final = (
    TableColumn(title="TIME"),
    TableColumn(title="WHO"),
    TableColumn(title="STATUS", right=True),
    TableColumn(title="ACTION"),
    TableColumn(title="TARGET", cut=True),
    TableColumn(title="FROM", optional=True),
)


def audit(
    context: typer.Context,
    who: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only what this user did.", autocompletion=complete("user"), show_default=False
        ),
    ] = None,
    tail: Annotated[int, typer.Option("--tail", "-n", min=1, metavar="N", help="So many, the newest.")] = 50,
    as_json: JsonLinesOption = False,
) -> None:
    """Print who did or tried what, newest first; for administrators."""
    with open_client(context) as client:
        found = list(_entries(client, who, tail))
    if as_json:
        for entry in found:
            print_json_line(entry)
    elif found:
        show(table(_COLUMNS, (_row(entry) for entry in found)))
    else:
        say("The audit log holds nothing of that.")


def _entries(client: Client, who: str | None, limit: int) -> Iterator[AuditEntry]:
    before: int | None = None
    while limit > 0:
        page = client.people.audit(before=before, who=who, limit=min(limit, _PAGE))
        yield from page.entries
        limit -= len(page.entries)
        if page.next is None:
            return
        before = page.next


def _row(entry: AuditEntry) -> list[str]:
    return [
        formatting.date_time(entry.at),
        entry.who or formatting.NOTHING,
        str(entry.status),
        entry.action,
        entry.target,
        entry.address,
    ]
