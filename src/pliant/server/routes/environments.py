"""Environments: register, list, show, share, build anew, remove; and what the builder printed."""

from collections.abc import Collection
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

from pliant.api.environments import EnvironmentPage, EnvironmentRequest, EnvironmentShares, EnvironmentView
from pliant.core.job import Job
from pliant.server.context import Context, InContext
from pliant.server.etag import IfMatch, revision_of, tagged
from pliant.server.middleware.access import PREFIX, Caller
from pliant.server.middleware.problems import responses

router = APIRouter(prefix=PREFIX, tags=["environments"])


@router.get("/environments", summary="List environments", responses=responses())
def environments(
    context: InContext,
    caller: Caller,
    after: Annotated[str, Query(max_length=200, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> EnvironmentPage:
    """Return the environments that the caller may use, in the order of their names."""
    return context.environments.page(caller, after, limit)


@router.post("/environments", status_code=201, summary="Register an environment", responses=responses(409, 413, 503))
def register(context: InContext, caller: Caller, request: EnvironmentRequest, response: Response) -> EnvironmentView:
    """Register requirements, a virtual environment or one of conda's under a name, and begin to build or to try it."""
    return tagged(context.environments.add(request, caller), response)


@router.get("/environments/{name}", summary="Show an environment", responses=responses(404))
def show(context: InContext, caller: Caller, name: str, response: Response) -> EnvironmentView:
    """Return an environment and what became of it."""
    return tagged(context.environments.show(name, caller), response)


@router.put("/environments/{name}/shares", summary="Share an environment", responses=responses(403, 404, 412))
def share(
    context: InContext,
    caller: Caller,
    name: str,
    request: EnvironmentShares,
    response: Response,
    if_match: IfMatch = None,
) -> EnvironmentView:
    """Let these people use it for their jobs, and nobody else; they cannot change it."""
    view = context.environments.share(name, request.shared_with, revision_of(if_match), caller)
    return tagged(view, response)


@router.post(
    "/environments/{name}/rebuild",
    status_code=202,
    summary="Build or try an environment anew",
    responses=responses(403, 404, 409, 503),
)
def rebuild(context: InContext, caller: Caller, name: str, response: Response) -> EnvironmentView:
    """Begin to build anew; refused while a job uses it."""
    return tagged(context.environments.rebuild(name, caller, _unended(context)), response)


@router.delete(
    "/environments/{name}", status_code=204, summary="Remove an environment", responses=responses(403, 404, 409, 412)
)
def remove(context: InContext, caller: Caller, name: str, if_match: IfMatch = None) -> None:
    """Forget an environment, and remove what was built for it; refused while a job uses it."""
    context.environments.remove(name, revision_of(if_match), caller, _unended(context))


@router.get(
    "/environments/{name}/log",
    summary="What the builder printed",
    response_class=PlainTextResponse,
    responses=responses(404),
)
def log(context: InContext, caller: Caller, name: str) -> str:
    """Return the log of the newest build, its last megabyte at most, or what an interpreter said that was tried."""
    return context.environments.log(name, caller)


def _unended(context: Context) -> Collection[Job]:
    return [live.job for live in context.control.jobs().values() if not live.job.ended]
