"""Environments: register, list, show, share, build anew, remove; and what the builder printed."""

from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import PlainTextResponse

from pliant.api.environments import EnvironmentPage, EnvironmentRequest, EnvironmentShares
from pliant.core.access import Permission
from pliant.core.environment import EnvironmentView
from pliant.server.context import InContext
from pliant.server.environment_users import searches_in, tuning_in, unended_jobs
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes

routes = Routes(tags=["environments"])


@routes.get("/environments", Permission.MODELS_READ, "List environments")
def environments(
    context: InContext,
    caller: Caller,
    after: Annotated[str, Query(max_length=200, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> EnvironmentPage:
    """Return the environments that the caller may use, in the order of their names."""
    page, following = context.environments.page(caller, after, limit)
    return EnvironmentPage(environments=page, next=following)


@routes.post("/environments", Permission.MODELS_WRITE, "Register an environment", 409, 413, 503, status_code=201)
def register(context: InContext, caller: Caller, request: EnvironmentRequest, response: Response) -> EnvironmentView:
    """Register requirements, a virtual environment or one of conda's under a name, and begin to build or to try it."""
    return with_etag(context.environments.add(request.noun(caller.name), caller), response)


@routes.get("/environments/{name}", Permission.MODELS_READ, "Show an environment", 404)
def show(context: InContext, caller: Caller, name: str, response: Response) -> EnvironmentView:
    """Return an environment and what became of it."""
    return with_etag(context.environments.show(name, caller), response)


@routes.put("/environments/{name}/shares", Permission.MODELS_WRITE, "Share an environment", 403, 404, 412)
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
    return with_etag(view, response)


@routes.post(
    "/environments/{name}/rebuild",
    Permission.MODELS_WRITE,
    "Build or try an environment anew",
    403,
    404,
    409,
    503,
    status_code=202,
)
def rebuild(context: InContext, caller: Caller, name: str, response: Response) -> EnvironmentView:
    """Begin to build anew; refused while a job or a search uses it."""
    jobs, searches = unended_jobs(context), searches_in(context, name)
    return with_etag(context.environments.rebuild(name, caller, jobs, searches), response)


@routes.delete(
    "/environments/{name}", Permission.MODELS_WRITE, "Remove an environment", 403, 404, 409, 412, status_code=204
)
def remove(context: InContext, caller: Caller, name: str, if_match: IfMatch = None) -> None:
    """Forget an environment, and remove what was built for it; refused while a job, algorithm or search uses it."""
    jobs, others = unended_jobs(context), tuning_in(context, name)
    context.environments.remove(name, revision_of(if_match), caller, jobs, others)


@routes.get(
    "/environments/{name}/log",
    Permission.MODELS_READ,
    "What the builder printed",
    404,
    response_class=PlainTextResponse,
)
def log(context: InContext, caller: Caller, name: str) -> str:
    """Return the log of the newest build, its last megabyte at most, or what an interpreter said that was tried."""
    return context.environments.log(name, caller)
