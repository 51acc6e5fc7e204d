"""Authorisation: who may use a route is said where the route is declared, and is checked before anything else.

A route either needs a permission (`Needs`) or is open (`OpenTo`). Both are dependencies of the route, so the check runs
before the route's own parameters are looked up, and `declared_access` can read them again from the application.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute

from pliant.core.access import Permission, Principal
from pliant.core.errors import Forbidden
from pliant.server.middleware.authentication import authenticate_caller

Route = tuple[str, str]
"""A method and a path as it is written in the router, with its prefix."""

Caller = Annotated[Principal, Depends(authenticate_caller)]
"""Who asks. Every route that needs a permission has checked it before it sees them."""


class Audience(StrEnum):
    """Who may use a route that needs no permission: those who have this."""

    EVERYBODY = "nothing"
    PASSWORD = "name and password"
    """The route checks them itself, and takes nothing in their place."""
    CODE = "the code of a one-time link"
    TASK = "a proof of the token of the task's job"
    TICKET = "the ticket of the tunnel"
    SIDECAR = "a proof of the key of the tunnel"
    GATEWAY = "a proof of the gateway's key"


@dataclass(frozen=True)
class OpenTo:
    """The dependency of a route that needs no permission."""

    audience: Audience

    async def __call__(self) -> None:
        """Let everybody pass."""


@dataclass(frozen=True)
class Needs:
    """The dependency of a route that needs a permission."""

    permission: Permission

    async def __call__(self, request: Request, caller: Caller) -> None:
        """Refuse whoever lacks the permission.

        Raises:
            Unauthorized, TooMany: the caller is not authenticated.
            Forbidden: they lack it.
        """
        authorise(request, caller)


Access = Needs | OpenTo


def authorise(request: Request, caller: Principal) -> None:
    """Refuse a caller who lacks the permission of the route that was asked for.

    Raises:
        Forbidden: they lack it.
    """
    needed = _access_of(request.scope["route"])
    assert isinstance(needed, Needs), "only a route that needs a permission authorises"
    if not caller.may(needed.permission):
        raise Forbidden(_refusal(caller, needed.permission, f"{request.method} {request.scope['route'].path}"))


def _refusal(caller: Principal, needed: Permission, what: str) -> str:
    if caller.scopes is not None and needed not in caller.scopes:
        has = ", ".join(sorted(caller.scopes)) or "none"
        return f"{what} needs the scope {needed.value!r}, which the token lacks (it has {has}); use another token"
    return f"{what} needs {needed.value!r}, which a {caller.role.value} does not have; ask an administrator"


def declared_access(app: FastAPI) -> dict[Route, Access]:
    """Return who may use each route of an application, in the order in which the routes are tried.

    Raises:
        RuntimeError: a route does not say it, or says it twice.
    """
    documentation = {app.openapi_url}
    found: dict[Route, Access] = {}
    for context in iter_route_contexts(app.routes):
        path = context.path or "?"
        is_documentation = path in documentation and not hasattr(context.route, "dependencies")
        access = OpenTo(Audience.EVERYBODY) if is_documentation else _access_of(context.original_route)
        for method in sorted(context.methods or {"WEBSOCKET"}):
            if access is None:
                raise RuntimeError(f"{method} {path} does not say who may use it; declare it with `Routes`")
            if not (is_documentation and method == "HEAD"):
                found.setdefault((method, path), access)
    return found


def _access_of(route: BaseRoute) -> Access | None:
    """Return what a route declares; None unless it is exactly one thing."""
    declared = [one.dependency for one in getattr(route, "dependencies", ())]
    found = [one for one in declared if isinstance(one, Needs | OpenTo)]
    return found[0] if len(found) == 1 else None


def table_rows(app: FastAPI) -> Iterator[str]:
    """Yield the table of all routes in Markdown, for auditors."""
    yield "| route | needs |"
    yield "|---|---|"
    for (method, path), access in sorted(declared_access(app).items(), key=lambda item: item[0][::-1]):
        needed = f"`{access.permission}`" if isinstance(access, Needs) else access.audience
        yield f"| `{method} {path}` | {needed} |"
