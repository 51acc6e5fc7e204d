"""The Conductor's part of IBM's first generation: instance groups, which are queues here, and their applications."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Request
from starlette.responses import StreamingResponse

from pliant.api.queues import QueuePatch, QueueRequest
from pliant.core.access import Permission, Principal
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.job import Job
from pliant.ibm.rest import logs
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import CONDUCTOR, name_fields
from pliant.ibm.rest.groups import add_group, change_group, deploy_group, find_group, list_groups, remove_group
from pliant.ibm.rest.lookup import find_application
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routes.scheduler import (
    ApplicationBody,
    change_priority,
    describe,
    list_jobs_in_states,
    read_driver_log,
    read_executor_log,
    stop_job,
)
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.ids import exec_id
from pliant.ibm.rest.translate.instance_group import NAME, InstanceGroupBody, queue_fields
from pliant.server.context import Context, InContext

routes = ibm_routes(CONDUCTOR)

_APPLICATION: Final = "/instances/{sig_id}/applications/{application_id}"


@routes.get("/instances", Permission.POOL_READ)
def instances(
    context: InContext,
    caller: Caller,
    id: str | None = None,
    name: str | None = None,
    fields: str | None = None,
) -> list[dict[str, Any]]:
    """List instance groups, or one of them by its id or its name; `fields` says which of their fields."""
    wanted = [one for one in (id, name) if one is not None]
    found = [group for group in list_groups(context, caller) if all(group["id"] == one for one in wanted)]
    if not fields:
        return found
    names = {name.strip() for name in fields.split(",")} | {"id"}
    return [{name: value for name, value in group.items() if name in names} for group in found]


@routes.get("/instances/{sig_id}", Permission.POOL_READ)
def instance(context: InContext, caller: Caller, sig_id: str) -> dict[str, Any]:
    """Show an instance group."""
    return find_group(context, caller, sig_id)


@routes.post("/instances", Permission.POOL_WRITE)
def add(context: InContext, caller: Caller, body: InstanceGroupBody) -> str:
    """Make an instance group: a queue that takes no jobs before it is started; return its id."""
    asked = {"name": body.conductorinstancename, "open": False, **_queue_fields(context, body)}
    with name_fields({"name": NAME}):
        request = validate_body(QueueRequest, asked)
    return add_group(context, caller, request)


def _queue_fields(context: Context, body: InstanceGroupBody) -> Mapping[str, Any]:
    return queue_fields(body, [kept.noun.name for kept in context.control.queues.groups()])


@routes.put("/instances/{sig_id}", Permission.POOL_WRITE)
def change(context: InContext, caller: Caller, sig_id: str, body: InstanceGroupBody) -> dict[str, Any]:
    """Change an instance group: the resource group, the policy and the preemption of its queue."""
    if body.conductorinstancename not in (None, sig_id):
        message = f"{body.conductorinstancename!r:.60} is not {sig_id!r}; a group keeps its name, make another one"
        raise InvalidInput.at(NAME, message)
    change_group(context, caller, sig_id, validate_body(QueuePatch, dict(_queue_fields(context, body))).changes())
    return find_group(context, caller, sig_id)


@routes.put("/instances/{sig_id}/deploy", Permission.POOL_WRITE)
def deploy(context: InContext, caller: Caller, sig_id: str) -> dict[str, Any]:
    """Deploy an instance group: there is nothing to do but to say that it is ready."""
    found = find_group(context, caller, sig_id)
    deploy_group(context, found["id"])
    return find_group(context, caller, sig_id)


@routes.put("/instances/{sig_id}/start", Permission.POOL_WRITE)
def start(context: InContext, caller: Caller, sig_id: str) -> dict[str, Any]:
    """Start an instance group: its queue takes jobs."""
    change_group(context, caller, sig_id, {"open": True})
    deploy_group(context, sig_id)
    return find_group(context, caller, sig_id)


@routes.put("/instances/{sig_id}/stop", Permission.POOL_WRITE)
def stop(context: InContext, caller: Caller, sig_id: str) -> dict[str, Any]:
    """Stop an instance group: its queue takes no new jobs, and those that it has go on."""
    change_group(context, caller, sig_id, {"open": False})
    return find_group(context, caller, sig_id)


@routes.delete("/instances/{sig_id}", Permission.POOL_WRITE)
def remove(context: InContext, caller: Caller, sig_id: str) -> dict[str, Any]:
    """Remove an instance group whose jobs have all ended."""
    remove_group(context, caller, sig_id)
    return {"message": f"{sig_id} is deleted", "id": sig_id}


@routes.get("/instances/{sig_id}/applications", Permission.JOBS_READ)
def applications(
    context: InContext, caller: Caller, sig_id: str, state: str | None = None, applicationid: str | None = None
) -> list[dict[str, Any]]:
    """List the applications of an instance group."""
    name = find_group(context, caller, sig_id)["id"]
    found = (job for job in list_jobs_in_states(context, caller, state) if job.queue == name)
    shown = [describe(context, job) for job in found]
    return [one for one in shown if applicationid is None or one["applicationid"] == applicationid]


def _find_application(context: Context, caller: Principal, sig_id: str, name: str) -> Job:
    """Return the job of an application, or of its driver, of an instance group."""
    job = find_application(context, caller, name)
    if job.queue != find_group(context, caller, sig_id)["id"]:
        raise NotFound(f"the instance group {sig_id!r} has no application {name!r}")
    return job


@routes.get(_APPLICATION, Permission.JOBS_READ)
def application(context: InContext, caller: Caller, sig_id: str, application_id: str) -> dict[str, Any]:
    """Show an application by its id, or by its driver's."""
    return describe(context, _find_application(context, caller, sig_id, application_id))


@routes.put(_APPLICATION, Permission.JOBS_WRITE)
def change_application(
    context: InContext,
    caller: Caller,
    sig_id: str,
    application_id: str,
    body: ApplicationBody | None = None,
    priority: int | None = None,
) -> dict[str, Any]:
    """Change the priority of an application that waits or runs."""
    return change_priority(context, caller, _find_application(context, caller, sig_id, application_id), body, priority)


@routes.put(f"{_APPLICATION}/stop", Permission.JOBS_WRITE)
def stop_application(context: InContext, caller: Caller, sig_id: str, application_id: str) -> dict[str, Any]:
    """Stop an application at its next step boundary; one that has ended is 400."""
    return stop_job(context, caller, _find_application(context, caller, sig_id, application_id))


@routes.get(f"{_APPLICATION}/logs/{{kind}}", Permission.JOBS_READ, response_class=StreamingResponse)
@routes.get(f"{_APPLICATION}/logs/{{kind}}/download", Permission.JOBS_READ, response_class=StreamingResponse)
def driver_log(
    request: Request, context: InContext, caller: Caller, sig_id: str, application_id: str, kind: str
) -> StreamingResponse:
    """Return a log of the driver, to show or as a file."""
    job = _find_application(context, caller, sig_id, application_id)
    text = read_driver_log(context, job, kind, None)
    return logs.respond(text, file_name=_file_name(request, f"{exec_id(job.id)}.driver.{kind}"))


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
    return logs.respond(text, file_name=_file_name(request, f"{exec_id(job.id)}.executor.{kind}"))


def _file_name(request: Request, name: str) -> str | None:
    return name if request.scope["route"].path.endswith("/download") else None
