"""Applications as the scheduler has them, for clients of both generations; every job is one, however it came in."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Query
from starlette.responses import StreamingResponse

from pliant.core.access import Principal
from pliant.core.errors import NotFound
from pliant.core.job import Job
from pliant.ibm.rest import logs
from pliant.ibm.rest.answers import DEEP_LEARNING, router
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.lookup import application_of, executor_of, jobs_of
from pliant.ibm.rest.translate.ids import app_id, driver_id
from pliant.ibm.rest.translate.listing import Listing, listed
from pliant.ibm.rest.translate.shapes import Server, application_json, engine_json
from pliant.ibm.rest.translate.states import STATES, asked_states
from pliant.server.context import Context, InContext
from pliant.server.visibility import check_owns

routes = router(DEEP_LEARNING)

DEFAULT_LENGTH: Final = 1000
"""Of a list whose length nobody asked for."""
LastLines = Annotated[int | None, Query(ge=0, le=logs.MAX_LINES)]
Start = Annotated[int, Query(ge=0)]
Length = Annotated[int, Query(ge=0)]


def described(context: Context, job: Job) -> dict[str, Any]:
    """Return the description of an application."""
    control = context.control
    server = Server(url=control.settings.url, code=str(control.settings.folders(job.id).code))
    return application_json(control.queries.detail(job.id), context.clock.now(), server)


def in_states(context: Context, caller: Principal, state: str | None) -> Sequence[Job]:
    """Return the jobs that the caller sees in the states that a client asks for, newest first."""
    wanted = asked_states(state)
    if wanted is None:
        return tuple(jobs_of(context, caller))
    states = tuple(ours for ours, theirs in STATES.items() if theirs in wanted)
    return tuple(jobs_of(context, caller, states)) if states else ()


@routes.get("/scheduler/applications")
def applications(  # noqa: PLR0913 (IBM's parameters)
    context: InContext,
    caller: Caller,
    applicationid: str | None = None,
    applicationname: str | None = None,
    driverid: str | None = None,
    search: str | None = None,
    state: str | None = None,
    sigId: str | None = None,
    sort: str | None = None,
    order: str | None = None,
    start: Start = 0,
    length: Length = DEFAULT_LENGTH,
) -> list[dict[str, Any]]:
    """List applications; `search` finds a part of an id or a name."""
    words = {name: text for name, text in (("id", applicationid), ("driver", driverid)) if text}

    def fits(job: Job) -> bool:
        ids = {"id": app_id(job), "driver": driver_id(job)}
        return (
            all(ids[name] == text for name, text in words.items())
            and (not applicationname or job.spec.name == applicationname)
            and (not sigId or job.spec.queue == sigId)
            and (not search or search in ids["id"] or search in job.spec.name)
        )

    found = [job for job in in_states(context, caller, state) if fits(job)]
    listing = Listing.of_sort(sort, order, start, length)
    if listing.field is None:
        return [described(context, job) for job in listing.part(found)]
    return listed([described(context, job) for job in found], listing)


@routes.get("/scheduler/applications/{application_id}")
def application(context: InContext, caller: Caller, application_id: str) -> dict[str, Any]:
    """Show an application."""
    return described(context, application_of(context, caller, application_id))


@routes.put("/scheduler/applications/{application_id}/stop")
def stop(context: InContext, caller: Caller, application_id: str) -> dict[str, Any]:
    """Stop an application at its next step boundary; one that has ended is 400."""
    job = application_of(context, caller, application_id)
    check_owns(job, caller)
    return described(context, context.control.requests.stop(job.id, caller.name))


@routes.get("/scheduler/applications/{application_id}/driver/logs/{kind}", response_class=StreamingResponse)
def driver_log(
    context: InContext, caller: Caller, application_id: str, kind: str, lastlines: LastLines = None
) -> StreamingResponse:
    """Return a log of the driver: stdout, stderr or launcherlog."""
    return logs.answer(driver_text(context, application_of(context, caller, application_id), kind, lastlines))


def driver_text(context: Context, job: Job, kind: str, last_lines: int | None) -> logs.Text:
    """Return a log of an application's driver.

    Raises:
        NotFound: there is no such log.
    """
    queries = context.control.queries
    if kind == logs.LAUNCHER:
        return logs.launcher_of(queries, job.id, last_lines)
    if kind not in logs.STREAMS:
        raise NotFound(f"a driver has no log {kind!r}; it has {', '.join((*logs.STREAMS, logs.LAUNCHER))}")
    return logs.text_of(queries, logs.leaders(queries.detail(job.id)), (kind,), last_lines)


@routes.get(
    "/scheduler/applications/{application_id}/executor/{executor}/logs/{kind}", response_class=StreamingResponse
)
def executor_log(
    context: InContext, caller: Caller, application_id: str, executor: str, kind: str, lastlines: LastLines = None
) -> StreamingResponse:
    """Return a log of an executor, by its number or its id: stdout, stderr or launcherlog."""
    job = application_of(context, caller, application_id)
    return logs.answer(executor_text(context, job, executor, kind, lastlines))


def executor_text(context: Context, job: Job, executor: str, kind: str, last_lines: int | None) -> logs.Text:
    """Return a log of one of an application's executors.

    Raises:
        NotFound: there is no such executor, or no such log.
    """
    queries = context.control.queries
    task = executor_of(queries.detail(job.id).tasks, executor)
    if kind == logs.LAUNCHER:
        return logs.launcher_of(queries, job.id, last_lines, task_id=task.id)
    if kind not in logs.STREAMS:
        raise NotFound(f"an executor has no log {kind!r}; it has {', '.join((*logs.STREAMS, logs.LAUNCHER))}")
    return logs.text_of(queries, (task,), (kind,), last_lines)


@routes.get("/scheduler/engine/applications")
def engine_applications(
    context: InContext,
    caller: Caller,
    state: str | None = None,
    sort: str | None = None,
    start: Start = 0,
    length: Length = DEFAULT_LENGTH,
) -> list[dict[str, Any]]:
    """List applications, those that have ended among them, as records of the scheduler."""
    found = in_states(context, caller, state)
    listing = Listing.of_sort(sort, None, start, length)
    if listing.field is None:
        return [_record(context, job) for job in listing.part(found)]
    return listed([_record(context, job) for job in found], listing)


@routes.get("/scheduler/engine/applications/{application_id}")
def engine_application(context: InContext, caller: Caller, application_id: str) -> list[dict[str, Any]]:
    """Show the record of an application, as a list of one."""
    return [_record(context, application_of(context, caller, application_id))]


def _record(context: Context, job: Job) -> dict[str, Any]:
    return engine_json(context.control.queries.detail(job.id))


@routes.get("/scheduler/kubernetesobjects")
def kubernetes(_: Caller, type: str, name: str | None = None) -> dict[str, Any]:
    """List Kubernetes objects: there are none, since tasks are processes."""
    if name is not None:
        raise NotFound(f"there is no {type} {name!r}: tasks are processes, not Kubernetes objects")
    return {"items": []}
