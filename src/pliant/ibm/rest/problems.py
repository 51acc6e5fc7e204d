"""Puts errors that no route of IBM's has raised into IBM's form: too long a body, a method that is not possible, a bug.

They come as problems of RFC 9457 out of the parts that all routes share.
"""

import json
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.ibm.rest.answers import AUTH, CONDUCTOR, DEEP_LEARNING, worded
from pliant.server.middleware.problems import MEDIA_TYPE

_PREFIXES: Final = (f"{DEEP_LEARNING}/", f"{CONDUCTOR}/", f"{AUTH}/")
_STATUS: Final = {409: 400, 412: 400, 422: 400}


class IbmForm:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_PREFIXES):
            await self._app(scope, receive, send)
            return
        status, body = 0, b""

        async def reworded(message: Message) -> None:
            nonlocal status, body
            if message["type"] == "http.response.start" and _is_problem(message):
                status = message["status"]
                return
            if not status:
                await send(message)
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                accepted = Headers(scope=scope).get("accept", "")
                answer = worded(_STATUS.get(status, status), str(json.loads(body)["detail"]), accepted)
                await answer(scope, receive, send)

        await self._app(scope, receive, reworded)


def _is_problem(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith(MEDIA_TYPE)
