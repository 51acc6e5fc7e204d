"""The web application: routes, errors, limits, links and the OpenAPI page, put together. No decisions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.websockets import WebSocket

from pliant import __version__
from pliant.server import problems
from pliant.server.auth import require_token
from pliant.server.context import Context
from pliant.server.limits import BodyLimit
from pliant.server.routes import events, jobs, logs, pool
from pliant.wire.link import LINK_PATH

PREFIX = "/v1"
_DESCRIPTION = """Trainings that share one pool of slots, and grow and shrink while they run.

Every route but `/v1/healthz` needs `Authorization: Bearer TOKEN`; the token is in the file `token` of the server's
state folder. Errors are problems of RFC 9457 (`application/problem+json`) that name every wrong field at once.
Times are seconds since the epoch (UTC).
"""
_TAGS = [
    {"name": "jobs", "description": "Trainings: submit, watch, change, stop, fetch results."},
    {"name": "logs", "description": "What the tasks of a job have printed."},
    {"name": "events", "description": "What happened, in words and numbers, as pages or as a live stream."},
    {"name": "pool", "description": "The slots, and who holds them."},
    {"name": "server", "description": "The server itself."},
]


def make_app(context: Context, *, token: str) -> FastAPI:
    """Return the application over a control room; `token` opens its routes."""
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
    app.state.token = token
    for routes in (jobs, logs, events, pool):
        app.include_router(routes.router, prefix=PREFIX, dependencies=[Depends(require_token)])
    app.include_router(pool.health_router, prefix=PREFIX)
    app.add_api_websocket_route(LINK_PATH, _link)
    app.add_middleware(BodyLimit, upload_path=f"{PREFIX}/jobs")
    problems.install(app)
    _describe_problems(app)
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
    yield
    unsubscribe()


def _describe_problems(app: FastAPI) -> None:
    """Say in the OpenAPI page that errors are of the problem media type, which FastAPI has no word for."""

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
            for path in schema["paths"].values():
                for operation in path.values():
                    for status, response in operation["responses"].items():
                        if int(status) >= 400:
                            (described,) = response["content"].values()
                            response["content"] = {problems.MEDIA_TYPE: described}
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
