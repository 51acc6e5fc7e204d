"""An edge: the routes of another API over the same use cases, as the application takes them in. It knows none."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.types import ASGIApp

from pliant.core.access import Permission
from pliant.server.middleware.access import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The routes of another API."""

    open_routers: tuple[APIRouter, ...]
    """Need no credentials but those that they ask for themselves."""
    routers: tuple[APIRouter, ...]
    allowed: Callable[..., Any]
    """The dependency that lets in who may use a route of `routers`."""
    open_routes: Set[Route]
    needed: Mapping[Route, Permission]
    """What each route of `routers` needs."""
    form: Callable[[ASGIApp], ASGIApp]
    """Middleware that puts problems into the form of this API."""
