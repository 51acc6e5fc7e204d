"""The command `events`."""

import textwrap
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.text import Text

from pliant.cli import formatting
from pliant.cli.options import JsonLinesOption, OptionalJobArgument
from pliant.cli.screen import console, print_json_line
from pliant.cli.session import job_id_of, open_client
from pliant.client import Client
from pliant.core.event import FOR_PROGRAMS, Event, EventKind

_STYLES: Final = {
    EventKind.DECISION: "cyan",
    EventKind.TASK_LOST: "red",
    EventKind.GENERATION_ABANDONED: "red",
    EventKind.CHECKPOINT_FAILED: "red",
    EventKind.CLAIM_WEAKENED: "yellow",
    EventKind.WARNING: "yellow",
}
_LEAST_ROOM: Final = 20
_KIND_WIDTH: Final = max(len(kind) for kind in EventKind)


def events(
    context: typer.Context,
    job: OptionalJobArgument = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens.")] = False,
    after: Annotated[int, typer.Option(min=0, metavar="N", help="Only events after this number.")] = 0,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, metavar="N", help="Only the last events.", show_default=False)
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Print what happened, with every decision.

    \b
    pliant events -f
    pliant events digits --tail 20
    """
    with open_client(context) as client:
        job_id = None if job is None else job_id_of(client, job)
        last = after
        found = past_events(client, after=after, job_id=job_id)
        past = (event for event in found if as_json or event.kind not in FOR_PROGRAMS)
        for event in past if tail is None else deque(past, maxlen=tail):
            _print(event, as_json=as_json)
            last = event.seq
        if follow:
            for event in client.stream(after=None if tail == 0 else last, job_id=job_id):
                _print(event, as_json=as_json)


def past_events(client: Client, *, after: int, job_id: str | None = None) -> Iterator[Event]:
    """Yield all events that are stored, page by page."""
    while True:
        page = client.events(after=after, job_id=job_id)
        if not page.events:
            return
        yield from page.events
        after = page.last


def event_lines(event: Event, width: int, *, with_kind: bool = True) -> list[Text]:
    """Return an event as lines of at most `width`; the message goes on below itself."""
    style = _STYLES.get(event.kind, "")
    start = Text(formatting.clock_time(event.at), style="dim")
    if with_kind:
        start.append(f"  {event.kind:<{_KIND_WIDTH}}", style=f"not dim {style}")
    start.append(f"  {event.job_id or formatting.NOTHING:<7}  ", style="not dim bold")
    room = max(_LEAST_ROOM, width - len(start))
    first, *more = textwrap.wrap(event.message, room) or [""]
    body = "" if with_kind else style
    return [
        start.append(first, style=f"not dim {body}"),
        *(Text(f"{'':{len(start) - len(first)}}{line}", style=body) for line in more),
    ]


def _print(event: Event, *, as_json: bool) -> None:
    if as_json:
        print_json_line(event)
        return
    if event.kind in FOR_PROGRAMS:
        return
    screen = console()
    for line in event_lines(event, screen.width):
        screen.print(line, soft_wrap=True)
