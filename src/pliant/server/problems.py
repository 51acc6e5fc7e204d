"""Errors as RFC 9457 problems: which error is which status, and every wrong field at once."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pliant.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PliantError,
    Problem,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from pliant.wire.api import ProblemDetails, ProblemItem

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_STATUS: Sequence[tuple[type[PliantError], int, str]] = (
    (InvalidInput, 422, "Invalid input"),
    (Unauthorized, 401, "Unauthorized"),
    (NotFound, 404, "Not found"),
    (Conflict, 409, "Conflict"),
    (TooLarge, 413, "Too large"),
    (Unavailable, 503, "Unavailable"),
)
_PLACES = ("body", "query", "path", "header", "cookie")


def problem_response(error: PliantError) -> Response:
    """Return the answer that tells of an error."""
    status, title = next(((s, t) for kind, s, t in _STATUS if isinstance(error, kind)), (500, "Internal error"))
    problems = error.problems if isinstance(error, InvalidInput) else ()
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return _response(status, title, str(error), problems, headers)


def _response(
    status: int,
    title: str,
    detail: str,
    problems: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    body = ProblemDetails(
        title=title,
        status=status,
        detail=detail,
        problems=[ProblemItem(field=problem.field, message=problem.message) for problem in problems],
    )
    return Response(body.model_dump_json(), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def invalid_request(error: RequestValidationError) -> InvalidInput:
    """Return FastAPI's findings as ours."""
    return InvalidInput(*(_problem(found) for found in error.errors()))


def _problem(found: Mapping[str, Any]) -> Problem:
    place = [str(part) for part in found["loc"] if part not in _PLACES]
    if found["type"] == "json_invalid":
        return Problem(field="", message=f"the body is not JSON ({found.get('ctx', {}).get('error', found['msg'])})")
    return Problem(field=".".join(place), message=f"{found['msg']} (got {found.get('input')!r:.80})")


async def _on_ours(_: Request, error: Exception) -> Response:
    assert isinstance(error, PliantError)
    response = problem_response(error)
    if response.status_code == 500:
        log.error("a request failed", exc_info=error)
    return response


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(invalid_request(error))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if error.status_code == 404:
        detail = f"nothing is at {request.url.path}; /docs lists what there is"
    if error.status_code == 405:
        detail = f"{request.method} is not possible at {request.url.path}; /docs lists what is"
    return _response(error.status_code, "Not possible", detail, headers=error.headers)


async def _on_bug(_: Request, __: Exception) -> Response:
    return _response(500, "Internal error", "the server failed at this request; its log says why")


def install(app: FastAPI) -> None:
    """Make the app answer every error as a problem."""
    app.add_exception_handler(PliantError, _on_ours)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_bug)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the errors that a route answers with, 401 and 422 always among them."""
    words = {status: title for _, status, title in _STATUS}
    return {status: {"model": ProblemDetails, "description": words[status]} for status in sorted({401, 422, *statuses})}
