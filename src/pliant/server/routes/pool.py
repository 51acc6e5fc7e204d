"""The pool of slots: who holds what, now and over time; the server's health and its end."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from pliant import __version__
from pliant.api.overview import Overview
from pliant.api.pool import ClusterView, UsagePage
from pliant.core.access import Permission
from pliant.core.errors import Unavailable
from pliant.server.context import InContext, InControl
from pliant.server.middleware.authorisation import Audience, Caller
from pliant.server.overview import overview_of
from pliant.server.routing import Routes
from pliant.server.visibility import Seen

routes = Routes(tags=["pool"])
health_routes = Routes(tags=["server"])


class Status(BaseModel):
    """How the server is."""

    status: str
    version: str = __version__
    tick_age_s: float | None = None
    """Seconds since the control loop last looked at everything; it does so once a second at least."""


@routes.get("/cluster", Permission.POOL_READ, "Show the pool")
def cluster(control: InControl, visible: Seen) -> ClusterView:
    """Return every slot and who holds it; the jobs only of those that the caller may see."""
    return control.queries.cluster(visible)


@routes.get("/overview", Permission.JOBS_READ, "Show all at a glance")
def overview(context: InContext, caller: Caller, visible: Seen) -> Overview:
    """Return what runs, what waits and why, the newest events and the machines, as far as the caller sees them."""
    return overview_of(context, caller, visible)


@routes.get("/usage", Permission.JOBS_READ, "Slots over time", 404)
def usage(
    control: InControl,
    visible: Seen,
    since: Annotated[float, Query(ge=0, allow_inf_nan=False, description="Seconds since the epoch (UTC).")] = 0.0,
    job_id: Annotated[str | None, Query(description="Only this job.")] = None,
) -> UsagePage:
    """Return the steps of slots(job, time) of the caller's jobs, with each job's last step before `since`."""
    return control.queries.usage(since, job_id, visible)


@routes.post("/shutdown", Permission.SERVER_WRITE, "Drain and end the server", status_code=202, tags=["server"])
def shutdown(context: InContext) -> Status:
    """Save and pause all jobs at a step boundary, then end the server; they go on when it is started again."""
    context.shut_down()
    return Status(status="the server saves all jobs and ends")


@health_routes.get("/healthz", Audience.EVERYBODY, "Is the server well", 503)
async def health(control: InControl, context: InContext) -> Status:
    """Answer 200 while the control loop ticks, and agent and zygote answer; needs no token."""
    if not control.is_healthy():
        raise Unavailable("the control loop has not ticked for a while; see the server's log, restart it if need be")
    if trouble := context.trouble():
        raise Unavailable(trouble)
    return Status(status="ok", tick_age_s=control.tick_age_s())
