"""Events: pages of what happened, and the live stream."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import TypeAdapter

from pliant.api.jobs import EventPage
from pliant.core.errors import InvalidInput, Problem
from pliant.core.event import Event
from pliant.server.context import InContext, InControl
from pliant.server.middleware.access import PREFIX
from pliant.server.middleware.problems import responses
from pliant.server.presence import GONE, RECHECK_S, InPresence
from pliant.server.visibility import InSight

router = APIRouter(prefix=PREFIX, tags=["events"])

_BATCH = 500
_EVENT = TypeAdapter(Event)

_MAX_SEQ = 2**31 - 1
"""What every database holds."""

After = Annotated[int, Query(ge=0, le=_MAX_SEQ, description="Only events after this number.")]
JobFilter = Annotated[str | None, Query(description="Only events of this job.")]


@router.get("/events", summary="Read events", responses=responses(404))
def events(
    control: InControl,
    sight: InSight,
    after: After = 0,
    job_id: JobFilter = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> EventPage:
    """Return events of the server and of the jobs that the caller sees, in order; ask again with `after=last`."""
    return control.queries.events(after, job_id, limit, sight)


def _resumed(after: After = 0, last_event_id: Annotated[str | None, Header()] = None) -> int:
    if last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < len(str(_MAX_SEQ))):
        message = f"{last_event_id!r} is no event number; send the `id` of the last event"
        raise InvalidInput(Problem(field="Last-Event-ID", message=message))
    return int(last_event_id)


def _known(control: InControl, sight: InSight, job_id: JobFilter = None) -> str | None:
    return control.queries.seen(job_id, sight).id if job_id is not None else None


@router.get(
    "/events/stream",
    summary="Follow events as they happen",
    response_class=EventSourceResponse,
    responses=responses(404),
)
async def stream(
    context: InContext,
    presence: InPresence,
    start: Annotated[int, Depends(_resumed)],
    job_id: Annotated[str | None, Depends(_known)],
) -> AsyncIterator[ServerSentEvent]:
    """Send what has happened since `after` (or the `Last-Event-ID`), then what happens.

    It ends when the server stops, and when the caller is not let in any more or does not see the job any more.
    """
    queries, bell = context.control.queries, context.bell
    while not bell.closed:
        num_rings = bell.num_rings
        try:
            page = await asyncio.to_thread(queries.events, start, job_id, _BATCH, await presence.sight())
        except GONE:
            return
        for event in page.events:
            yield _sse(event)
        start = page.last
        if len(page.events) < _BATCH:
            await bell.wait_beyond(num_rings, RECHECK_S)


def _sse(event: Event) -> ServerSentEvent:
    return ServerSentEvent(raw_data=_EVENT.dump_json(event).decode(), event=event.kind, id=str(event.seq))
