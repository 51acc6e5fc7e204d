"""The pool of slots: who holds what, now and over time; the server's health and its end."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from pliant import __version__
from pliant.core.errors import Unavailable
from pliant.server.context import InContext, InControl
from pliant.server.problems import responses
from pliant.wire.api import ClusterView, UsagePage

router = APIRouter(tags=["pool"])
health_router = APIRouter(tags=["server"])


class Status(BaseModel):
    """How the server is."""

    status: str
    version: str = __version__


@router.get("/cluster", summary="Show the pool", responses=responses())
def cluster(control: InControl) -> ClusterView:
    """Return every slot and who holds it."""
    return control.queries.cluster()


@router.get("/usage", summary="Slots over time", responses=responses(404))
def usage(
    control: InControl,
    since: Annotated[float, Query(ge=0, allow_inf_nan=False, description="Seconds since the epoch (UTC).")] = 0.0,
    job_id: Annotated[str | None, Query(description="Only this job.")] = None,
) -> UsagePage:
    """Return the steps of slots(job, time), with each job's last step before `since`."""
    return control.queries.usage(since, job_id)


@router.post("/shutdown", status_code=202, summary="Drain and end the server", responses=responses(), tags=["server"])
def shutdown(context: InContext) -> Status:
    """Save and pause all jobs at a step boundary, then end the server; they go on when it is started again."""
    context.shut_down()
    return Status(status="the server saves all jobs and ends")


@health_router.get("/healthz", summary="Is the server well", responses={503: responses(503)[503]})
async def health(control: InControl) -> Status:
    """Answer 200 while the control loop ticks; needs no token."""
    if not control.healthy():
        raise Unavailable("the control loop has not ticked for a while; see the server's log, restart it if need be")
    return Status(status="ok")
