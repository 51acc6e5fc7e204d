"""Keeps request bodies small: they are read whole before a route sees them, and refused when they are too long.

The one route that takes an upload is let through; it counts while it streams.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.core.errors import TooLarge
from pliant.server.problems import problem_response

MAX_BODY_BYTES = 1 << 20


class BodyLimit:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, upload_path: str) -> None:
        self._app = app
        self._upload_path = upload_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"] == "POST" and scope["path"] == self._upload_path):
            await self._app(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if len(body) > MAX_BODY_BYTES:
                error = TooLarge(f"the body is longer than {MAX_BODY_BYTES >> 20} MiB; nothing here takes that much")
                await problem_response(error)(scope, receive, send)
                return
            if not message.get("more_body", False):
                break
        await self._app(scope, _replay(body, receive), send)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
