"""Who asks: finds the credentials of a request and the principal that they stand for.

Taken are `Authorization: Basic` (name and password), `Authorization: Bearer` and `X-Auth-Token` (a session, a personal
token, or the token of the file). Passwords are compared in a few threads at most, so that who guesses
many at once does not keep the others from being served.
"""

import asyncio
import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from pliant.core.access import Principal
from pliant.core.errors import TooMany, Unauthorized
from pliant.people.gate import Admitted
from pliant.people.people import People
from pliant.people.sessions import OpenedSession
from pliant.server.middleware.audit import trace_of

SECURITY_SCHEMES: Final[dict[str, dict[str, Any]]] = {
    "basic": {"type": "http", "scheme": "basic", "description": "Name and password."},
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of a session (`POST /v1/logon`), a personal token (`POST /v1/tokens`), or the one in "
        "the file `token` of the server's state folder.",
    },
    "header": {"type": "apiKey", "in": "header", "name": "X-Auth-Token", "description": "A token, as for bearer."},
}
"""How requests show who sends them, in the words of OpenAPI; any one of them is enough."""

_HOW: Final = (
    "send `Authorization: Bearer TOKEN` or `X-Auth-Token: TOKEN`, with the token of a session (POST /v1/logon), a "
    "personal token, or the one in the file `token` of the server's state folder; or name and password as "
    "`Authorization: Basic`"
)
_NUM_SLOW: Final = 4
"""Requests at once whose password may have to be hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A name and a password that were sent."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentToken:
    """A token that was sent."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The people of a server, and how many of them can have their passwords hashed at once."""

    people: People
    slow: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_NUM_SLOW))


def credentials_of(headers: Headers) -> Login | SentToken:
    """Return what a request shows; `Authorization` goes before `X-Auth-Token`.

    Raises:
        Unauthorized: nothing, or what cannot be read.
    """
    authorization = headers.get("authorization", "").strip()
    if not authorization:
        token = headers.get("x-auth-token", "").strip()
        if not token:
            raise Unauthorized(f"no credentials were sent; {_HOW}")
        return SentToken(text=token)
    scheme, _, rest = authorization.partition(" ")
    match scheme.lower():
        case "basic":
            return _login(rest.strip())
        case "bearer" if rest.strip():
            return SentToken(text=rest.strip())
        case _:
            raise Unauthorized(f"the Authorization header is neither Basic nor Bearer; {_HOW}")


def _login(encoded: str) -> Login:
    """Return name and password of Basic credentials: UTF-8, or Latin-1 as some clients still send."""
    try:
        decoded = b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unauthorized(f"the Basic credentials are not NAME:PASSWORD in base64; {_HOW}") from error
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        text = decoded.decode("latin-1")
    name, colon, password = text.partition(":")
    if not colon:
        raise Unauthorized(f"the Basic credentials hold no colon between name and password; {_HOW}")
    return Login(name=name, password=password)


def bearer_of(header: str) -> str:
    """Return the token of an Authorization header; empty if it holds none."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def address_of(connection: HTTPConnection) -> str:
    """Return the address that a request came from."""
    return connection.client.host if connection.client is not None else ""


def _door(connection: HTTPConnection) -> Door:
    door = connection.app.state.door
    assert isinstance(door, Door)
    return door


async def admitted(request: Request) -> Admitted:
    """Return who sent a request, and how they showed it.

    Raises:
        Unauthorized: they did not show it, or not rightly.
        TooMany: too many of their attempts have failed.
    """
    given = credentials_of(request.headers)
    if isinstance(given, Login):
        found = await _by_login(request, given)
    else:
        found = await _by_token(request, given.text)
    trace_of(request).who = found.principal.name
    return found


InAdmitted = Annotated[Admitted, Depends(admitted)]


async def principal(found: InAdmitted) -> Principal:
    """Return who sent a request."""
    return found.principal


InPrincipal = Annotated[Principal, Depends(principal)]


async def log_on(request: Request, login: Login) -> tuple[Admitted, OpenedSession]:
    """Begin a session for who gives the right password; a token in its place begins none. Every logon route's way.

    Raises:
        Unauthorized, TooMany, Unavailable: as `Gate.by_password`.
    """
    trace, people = trace_of(request), _door(request).people
    trace.is_logon = True
    found = await _slowly(request, login, only_password=True)
    trace.who = trace.logon = found.principal.name
    return found, await run_in_threadpool(people.sessions.open, found.principal.name)


async def _by_token(request: Request, token: str) -> Admitted:
    gate = _door(request).people.gate
    found = gate.by_file(token)
    return await run_in_threadpool(gate.by_token, token) if found is None else found


async def _by_login(request: Request, login: Login) -> Admitted:
    gate = _door(request).people.gate
    found = await run_in_threadpool(gate.remembered, login.name, login.password)
    return await _slowly(request, login, only_password=False) if found is None else found


async def _slowly(request: Request, login: Login, *, only_password: bool) -> Admitted:
    door, trace = _door(request), trace_of(request)
    judge = door.people.gate.by_password if only_password else door.people.gate.by_login
    try:
        async with door.slow:
            found = await run_in_threadpool(judge, login.name, login.password, address_of(request))
    except (Unauthorized, TooMany):
        trace.logon = login.name if await run_in_threadpool(door.people.gate.knows, login.name) else ""
        raise
    if found.logged_on:
        trace.logon = login.name
    return found
