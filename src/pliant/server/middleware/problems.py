"""Errors as RFC 9457 problems: which error is which status, and every wrong field at once."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from pliant.api.faults import problems_in
from pliant.api.problems import ProblemDetails, ProblemItem
from pliant.core.errors import (
    BeyondEnd,
    Conflict,
    Forbidden,
    InvalidInput,
    NoSpace,
    NotFound,
    PliantError,
    Problem,
    Stale,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
)
from pliant.server.middleware.session_cookie import is_from_page

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_SCHEMAS = "#/components/schemas/"
_STATUS: Sequence[tuple[type[PliantError], int, str]] = (
    (InvalidInput, 422, "Invalid input"),
    (Unauthorized, 401, "Unauthorized"),
    (Forbidden, 403, "Forbidden"),
    (NotFound, 404, "Not found"),
    (Stale, 412, "Changed meanwhile"),
    (Conflict, 409, "Conflict"),
    (TooLarge, 413, "Too large"),
    (BeyondEnd, 416, "Not that part"),
    (TooMany, 429, "Too many"),
    (NoSpace, 507, "Disk full"),
    (Unavailable, 503, "Unavailable"),
)
_CHALLENGE = 'Bearer realm="Pliant", Basic realm="Pliant", charset="UTF-8"'
_CHALLENGE_TO_PAGE = 'Bearer realm="Pliant"'
_PLACES = ("body", "query", "path", "header", "cookie")


def problem_response(error: PliantError) -> Response:
    """Return the answer to a request that failed."""
    status, title = _status_and_title(error)
    problems = error.problems if isinstance(error, InvalidInput) else ()
    return _response(status, title, str(error), problems, _headers(error))


def status_of(error: PliantError) -> int:
    """Return the status that an error is answered with."""
    return _status_and_title(error)[0]


def _status_and_title(error: PliantError) -> tuple[int, str]:
    return next(((s, t) for kind, s, t in _STATUS if isinstance(error, kind)), (500, "Internal error"))


def _headers(error: PliantError) -> Mapping[str, str] | None:
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": _CHALLENGE}
    if isinstance(error, TooMany):
        return {"Retry-After": str(math.ceil(error.wait_s))}
    if isinstance(error, BeyondEnd):
        return {"Content-Range": f"bytes */{error.num_bytes}"}
    return None


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
    findings = error.errors()
    unreadable = [found for found in findings if found["type"] == "json_invalid"]
    if unreadable:
        why = unreadable[0].get("ctx", {}).get("error", unreadable[0]["msg"])
        return InvalidInput.at("", f"the body is not JSON ({why})")
    return InvalidInput(*problems_in(findings, leave_out=_PLACES))


async def _on_ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, PliantError)
    response = problem_response(error)
    if response.status_code == 401 and is_from_page(request):
        response.headers["WWW-Authenticate"] = _CHALLENGE_TO_PAGE
    if response.status_code == 500:
        log.error("a request failed", exc_info=error)
    return response


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(invalid_request(error))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # FastAPI's word for a body that it cannot read at all
        return problem_response(InvalidInput.at("", "the body is not JSON in UTF-8"))
    detail = error.detail
    if error.status_code == 404:
        detail = f"nothing is at {request.url.path}; /docs lists what there is"
    if error.status_code == 405:
        detail = f"{request.method} is not possible at {request.url.path}; /docs lists what is"
    return _response(error.status_code, "Not possible", detail, headers=error.headers)


async def _on_cut(_: Request, __: Exception) -> Response:
    """Return an answer that nobody reads. It is for the audit log: the server is not at fault."""
    return problem_response(Unavailable("the connection was cut before the whole body had come; send it again"))


async def _on_bug(_: Request, __: Exception) -> Response:
    return _response(500, "Internal error", "the server failed at this request; its log says why")


def install(app: FastAPI) -> None:
    """Make the app answer every error as a problem."""
    app.add_exception_handler(PliantError, _on_ours)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(ClientDisconnect, _on_cut)
    app.add_exception_handler(Exception, _on_bug)


def describe_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of errors, with a reference to `describe_problem`.

    Not as FastAPI's `model`: it would make a validator for each error of each route, which takes seconds at each start.
    """
    titles = {status: title for _, status, title in _STATUS}
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{_SCHEMAS}{ProblemDetails.__name__}"}}}
    return {status: {"description": titles[status], "content": content} for status in sorted(set(statuses))}


def describe_problem() -> dict[str, Any]:
    """Return the schemas of a problem's body, by their names."""
    schema = ProblemDetails.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}")
    return {**schema.pop("$defs"), ProblemDetails.__name__: schema}
