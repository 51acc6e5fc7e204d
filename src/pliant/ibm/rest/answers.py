"""How IBM's routes answer: errors as text, or as JSON for who asks for that, with IBM's statuses.

A wrong submission, or one thing done twice, is 400 there, where Pliant's own routes have 422 and 409.
"""

import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

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
from pliant.server.middleware.problems import invalid_request

log = logging.getLogger(__name__)

DEEP_LEARNING: Final = "/platform/rest/deeplearning/v1"
CONDUCTOR: Final = "/platform/rest/conductor/v1"
AUTH: Final = "/auth/v1"
TEXT: Final = "text/plain; charset=utf-8"
_STATUS: Final[Sequence[tuple[type[PliantError], int]]] = (
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


class NotHere(PliantError):
    """A route of IBM's that has no meaning here, or not yet."""


class IbmRoute(APIRoute):
    """A route whose errors are answered in IBM's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except PliantError as error:
                return refusal(request, error)
            except RequestValidationError as error:
                return refusal(request, invalid_request(error))

        return answered


def router(prefix: str) -> APIRouter:
    """Return an empty router below a prefix. It is not in Pliant's own description: docs/wmla.md has it."""
    return APIRouter(prefix=prefix, route_class=IbmRoute, include_in_schema=False)


def refusal(request: Request, error: PliantError) -> Response:
    """Return the answer that tells of an error."""
    status = 501 if isinstance(error, NotHere) else _status(error)
    if status == 500:
        log.error("a request failed", exc_info=error)
    return worded(status, str(error), request.headers.get("accept", ""))


def worded(status: int, message: str, accepted: str) -> Response:
    """Return an error in the form that is accepted."""
    headers = {"WWW-Authenticate": 'Basic realm="Pliant", charset="UTF-8"'} if status == 401 else None
    if "application/json" in accepted:
        body = json.dumps({"code": status, "message": message})
        return Response(body, status_code=status, media_type="application/json", headers=headers)
    return Response(message, status_code=status, media_type=TEXT, headers=headers)


def _status(error: PliantError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
