"""The web application: routes, errors, limits, links and the OpenAPI page, put together. No decisions."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from pliant import __version__
from pliant.api.link import LINK_PATH
from pliant.api.serving_link import GATEWAY_PATH
from pliant.api.tunnel import INSIDE_PATH, TUNNELS_PATH
from pliant.core.errors import Unavailable
from pliant.server.audit_upkeep import keep_audit
from pliant.server.body import with_schemas
from pliant.server.console import pages
from pliant.server.context import Context
from pliant.server.endpoint_switch import switch_endpoint
from pliant.server.manual import manual
from pliant.server.middleware import problems
from pliant.server.middleware.audit import LOG_ON, AuditTrail
from pliant.server.middleware.authentication import SECURITY_SCHEMES, Authentication
from pliant.server.middleware.authorisation import Audience, OpenTo, declared_access
from pliant.server.middleware.forwarded import ForwardedRequests
from pliant.server.middleware.limits import BodyLimit
from pliant.server.middleware.packing import PackedAnswers
from pliant.server.middleware.places import HiddenPlaces
from pliant.server.middleware.refusals import RefusalCounts
from pliant.server.middleware.secure_headers import OF_DOCS, SecureHeaders
from pliant.server.routes import (
    algorithms,
    arrays,
    audit,
    bulk,
    datasets,
    endpoints,
    environments,
    events,
    found,
    histograms,
    job_files,
    jobs,
    logs,
    machines,
    models,
    monitoring,
    people,
    pool,
    predictions,
    previews,
    queues,
    searches,
    sessions,
    shares,
    slots,
    templates,
    trainings,
    tunnels,
    upkeep,
    usage,
)
from pliant.server.routing import Routes, declare
from pliant.server.site import Site

_DESCRIPTION = """Trainings that share one pool of slots, and grow and shrink while they run.

Every route but those to log on and to see how the server is needs credentials, one of: name and password as
`Authorization: Basic`; a token as `Authorization: Bearer TOKEN` or `X-Auth-Token: TOKEN`, which is that of a session
(`POST /v1/logon`), a personal token (`POST /v1/tokens`), or the one in the file `token` of the server's state folder.
The console has its session in a cookie, and sends `X-Pliant-Console: 1` with every change. What a caller may do, their
role decides (`GET /v1/me` lists it).

Errors are problems of RFC 9457 (`application/problem+json`) that name every wrong field at once. Times are seconds
since the epoch (UTC).
"""
_TAGS = [
    {"name": "jobs", "description": "Trainings: submit, watch, change, stop, fetch results."},
    {"name": "data", "description": "Data sets and uploads."},
    {"name": "logs", "description": "What the tasks of a job have printed."},
    {"name": "events", "description": "What happened, in words and numbers, as pages or as a live stream."},
    {"name": "pool", "description": "The slots, and who holds them."},
    {"name": "environments", "description": "What tasks run in: built from requirements, or made by somebody else."},
    {"name": "models", "description": "Templates, models, and their trainings."},
    {
        "name": "endpoints",
        "description": "Models that answer requests, on slots of the pool, as many as there is to do.",
    },
    {"name": "algorithms", "description": "Code of people's own that chooses the values of searches."},
    {"name": "searches", "description": "Many trainings of one script, to find the best values of its parameters."},
    {"name": "people", "description": "Logging on, users, personal tokens, and who did what."},
    {"name": "server", "description": "The server itself."},
]

_OWN = (
    bulk,
    jobs,
    histograms,
    job_files,
    usage,
    found,
    arrays,
    shares,
    tunnels,
    datasets,
    logs,
    events,
    pool,
    slots,
    queues,
    machines,
    searches,
    algorithms,
    templates,
    models,
    trainings,
    endpoints,
    predictions,
    environments,
    upkeep,
    sessions,
    people,
    audit,
)
"""The rooms of our own routes, in the order in which their paths are tried."""


class _Application(FastAPI):
    """One whose answers all have the secure headers, also those of an error that no route foresaw.

    What comes by a trusted proxy, or below a path, is to all of it a request as it was sent.
    """

    def build_middleware_stack(self) -> ASGIApp:
        return SecureHeaders(ForwardedRequests(super().build_middleware_stack(), self.state.site))


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherApi:
    """The routes of another API over the same use cases. The application takes them in without knowing them."""

    routes: tuple[Routes, ...]
    """In the order in which their paths are tried."""
    middleware: Callable[[ASGIApp], ASGIApp]
    """Puts problems into the form of this API."""


def make_app(context: Context, *others: OtherApi, site: Site | None = None) -> FastAPI:
    """Return the application over the use cases, with the routes of other APIs beside its own.

    `site` says where browsers find it; None: at the root of its own address.

    Raises:
        RuntimeError: a route does not say who may use it.
    """
    app = make_routes(*others)
    app.state.context = context
    app.state.site = site or Site()
    app.state.authentication = Authentication(people=context.people)
    app.add_middleware(BodyLimit)
    for other in others:
        app.add_middleware(other.middleware)
    app.state.refusals = RefusalCounts(LOG_ON)
    app.add_middleware(AuditTrail, audit=context.audit, clock=context.clock, refusals=app.state.refusals)
    app.add_middleware(HiddenPlaces, folders=(context.control.settings.home, context.datasets.data_root))
    app.add_middleware(PackedAnswers)  # outside of what reads the words of an answer
    problems.install(app)
    return app


def make_routes(*others: OtherApi) -> FastAPI:
    """Return an application that has all routes and their description, and nothing behind them.

    Raises:
        RuntimeError: a route does not say who may use it.
    """
    app = _Application(
        title="Pliant",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    every = (
        [room.routes for room in _OWN]
        + [previews.routes, previews.pool_routes, previews.search_routes]
        + [pool.health_routes, monitoring.routes]
        + [routes for other in others for routes in other.routes]
    )
    for routes in every:
        app.router.routes.extend(routes.router.routes)  # each is whole; including them would build every one again
    app.add_api_websocket_route(LINK_PATH, _link, dependencies=declare(Audience.TASK))
    app.add_api_websocket_route(GATEWAY_PATH, _gateway, dependencies=declare(Audience.GATEWAY))
    app.add_api_websocket_route(TUNNELS_PATH, _tunnel, dependencies=declare(Audience.TICKET))
    app.add_api_websocket_route(INSIDE_PATH, _tunnel_inside, dependencies=declare(Audience.SIDECAR))
    _add_manual(app)
    for routes in pages.routes:  # the last: they take what is nobody else's
        app.router.routes.extend(routes.router.routes)
    _describe(app)
    return app


def make_standby(leader: Callable[[], str | None]) -> ASGIApp:
    """Return the application of a server that stands by: whatever it is asked, it says so.

    `leader` returns the URL of the server that leads, None if that is not known.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        url = leader()
        where = f"ask {url}" if url is not None else "ask that one"
        response = problems.problem_response(Unavailable(f"this server stands by while another one leads; {where}"))
        await response(scope, receive, send)

    return SecureHeaders(app)


async def _link(websocket: WebSocket) -> None:
    context: Context = websocket.app.state.context
    await context.links.serve(websocket, context.control)


async def _gateway(websocket: WebSocket) -> None:
    context: Context = websocket.app.state.context
    switch = partial(switch_endpoint, websocket.app)
    await context.gateways.serve(websocket, context.people.authenticator, switch)


async def _tunnel(websocket: WebSocket, tunnel_id: str) -> None:
    context: Context = websocket.app.state.context
    await context.tunnels.serve_outside(websocket, tunnel_id)


async def _tunnel_inside(websocket: WebSocket, tunnel_id: str) -> None:
    context: Context = websocket.app.state.context
    await context.tunnels.serve_inside(websocket, tunnel_id)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    context: Context = app.state.context
    loop = asyncio.get_running_loop()
    context.event_signal.attach(loop)
    context.links.attach(loop)
    context.tunnels.attach(loop)
    context.gateways.attach(loop)
    unsubscribe = context.control.subscribe(context.event_signal.notify)
    unsubscribe_nouns = context.registry.subscribe(context.event_signal.notify)
    unsubscribe_gateways = context.people.changes.subscribe(context.gateways.forget)
    running = [
        asyncio.create_task(context.links.listen(context.control)),
        asyncio.create_task(context.gateways.listen(context.serving)),
        asyncio.create_task(keep_audit(context, app.state.refusals)),
    ]
    yield
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    unsubscribe()
    unsubscribe_nouns()
    unsubscribe_gateways()


def _add_manual(app: FastAPI) -> None:
    """Show the description of the routes as a page, which is made when somebody asks for it first."""
    routes = Routes("", include_in_schema=False)

    @cache
    def page() -> str:
        return manual(app.openapi())

    @routes.get("/docs", Audience.EVERYBODY, response_class=HTMLResponse)
    def docs() -> HTMLResponse:
        return HTMLResponse(page(), headers=dict(OF_DOCS))

    app.router.routes.extend(routes.router.routes)


def _without_converters(path: str) -> str:
    """Return a path as OpenAPI writes it: `/files/{path:path}` is `/files/{path}`."""
    return re.sub(r":\w+}", "}", path)


def _describe(app: FastAPI) -> None:
    """Say in the OpenAPI page what FastAPI has no word for: bodies that it does not read, problems, open routes."""
    access = {(method, _without_converters(path)): needs for (method, path), needs in declared_access(app).items()}

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            for route in app.routes:
                if isinstance(route, APIRoute):
                    route.openapi_extra = with_schemas(route.openapi_extra)
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
                separate_input_output_schemas=False,
            )
            components = schema.setdefault("components", {})
            components["securitySchemes"] = SECURITY_SCHEMES
            components["schemas"] = dict(sorted((components.get("schemas", {}) | problems.describe_problem()).items()))
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    if not isinstance(access[method.upper(), path], OpenTo):
                        operation["security"] = [{scheme: []} for scheme in SECURITY_SCHEMES]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
