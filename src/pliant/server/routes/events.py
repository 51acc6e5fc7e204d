"""Events: pages of what happened, and the live stream."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import TypeAdapter

from pliant.api.jobs import EventPage
from pliant.core.access import Permission
from pliant.core.errors import InvalidInput
from pliant.core.event import Event
from pliant.server.context import InContext, InControl
from pliant.server.routing import Routes
from pliant.server.stream_access import ACCESS_LOST, RECHECK_S, InStreamAccess
from pliant.server.visibility import Seen

routes = Routes(tags=["events"])

_BATCH = 500
_EVENT = TypeAdapter(Event)

_MAX_SEQ = 2**31 - 1
"""What every database holds."""

After = Annotated[int, Query(ge=0, le=_MAX_SEQ, description="Only events after this number.")]
JobFilter = Annotated[str | None, Query(description="Only events of this job.")]


@routes.get("/events", Permission.JOBS_READ, "Read events", 404)
def events(
    control: InControl,
    visible: Seen,
    after: After = 0,
    job_id: JobFilter = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> EventPage:
    """Return events of the server and of the jobs that the caller sees, in order; ask again with `after=last`."""
    return control.queries.events(after, job_id, limit, visible)


def _resume_after(after: After = 0, last_event_id: Annotated[str | None, Header()] = None) -> int:
    if last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < len(str(_MAX_SEQ))):
        message = f"{last_event_id!r} is no event number; send the `id` of the last event"
        raise InvalidInput.at("Last-Event-ID", message)
    return int(last_event_id)


def _visible_job_id(control: InControl, visible: Seen, job_id: JobFilter = None) -> str | None:
    return control.queries.require_visible(job_id, visible).id if job_id is not None else None


@routes.get(
    "/events/stream", Permission.JOBS_READ, "Follow events as they happen", 404, response_class=EventSourceResponse
)
async def stream(
    context: InContext,
    access: InStreamAccess,
    start: Annotated[int, Depends(_resume_after)],
    job_id: Annotated[str | None, Depends(_visible_job_id)],
) -> AsyncIterator[ServerSentEvent]:
    """Send what has happened since `after` (or the `Last-Event-ID`), then what happens.

    It ends when the server stops, and when the caller is not let in any more or does not see the job any more.
    """
    queries, signal = context.control.queries, context.event_signal
    while not signal.closed:
        num_signals = signal.num_signals
        try:
            page = await asyncio.to_thread(queries.events, start, job_id, _BATCH, await access.visible_jobs())
        except ACCESS_LOST:
            return
        for event in page.events:
            yield _sse(event)
        start = page.last
        if len(page.events) < _BATCH:
            await signal.wait_after(num_signals, RECHECK_S)


def _sse(event: Event) -> ServerSentEvent:
    return ServerSentEvent(raw_data=_EVENT.dump_json(event).decode(), event=event.kind, id=str(event.seq))
