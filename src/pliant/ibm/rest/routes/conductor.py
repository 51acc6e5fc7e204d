"""The Conductor's part of IBM's first generation: instance groups, which are queues here, and their applications."""

from typing import Any, Final

from fastapi import Request
from starlette.responses import StreamingResponse

from pliant.core.access import Permission, Principal
from pliant.core.errors import NotFound
from pliant.core.job import Job
from pliant.ibm.rest import logs
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import CONDUCTOR
from pliant.ibm.rest.groups import find_group, list_groups
from pliant.ibm.rest.lookup import find_application
from pliant.ibm.rest.routes.scheduler import describe, list_jobs_in_states, read_driver_log, read_executor_log
from pliant.ibm.rest.routing import ibm_routes
from pliant.server.context import Context, InContext

routes = ibm_routes(CONDUCTOR)

_APPLICATION: Final = "/instances/{sig_id}/applications/{application_id}"


@routes.get("/instances", Permission.POOL_READ)
def instances(
    context: InContext,
    caller: Caller,
    id: str | None = None,
    fields: str | None = None,
) -> list[dict[str, Any]]:
    """List instance groups, or one of them; `fields` says which of their fields."""
    found = [group for group in list_groups(context, caller) if id is None or group["id"] == id]
    if not fields:
        return found
    names = {name.strip() for name in fields.split(",")} | {"id"}
    return [{name: value for name, value in group.items() if name in names} for group in found]


@routes.get("/instances/{sig_id}", Permission.POOL_READ)
def instance(context: InContext, caller: Caller, sig_id: str) -> dict[str, Any]:
    """Show an instance group."""
    return find_group(context, caller, sig_id)


@routes.get("/instances/{sig_id}/applications", Permission.JOBS_READ)
def applications(
    context: InContext, caller: Caller, sig_id: str, state: str | None = None, applicationid: str | None = None
) -> list[dict[str, Any]]:
    """List the applications of an instance group."""
    name = find_group(context, caller, sig_id)["id"]
    found = (job for job in list_jobs_in_states(context, caller, state) if job.spec.queue == name)
    shown = [describe(context, job) for job in found]
    return [one for one in shown if applicationid is None or one["applicationid"] == applicationid]


def _find_application(context: Context, caller: Principal, sig_id: str, name: str) -> Job:
    """Return the job of an application, or of its driver, of an instance group."""
    job = find_application(context, caller, name)
    if job.spec.queue != find_group(context, caller, sig_id)["id"]:
        raise NotFound(f"the instance group {sig_id!r} has no application {name!r}")
    return job


@routes.get(_APPLICATION, Permission.JOBS_READ)
def application(context: InContext, caller: Caller, sig_id: str, application_id: str) -> dict[str, Any]:
    """Show an application by its id, or by its driver's."""
    return describe(context, _find_application(context, caller, sig_id, application_id))


@routes.get(f"{_APPLICATION}/logs/{{kind}}", Permission.JOBS_READ, response_class=StreamingResponse)
@routes.get(f"{_APPLICATION}/logs/{{kind}}/download", Permission.JOBS_READ, response_class=StreamingResponse)
def driver_log(
    request: Request, context: InContext, caller: Caller, sig_id: str, application_id: str, kind: str
) -> StreamingResponse:
    """Return a log of the driver, to show or as a file."""
    job = _find_application(context, caller, sig_id, application_id)
    text = read_driver_log(context, job, kind, None)
    return logs.respond(text, file_name=_file_name(request, f"{job.id}.driver.{kind}"))


@routes.get(f"{_APPLICATION}/{{executor}}/logs/{{kind}}", Permission.JOBS_READ, response_class=StreamingResponse)
@routes.get(
    f"{_APPLICATION}/{{executor}}/logs/{{kind}}/download", Permission.JOBS_READ, response_class=StreamingResponse
)
def executor_log(
    request: Request, context: InContext, caller: Caller, sig_id: str, application_id: str, executor: str, kind: str
) -> StreamingResponse:
    """Return a log of an executor, to show or as a file."""
    job = _find_application(context, caller, sig_id, application_id)
    text = read_executor_log(context, job, executor, kind, None)
    return logs.respond(text, file_name=_file_name(request, f"{job.id}.executor.{kind}"))


def _file_name(request: Request, name: str) -> str | None:
    return name if request.scope["route"].path.endswith("/download") else None
