"""The web application: routes, errors, limits, links and the OpenAPI page, put together. No decisions."""

import asyncio
from collections import ChainMap
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.websockets import WebSocket

from pliant import __version__
from pliant.api.link import LINK_PATH
from pliant.server.context import Context
from pliant.server.edge import Edge
from pliant.server.middleware import problems
from pliant.server.middleware.access import NEEDED, OPEN, Route, allowed
from pliant.server.middleware.audit import AuditTrail
from pliant.server.middleware.auth import SECURITY_SCHEMES, Door
from pliant.server.middleware.limits import BodyLimit
from pliant.server.middleware.nul import without_nul
from pliant.server.routes import (
    audit,
    datasets,
    environments,
    events,
    jobs,
    logs,
    models,
    people,
    pool,
    queues,
    shares,
    templates,
    upkeep,
)

_DESCRIPTION = """Trainings that share one pool of slots, and grow and shrink while they run.

Every route but those to log on and to see how the server is needs credentials, one of: name and password as
`Authorization: Basic`; a token as `Authorization: Bearer TOKEN` or `X-Auth-Token: TOKEN`, which is that of a session
(`POST /v1/logon`), a personal token (`POST /v1/tokens`), or the one in the file `token` of the server's state folder.
What a caller may do, their role decides (`GET /v1/me` lists it).

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
    {"name": "people", "description": "Logging on, users, personal tokens, and who did what."},
    {"name": "server", "description": "The server itself."},
]


def make_app(context: Context, *edges: Edge) -> FastAPI:
    """Return the application over the use cases, with the routes of other APIs beside its own."""
    app = FastAPI(
        title="Pliant",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        lifespan=_lifespan,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.context = context
    app.state.permissions = dict(ChainMap(*({**edge.needed} for edge in edges), {**NEEDED}))
    app.state.door = Door(people=context.people)
    for routes in (
        jobs,
        shares,
        datasets,
        logs,
        events,
        pool,
        queues,
        templates,
        models,
        environments,
        upkeep,
        people,
        audit,
    ):
        app.include_router(routes.router, dependencies=[Depends(allowed), Depends(without_nul)])
    for open_router in (pool.health_router, people.logon_router):
        app.include_router(open_router)
    for edge in edges:
        for open_router in edge.open_routers:
            app.include_router(open_router)
        for router in edge.routers:
            app.include_router(router, dependencies=[Depends(edge.allowed), Depends(without_nul)])
    app.add_api_websocket_route(LINK_PATH, _link)
    app.add_middleware(BodyLimit)
    for edge in edges:
        app.add_middleware(edge.form)
    app.add_middleware(AuditTrail, audit=context.audit, clock=context.clock)
    problems.install(app)
    _describe(app, OPEN.union(*(edge.open_routes for edge in edges)))
    return app


async def _link(websocket: WebSocket) -> None:
    context: Context = websocket.app.state.context
    await context.links.serve(websocket, context.control)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    context: Context = app.state.context
    loop = asyncio.get_running_loop()
    context.bell.attach(loop)
    context.links.attach(loop)
    unsubscribe = context.control.subscribe(context.bell.ring)
    listening = asyncio.create_task(context.links.listen(context.control))
    yield
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    unsubscribe()


def _describe(app: FastAPI, open_routes: Set[Route]) -> None:
    """Say in the OpenAPI page what FastAPI has no word for: the media type of problems, and who gets in where."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
                separate_input_output_schemas=False,
            )
            schema.setdefault("components", {})["securitySchemes"] = SECURITY_SCHEMES
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    if (method.upper(), path) not in open_routes:
                        operation["security"] = [{scheme: []} for scheme in SECURITY_SCHEMES]
                    for status, response in operation["responses"].items():
                        if int(status) >= 400:
                            (described,) = response["content"].values()
                            response["content"] = {problems.MEDIA_TYPE: described}
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
