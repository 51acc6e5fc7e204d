"""Keeps request bodies small: they are read whole before a route sees them, and refused when they are too long.

Requests to the routes that take an upload pass; those routes count while they stream.
"""

import re
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.core.errors import TooLarge
from pliant.server.middleware.problems import problem_response

MAX_BODY_BYTES = 1 << 20
_MAX_WASTE_BYTES: Final = 64 << 20

UPLOADS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"POST /v1/jobs",
        r"PUT /v1/uploads/[^/]+",
        r"POST /v1/templates",
        r"PUT /v1/templates/[^/]+",
        r"POST /v1/models/[^/]+/trainings",
        r"POST /v1/endpoints/[^/]+/versions",
        r"POST /v1/endpoints/[^/]+/predict",
        r"POST /platform/rest/deeplearning/v1/execs/?",
        r"POST /platform/rest/deeplearning/v1/models/weightfile",
        r"POST /dlim/v1/deployment/model(/[^/]+)?",
        r"POST /dlim/v1/inference/[^/]+",
    )
)
"""Methods and paths of requests that count their bytes themselves."""


class BodyLimit:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_upload(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if len(body) > MAX_BODY_BYTES:
                await _drain(message, receive)
                error = TooLarge(f"the body is longer than {MAX_BODY_BYTES >> 20} MiB; nothing here takes that much")
                await problem_response(error)(scope, receive, send)
                return
            if not message.get("more_body", False):
                break
        await self._app(scope, _replay(body, receive), send)


async def _drain(message: Message, receive: Receive) -> None:
    """Read on for a while and throw away, so that the sender gets to read the answer."""
    num_bytes = 0
    while message.get("more_body", False) and num_bytes < _MAX_WASTE_BYTES:
        message = await receive()
        num_bytes += len(message.get("body", b""))


def is_upload(method: str, path: str) -> bool:
    """Tell whether a request may have a long body."""
    return any(pattern.fullmatch(f"{method} {path}") for pattern in UPLOADS)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
