"""Asks an endpoint one question through the server's own address, for who tries it: the console's pages.

The body goes on to the gateway as it comes, with what the caller shows; so it is the gateway that says who may ask, and
how long a request may be. The answer comes back whole with its status, up to a size, after a time at most. Programs ask
the gateway itself.
"""

import asyncio
from typing import Annotated, Final

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from pliant.api.endpoints import PredictForm, PredictView
from pliant.core.access import Permission
from pliant.core.errors import InvalidInput, Unavailable
from pliant.server.context import Context, InContext
from pliant.server.gateway_client import gateway_client_of
from pliant.server.given_tokens import given_tokens, inference_token
from pliant.server.middleware.audit import trace_of
from pliant.server.middleware.authentication import PasswordCredentials, credentials_of
from pliant.server.middleware.authorisation import Caller
from pliant.server.middleware.session_cookie import cookie_of
from pliant.server.routes.endpoints import InEndpoints, Name
from pliant.server.routing import Routes

MAX_ANSWER_BYTES: Final = 4 << 20
MAX_WAIT_S: Final = 150.0
"""More than a cold start takes unless somebody has said otherwise."""
_PASSED: Final = (b"content-type", b"content-encoding", b"x-request-timeout-s")

routes = Routes(tags=["endpoints"])

_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "As the form says; as long as the endpoint's `max_body_bytes` allows.",
        "content": {"application/json": {"schema": {}}},
    }
}


@routes.post("/endpoints/{name}/predict", Permission.INFER, "Ask an endpoint once", 404, 503, openapi_extra=_BODY)
async def predict(
    request: Request,
    context: InContext,
    requests: InEndpoints,
    caller: Caller,
    name: Name,
    form: Annotated[PredictForm, Query(description="What the body is.")] = "infer",
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Left out: as traffic is shared.")] = None,
) -> PredictView:
    """Ask an endpoint as the caller, and return its answer with status, version and time: also a refusal is one.

    It is for trying an endpoint. What asks often asks at its own address, with a token, and saves a step.
    """
    trace_of(request).changes_nothing = True
    token = await run_in_threadpool(_token_of, request, context, caller.name)
    view = await run_in_threadpool(requests.get, caller, name)
    if not view.gateways:
        raise Unavailable("no gateway is there yet that takes requests; try again in a moment")
    path = _path_of(view.name, form, version)
    time = asyncio.get_running_loop().time
    began_at = time()
    try:
        async with asyncio.timeout(MAX_WAIT_S):
            client = gateway_client_of(request, context)
            answer = await client.ask(view.gateways[0], path, token, request, _PASSED)
            content, is_whole = await _read(answer)
    except TimeoutError as error:
        raise Unavailable(f"{name} has not answered within {MAX_WAIT_S:g} s; ask at its own address") from error
    number = answer.headers.get("pliant-version", "")
    return PredictView(
        status=answer.status_code,
        content_type=answer.headers.get("content-type", ""),
        text=content.decode(errors="replace"),
        is_whole=is_whole,
        version=int(number) if number.isdigit() else None,
        took_s=time() - began_at,
    )


def _token_of(request: Request, context: Context, name: str) -> str:
    """Return the token or session that a request shows; one that is made for it if it shows a password."""
    cookie = cookie_of(request)
    if cookie is not None:
        return cookie
    given = credentials_of(request.headers)
    if isinstance(given, PasswordCredentials):  # the gateway compares none
        return inference_token(context, given_tokens(request), name)
    return given.text


def _path_of(name: str, form: PredictForm, version: int | None) -> str:
    """Return the path at the gateway.

    Raises:
        InvalidInput: IBM's route knows no versions.
    """
    if form == "raw":
        if version is not None:
            message = f"with the form raw the traffic says which version answers; leave {version} out"
            raise InvalidInput.at("version", message)
        return f"/dlim/v1/inference/{name}"
    which = "" if version is None else f"/versions/{version}"
    return f"/v2/models/{name}{which}/{form}"


async def _read(answer: StreamingResponse) -> tuple[bytes, bool]:
    """Return an answer, and whether it is all of it; the rest of a longer one is not waited for."""
    content = bytearray()
    pieces = answer.body_iterator
    try:
        async for piece in pieces:
            assert isinstance(piece, bytes)
            content += piece
            if len(content) > MAX_ANSWER_BYTES:
                return bytes(content[:MAX_ANSWER_BYTES]), False
    finally:
        await pieces.aclose()  # type: ignore[attr-defined]
    return bytes(content), True
