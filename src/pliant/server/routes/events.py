"""Events: pages of what happened, and the live stream."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import TypeAdapter

from pliant.api.job_views import EventPage
from pliant.control.requests.slots import MAX_TIME
from pliant.core.access import Permission
from pliant.core.errors import InvalidInput
from pliant.core.event import Event, EventKind
from pliant.core.job import JobId
from pliant.core.noun_event import hidden_from
from pliant.core.ports import EventFilter
from pliant.server.context import InContext, InControl
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.stream_access import ACCESS_LOST, RECHECK_S, InStreamAccess
from pliant.server.visibility import Seen

routes = Routes(tags=["events"])

_BATCH = 500
_EVENT = TypeAdapter(Event)

_MAX_SEQ = 2**31 - 1
"""What every database holds."""

After = Annotated[int, Query(ge=0, le=_MAX_SEQ, description="Only events after this number.")]
OfJob = Annotated[str | None, Query(description="Only events of this job.")]
OfKinds = Annotated[list[EventKind] | None, Query(max_length=len(EventKind), description="Only these. Repeatable.")]
At = Annotated[float | None, Query(ge=0, le=MAX_TIME, allow_inf_nan=False, description="Seconds since the epoch.")]


@routes.get("/events", Permission.JOBS_READ, "Read events", 404)
def events(  # noqa: PLR0913 (one parameter per word of the query)
    control: InControl,
    visible: Seen,
    caller: Caller,
    after: After = 0,
    before: Annotated[int | None, Query(ge=1, le=_MAX_SEQ, description="Only events before this number.")] = None,
    since: At = None,
    until: At = None,
    job_id: OfJob = None,
    kind: OfKinds = None,
    order: Annotated[Literal["oldest", "newest"], Query(description="Which come first.")] = "oldest",
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> EventPage:
    """Return events of the server, and of the jobs and other nouns that the caller sees; ask again with `after=last`.

    Of slots of jobs that they do not see it says by how many they changed, and not whose they are.

    With `order=newest` the newest come first; ask again with `before=next`. Of times, `since` is in and `until` is not.
    """
    which = EventFilter(
        after=after,
        before=before,
        since=since,
        until=until,
        job_id=None if job_id is None else JobId(job_id),
        kinds=tuple(dict.fromkeys(kind or ())),
        newest=order == "newest",
        limit=limit,
        visible=visible,
        reader=caller.name,
        hidden=hidden_from(caller),
        other_slots=True,
    )
    return control.queries.events(which)


def _resume_after(after: After = 0, last_event_id: Annotated[str | None, Header()] = None) -> int:
    if last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < len(str(_MAX_SEQ))):
        message = f"{last_event_id!r} is no event number; send the `id` of the last event"
        raise InvalidInput.at("Last-Event-ID", message)
    return int(last_event_id)


def _visible_job_id(control: InControl, visible: Seen, job_id: OfJob = None) -> str | None:
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
            one = None if job_id is None else JobId(job_id)
            visible = await access.visible_jobs()
            which = EventFilter(
                after=start,
                job_id=one,
                limit=_BATCH,
                visible=visible,
                reader=access.caller.name,
                hidden=hidden_from(access.caller),
                other_slots=True,
            )
            page = await asyncio.to_thread(queries.events, which)
        except ACCESS_LOST:
            return
        for event in page.events:
            yield _sse(event)
        start = page.last
        if len(page.events) < _BATCH:
            await signal.wait_after(num_signals, RECHECK_S)


def _sse(event: Event) -> ServerSentEvent:
    return ServerSentEvent(raw_data=_EVENT.dump_json(event).decode(), event=event.kind, id=str(event.seq))
