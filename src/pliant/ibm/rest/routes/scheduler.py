"""Applications as the scheduler has them, for clients of both generations; every job is one, however it came in."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import BaseModel, ConfigDict
from starlette.responses import StreamingResponse

from pliant.api.jobs import JobPatch
from pliant.core.access import Permission, Principal
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.job import MAX_PRIORITY, Job
from pliant.ibm.rest import logs
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING
from pliant.ibm.rest.lookup import find_application, find_executor, list_jobs
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.ids import app_id, driver_id
from pliant.ibm.rest.translate.listing import ListOptions, sort_and_cut
from pliant.ibm.rest.translate.shapes import ServerInfo, application_json, engine_json
from pliant.ibm.rest.translate.states import STATES, parse_states
from pliant.server.context import Context, InContext
from pliant.server.visibility import require_owner

routes = ibm_routes(DEEP_LEARNING)

DEFAULT_LENGTH: Final = 1000
"""Of a list whose length nobody asked for."""
LastLines = Annotated[int | None, Query(ge=0, le=logs.MAX_LINES)]
Start = Annotated[int, Query(ge=0)]
Length = Annotated[int, Query(ge=0)]


def describe(context: Context, job: Job) -> dict[str, Any]:
    """Return the description of an application."""
    control = context.control
    server = ServerInfo(url=control.settings.url, code=str(control.settings.folders(job.id).code))
    return application_json(control.queries.detail(job.id), context.clock.now(), server)


def list_jobs_in_states(context: Context, caller: Principal, state: str | None) -> Sequence[Job]:
    """Return the jobs that the caller sees in the states that a client asks for, newest first."""
    wanted = parse_states(state)
    if wanted is None:
        return tuple(list_jobs(context, caller))
    states = tuple(ours for ours, theirs in STATES.items() if theirs in wanted)
    return tuple(list_jobs(context, caller, states)) if states else ()


@routes.get("/scheduler/applications", Permission.JOBS_READ)
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
            and (not sigId or job.queue == sigId)
            and (not search or search in ids["id"] or search in job.spec.name)
        )

    found = [job for job in list_jobs_in_states(context, caller, state) if fits(job)]
    listing = ListOptions.from_sort(sort, order, start, length)
    if listing.field is None:
        return [describe(context, job) for job in listing.part(found)]
    return sort_and_cut([describe(context, job) for job in found], listing)


@routes.get("/scheduler/applications/{application_id}", Permission.JOBS_READ)
def application(context: InContext, caller: Caller, application_id: str) -> dict[str, Any]:
    """Show an application."""
    return describe(context, find_application(context, caller, application_id))


class ApplicationBody(BaseModel):
    """What IBM's clients send to change an application that waits or runs."""

    model_config = ConfigDict(extra="ignore")

    priority: int | None = None


@routes.put("/scheduler/applications/{application_id}", Permission.JOBS_WRITE)
def change(
    context: InContext,
    caller: Caller,
    application_id: str,
    body: ApplicationBody | None = None,
    priority: int | None = None,
) -> dict[str, Any]:
    """Change the priority of an application that waits or runs; one that has ended is 400."""
    return change_priority(context, caller, find_application(context, caller, application_id), body, priority)


def change_priority(
    context: Context, caller: Principal, job: Job, body: ApplicationBody | None, priority: int | None
) -> dict[str, Any]:
    """Change the priority of an application's job, from a body or a parameter of the request; return its description.

    Raises:
        Forbidden: it is only shared with the caller.
        InvalidInput: no priority is given, or it is out of its bounds.
        Conflict: the job has ended.
    """
    require_owner(job, caller)
    asked = body.priority if body is not None and body.priority is not None else priority
    if asked is None:
        raise InvalidInput.at("priority", f"it is missing; send a whole number of 1 to {MAX_PRIORITY}")
    patch = validate_body(JobPatch, {"priority": asked})
    return describe(context, context.control.requests.change(job.id, patch, who=caller.name))


@routes.put("/scheduler/applications/{application_id}/stop", Permission.JOBS_WRITE)
def stop(context: InContext, caller: Caller, application_id: str) -> dict[str, Any]:
    """Stop an application at its next step boundary; one that has ended is 400."""
    return stop_job(context, caller, find_application(context, caller, application_id))


def stop_job(context: Context, caller: Principal, job: Job) -> dict[str, Any]:
    """Stop an application's job; return its description.

    Raises:
        Forbidden: it is only shared with the caller.
        Conflict: it has ended.
    """
    require_owner(job, caller)
    return describe(context, context.control.requests.stop(job.id, caller.name))


@routes.get(
    "/scheduler/applications/{application_id}/driver/logs/{kind}",
    Permission.JOBS_READ,
    response_class=StreamingResponse,
)
def driver_log(
    context: InContext, caller: Caller, application_id: str, kind: str, lastlines: LastLines = None
) -> StreamingResponse:
    """Return a log of the driver: stdout, stderr or launcherlog."""
    return logs.respond(read_driver_log(context, find_application(context, caller, application_id), kind, lastlines))


def read_driver_log(context: Context, job: Job, kind: str, last_lines: int | None) -> logs.Text:
    """Return a log of an application's driver.

    Raises:
        NotFound: there is no such log.
    """
    queries = context.control.queries
    if kind == logs.LAUNCHER:
        return logs.read_launcher_log(queries, job.id, last_lines)
    if kind not in logs.STREAMS:
        raise NotFound(f"a driver has no log {kind!r}; it has {', '.join((*logs.STREAMS, logs.LAUNCHER))}")
    return logs.read_log(queries, logs.leaders(queries.detail(job.id)), (kind,), last_lines)


@routes.get(
    "/scheduler/applications/{application_id}/executor/{executor}/logs/{kind}",
    Permission.JOBS_READ,
    response_class=StreamingResponse,
)
def executor_log(
    context: InContext, caller: Caller, application_id: str, executor: str, kind: str, lastlines: LastLines = None
) -> StreamingResponse:
    """Return a log of an executor, by its number or its id: stdout, stderr or launcherlog."""
    job = find_application(context, caller, application_id)
    return logs.respond(read_executor_log(context, job, executor, kind, lastlines))


def read_executor_log(context: Context, job: Job, executor: str, kind: str, last_lines: int | None) -> logs.Text:
    """Return a log of one of an application's executors.

    Raises:
        NotFound: there is no such executor, or no such log.
    """
    queries = context.control.queries
    task = find_executor(queries.detail(job.id).tasks, executor)
    if kind == logs.LAUNCHER:
        return logs.read_launcher_log(queries, job.id, last_lines, task_id=task.id)
    if kind not in logs.STREAMS:
        raise NotFound(f"an executor has no log {kind!r}; it has {', '.join((*logs.STREAMS, logs.LAUNCHER))}")
    return logs.read_log(queries, (task,), (kind,), last_lines)


@routes.get("/scheduler/engine/applications", Permission.JOBS_READ)
def engine_applications(
    context: InContext,
    caller: Caller,
    state: str | None = None,
    sort: str | None = None,
    start: Start = 0,
    length: Length = DEFAULT_LENGTH,
) -> list[dict[str, Any]]:
    """List applications, those that have ended among them, as records of the scheduler."""
    found = list_jobs_in_states(context, caller, state)
    listing = ListOptions.from_sort(sort, None, start, length)
    if listing.field is None:
        return [_record(context, job) for job in listing.part(found)]
    return sort_and_cut([_record(context, job) for job in found], listing)


@routes.get("/scheduler/engine/applications/{application_id}", Permission.JOBS_READ)
def engine_application(context: InContext, caller: Caller, application_id: str) -> list[dict[str, Any]]:
    """Show the record of an application, as a list of one."""
    return [_record(context, find_application(context, caller, application_id))]


def _record(context: Context, job: Job) -> dict[str, Any]:
    return engine_json(context.control.queries.detail(job.id))


@routes.get("/scheduler/kubernetesobjects", Permission.JOBS_READ)
def kubernetes(type: str, name: str | None = None) -> dict[str, Any]:
    """List Kubernetes objects: there are none, since tasks are processes."""
    if name is not None:
        raise NotFound(f"there is no {type} {name!r}: tasks are processes, not Kubernetes objects")
    return {"items": []}
