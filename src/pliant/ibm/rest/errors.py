"""Errors in IBM's form: as text, or as JSON for clients that ask for that, with IBM's statuses.

A wrong submission, or one thing done twice, is 400 there, where Pliant's own routes have 422 and 409.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NoSpace,
    NotFound,
    PliantError,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
)
from pliant.ibm.rest.wording import reword
from pliant.server.middleware.problems import MEDIA_TYPE

log = logging.getLogger(__name__)

DEEP_LEARNING: Final = "/platform/rest/deeplearning/v1"
CONDUCTOR: Final = "/platform/rest/conductor/v1"
AUTH: Final = "/auth/v1"
DLIM: Final = "/dlim/v1"
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
_PREFIXES: Final = (f"{DEEP_LEARNING}/", f"{CONDUCTOR}/", f"{AUTH}/", f"{DLIM}/")


class NotSupported(PliantError):
    """A route of IBM's that has no meaning here, or not yet."""


_STATUS: Final[Sequence[tuple[type[PliantError], int]]] = (
    (NotSupported, 501),
    (InvalidInput, 400),
    (Unauthorized, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 400),
    (TooLarge, 413),
    (TooMany, 429),
    (NoSpace, 507),
    (Unavailable, 503),
)
_STATUS_OF_PROBLEM: Final = {409: 400, 412: 400, 422: 400}


@contextmanager
def name_fields(names: Mapping[str, str]) -> Iterator[None]:
    """Say what is wrong with an input by IBM's names of its fields; one without a name keeps Pliant's."""
    try:
        yield
    except InvalidInput as error:
        problems = (replace(one, field=names.get(one.field, one.field)) for one in error.problems)
        raise InvalidInput(*problems) from error


def response_to(request: Request, error: PliantError) -> Response:
    """Return the answer to a request that failed."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if status == 500:
        log.error("a request failed", exc_info=error)
    return error_response(status, str(error), request.headers.get("accept", ""))


def error_response(status: int, message: str, accepted: str) -> Response:
    """Return an error in the form that is accepted, and in IBM's words."""
    message = reword(message)
    headers = {"WWW-Authenticate": 'Basic realm="Pliant", charset="UTF-8"'} if status == 401 else None
    if JSON in accepted:
        body = json.dumps({"code": status, "message": message})
        return Response(body, status_code=status, media_type=JSON, headers=headers)
    return Response(message, status_code=status, media_type=TEXT, headers=headers)


class IbmErrors:
    """ASGI middleware for errors that no route of IBM's has raised: too long a body, a method that is not possible.

    They come as problems of RFC 9457 out of the parts that all routes share, and leave in IBM's form.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_PREFIXES):
            await self._app(scope, receive, send)
            return
        status, body = 0, b""

        async def send_converted(message: Message) -> None:
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
                detail = str(json.loads(body)["detail"])
                answer = error_response(_STATUS_OF_PROBLEM.get(status, status), detail, accepted)
                await answer(scope, receive, send)

        await self._app(scope, receive, send_converted)


def _is_problem(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith(MEDIA_TYPE)
