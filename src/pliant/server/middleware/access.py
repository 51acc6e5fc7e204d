"""The allow-list of routes, and the one place that checks it. A route that is not listed is open to nobody."""

from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import Depends, Request

from pliant.core.access import Permission, Principal
from pliant.core.errors import Forbidden
from pliant.server.middleware.auth import InPrincipal

PREFIX: Final = "/v1"
"""Of Pliant's own routes. Every router carries its prefix itself, so that a route knows its whole path."""

Route = tuple[str, str]
"""A method and a path as it is written in the router, with its prefix."""

OPEN: Final[frozenset[Route]] = frozenset(
    {
        ("GET", "/v1/healthz"),
        ("POST", "/v1/logon"),
        ("GET", "/docs"),
        ("GET", "/docs/oauth2-redirect"),
        ("GET", "/openapi.json"),
    }
)
"""Routes of Pliant's own API that need no credentials."""

NEEDED: Final[Mapping[Route, Permission]] = {
    ("POST", "/v1/logoff"): Permission.SELF,
    ("GET", "/v1/me"): Permission.SELF,
    ("PUT", "/v1/me/password"): Permission.SELF,
    ("GET", "/v1/tokens"): Permission.SELF,
    ("POST", "/v1/tokens"): Permission.SELF,
    ("DELETE", "/v1/tokens/{token_id}"): Permission.SELF,
    ("GET", "/v1/users"): Permission.USERS_WRITE,
    ("POST", "/v1/users"): Permission.USERS_WRITE,
    ("GET", "/v1/users/{name}"): Permission.USERS_WRITE,
    ("PATCH", "/v1/users/{name}"): Permission.USERS_WRITE,
    ("DELETE", "/v1/users/{name}"): Permission.USERS_WRITE,
    ("GET", "/v1/audit"): Permission.AUDIT_READ,
    ("POST", "/v1/jobs"): Permission.JOBS_WRITE,
    ("GET", "/v1/jobs"): Permission.JOBS_READ,
    ("GET", "/v1/jobs/{job_id}"): Permission.JOBS_READ,
    ("PATCH", "/v1/jobs/{job_id}"): Permission.JOBS_WRITE,
    ("POST", "/v1/jobs/{job_id}/stop"): Permission.JOBS_WRITE,
    ("GET", "/v1/jobs/{job_id}/why"): Permission.JOBS_READ,
    ("GET", "/v1/jobs/{job_id}/metrics"): Permission.JOBS_READ,
    ("GET", "/v1/jobs/{job_id}/chart"): Permission.JOBS_READ,
    ("GET", "/v1/jobs/{job_id}/logs"): Permission.JOBS_READ,
    ("GET", "/v1/jobs/{job_id}/logs/{task_id}/{stream}"): Permission.JOBS_READ,
    ("GET", "/v1/jobs/{job_id}/result"): Permission.JOBS_READ,
    ("GET", "/v1/jobs/{job_id}/shares"): Permission.JOBS_READ,
    ("PUT", "/v1/jobs/{job_id}/shares"): Permission.JOBS_WRITE,
    ("GET", "/v1/environments"): Permission.MODELS_READ,
    ("POST", "/v1/environments"): Permission.MODELS_WRITE,
    ("GET", "/v1/environments/{name}"): Permission.MODELS_READ,
    ("DELETE", "/v1/environments/{name}"): Permission.MODELS_WRITE,
    ("PUT", "/v1/environments/{name}/shares"): Permission.MODELS_WRITE,
    ("POST", "/v1/environments/{name}/rebuild"): Permission.MODELS_WRITE,
    ("GET", "/v1/environments/{name}/log"): Permission.MODELS_READ,
    ("GET", "/v1/datasets"): Permission.DATA_READ,
    ("POST", "/v1/datasets"): Permission.DATA_WRITE,
    ("GET", "/v1/datasets/{name}"): Permission.DATA_READ,
    ("PATCH", "/v1/datasets/{name}"): Permission.DATA_WRITE,
    ("DELETE", "/v1/datasets/{name}"): Permission.DATA_WRITE,
    ("POST", "/v1/datasets/{name}/stop"): Permission.DATA_WRITE,
    ("GET", "/v1/uploads"): Permission.DATA_WRITE,
    ("POST", "/v1/uploads"): Permission.DATA_WRITE,
    ("GET", "/v1/uploads/{upload_id}"): Permission.DATA_WRITE,
    ("PUT", "/v1/uploads/{upload_id}"): Permission.DATA_WRITE,
    ("DELETE", "/v1/uploads/{upload_id}"): Permission.DATA_WRITE,
    ("GET", "/v1/templates"): Permission.MODELS_READ,
    ("POST", "/v1/templates"): Permission.MODELS_WRITE,
    ("GET", "/v1/templates/{name}"): Permission.MODELS_READ,
    ("PUT", "/v1/templates/{name}"): Permission.MODELS_WRITE,
    ("DELETE", "/v1/templates/{name}"): Permission.MODELS_WRITE,
    ("GET", "/v1/templates/{name}/files"): Permission.MODELS_READ,
    ("GET", "/v1/models"): Permission.MODELS_READ,
    ("POST", "/v1/models"): Permission.MODELS_WRITE,
    ("GET", "/v1/models/{name}"): Permission.MODELS_READ,
    ("PATCH", "/v1/models/{name}"): Permission.MODELS_WRITE,
    ("DELETE", "/v1/models/{name}"): Permission.MODELS_WRITE,
    ("GET", "/v1/models/{name}/trainings"): Permission.MODELS_READ,
    ("POST", "/v1/models/{name}/trainings"): Permission.MODELS_WRITE,
    ("GET", "/v1/models/{name}/trainings/{training}"): Permission.MODELS_READ,
    ("DELETE", "/v1/models/{name}/trainings/{training}"): Permission.MODELS_WRITE,
    ("POST", "/v1/models/{name}/trainings/{training}/stop"): Permission.MODELS_WRITE,
    ("GET", "/v1/models/{name}/trainings/{training}/weights"): Permission.MODELS_READ,
    ("GET", "/v1/models/{name}/trainings/{training}/code"): Permission.MODELS_READ,
    ("GET", "/v1/events"): Permission.JOBS_READ,
    ("GET", "/v1/events/stream"): Permission.JOBS_READ,
    ("GET", "/v1/usage"): Permission.JOBS_READ,
    ("GET", "/v1/cluster"): Permission.POOL_READ,
    ("GET", "/v1/queues"): Permission.POOL_READ,
    ("POST", "/v1/queues"): Permission.POOL_WRITE,
    ("GET", "/v1/queues/{name}"): Permission.POOL_READ,
    ("PATCH", "/v1/queues/{name}"): Permission.POOL_WRITE,
    ("DELETE", "/v1/queues/{name}"): Permission.POOL_WRITE,
    ("GET", "/v1/resource-groups"): Permission.POOL_READ,
    ("POST", "/v1/resource-groups"): Permission.POOL_WRITE,
    ("GET", "/v1/resource-groups/{name}"): Permission.POOL_READ,
    ("PATCH", "/v1/resource-groups/{name}"): Permission.POOL_WRITE,
    ("DELETE", "/v1/resource-groups/{name}"): Permission.POOL_WRITE,
    ("GET", "/v1/retention"): Permission.POOL_READ,
    ("PUT", "/v1/retention"): Permission.SERVER_WRITE,
    ("POST", "/v1/cleanup"): Permission.SERVER_WRITE,
    ("GET", "/v1/backup"): Permission.BACKUP,
    ("POST", "/v1/shutdown"): Permission.SERVER_WRITE,
}
"""What every other route of it needs."""


async def allowed(request: Request, principal: InPrincipal) -> Principal:
    """Let in who may use the route that was asked for.

    Raises:
        Forbidden: they may not.
    """
    return let_in(request, principal)


def let_in(request: Request, principal: Principal) -> Principal:
    """Return who asks, if they may use the route that was asked for.

    Raises:
        Forbidden: they may not.
    """
    method, path = request.method, request.scope["route"].path
    permissions: Mapping[Route, Permission] = request.app.state.permissions
    needed = permissions.get(("GET" if method == "HEAD" else method, path))
    if needed is None or not principal.may(needed):
        raise Forbidden(_refusal(principal, needed, f"{method} {path}"))
    return principal


def _refusal(principal: Principal, needed: Permission | None, what: str) -> str:
    if needed is None:
        return f"{what} is open to nobody"
    if principal.scopes is not None and needed not in principal.scopes:
        has = ", ".join(sorted(principal.scopes)) or "none"
        return f"{what} needs the scope {needed.value!r}, which the token lacks (it has {has}); use another token"
    return f"{what} needs {needed.value!r}, which a {principal.role.value} does not have; ask an administrator"


Caller = Annotated[Principal, Depends(allowed)]
"""Who asks, already let in. Every route but the open ones takes or depends on it."""
