"""Authentication: reads the credentials of a request and finds whose they are.

A request may carry `Authorization: Basic` (name and password), `Authorization: Bearer` or `X-Auth-Token` (a session, a
personal token, or the token of the file). Passwords are compared in a few threads at most, so that somebody who
guesses many at once does not keep the others from being served. A browser has its session in a cookie, which counts
only where none of these is sent (`session_cookie.py`).
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
from pliant.core.errors import Conflict, Forbidden, TooMany, Unauthorized
from pliant.people.authenticator import Identity
from pliant.people.credentials import Issued, LogonSession
from pliant.people.people import People
from pliant.people.user import User
from pliant.server.middleware.audit import LOG_ON_BY_LINK, trace_of
from pliant.server.middleware.session_cookie import cookie_of, require_own_page_to_change

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
_NUM_HASHING: Final = 4
"""Requests at once whose password may have to be hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordCredentials:
    """A name and a password that were sent."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCredentials:
    """A token that was sent."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authentication:
    """The people of a server, and how many of their passwords may be hashed at once."""

    people: People
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_NUM_HASHING))


def credentials_of(headers: Headers) -> PasswordCredentials | TokenCredentials:
    """Return the credentials of a request; `Authorization` goes before `X-Auth-Token`.

    Raises:
        Unauthorized: nothing, or what cannot be read.
    """
    authorization = headers.get("authorization", "").strip()
    if not authorization:
        token = headers.get("x-auth-token", "").strip()
        if not token:
            raise Unauthorized(f"no credentials were sent; {_HOW}")
        return TokenCredentials(text=token)
    scheme, _, rest = authorization.partition(" ")
    match scheme.lower():
        case "basic":
            return _read_basic(rest.strip())
        case "bearer" if rest.strip():
            return TokenCredentials(text=rest.strip())
        case _:
            raise Unauthorized(f"the Authorization header is neither Basic nor Bearer; {_HOW}")


def _read_basic(encoded: str) -> PasswordCredentials:
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
    return PasswordCredentials(name=name, password=password)


def address_of(connection: HTTPConnection) -> str:
    """Return the address that a request came from."""
    return connection.client.host if connection.client is not None else ""


def _authentication(connection: HTTPConnection) -> Authentication:
    authentication = connection.app.state.authentication
    assert isinstance(authentication, Authentication)
    return authentication


async def authenticate(request: Request) -> Identity:
    """Return who sent a request to a route of our own, and what they authenticated with.

    Raises:
        Unauthorized: the request has no credentials, or wrong ones.
        TooMany: too many attempts have failed.
        Forbidden: it is a change by cookie that no page of this server asked for.
    """
    token = cookie_of(request)
    if token is None:
        return await authenticate_shown(request)
    require_own_page_to_change(request)
    authenticator = _authentication(request).people.authenticator
    identity = await run_in_threadpool(authenticator.authenticate_session, token)
    trace_of(request).know(identity.principal)
    return identity


async def authenticate_shown(request: Request) -> Identity:
    """Return who sent a request, by what its headers show on purpose: by no cookie.

    Raises:
        Unauthorized: the request has no credentials, or wrong ones.
        TooMany: too many attempts have failed.
    """
    given = credentials_of(request.headers)
    if isinstance(given, PasswordCredentials):
        identity = await _authenticate_basic(request, given)
    else:
        identity = await _authenticate_token(request, given.text)
    trace_of(request).know(identity.principal)
    return identity


InIdentity = Annotated[Identity, Depends(authenticate)]


async def authenticate_caller(identity: InIdentity) -> Principal:
    """Return who sent a request."""
    return identity.principal


def refuse_tokens(by: str, what: str) -> None:
    """Refuse a personal token, so that a stolen one cannot be made worth more than it is.

    Raises:
        Forbidden: it was one; the message says what it does not do.
    """
    if by == "token":
        raise Forbidden(f"a personal token {what}; log on with the password (POST /v1/logon)")


async def log_on(request: Request, given: PasswordCredentials) -> tuple[Identity, Issued[LogonSession]]:
    """Open a session for the right password. A token in its place opens none. All logon routes come through here.

    Raises:
        Unauthorized, TooMany, Unavailable: as `Authenticator.authenticate_password`.
    """
    trace, people = trace_of(request), _authentication(request).people
    trace.is_logon = True
    identity = await _compare_password(request, given, only_password=True)
    name = trace.logon = identity.principal.name
    session = await run_in_threadpool(
        people.authenticator.open_session,
        name,
        password_changed_at=identity.password_changed_at,
        address=address_of(request),
    )
    trace.who = name
    return identity, session


async def redeem_link(request: Request, code: str) -> tuple[User, Issued[LogonSession]]:
    """Open a session for a one-time link.

    Raises:
        Unauthorized, TooMany: as `LogonLinks.redeem`.
        Conflict: the browser is somebody else's at the moment; the link is worth as much as before.
    """
    trace, people, address = trace_of(request), _authentication(request).people, address_of(request)
    trace.is_logon, trace.logon_action, trace.logon = True, LOG_ON_BY_LINK, ""
    await run_in_threadpool(_refuse_other_user, people, code, cookie_of(request))
    user = await run_in_threadpool(people.links.redeem, code, address)
    trace.logon = user.name
    session = await run_in_threadpool(
        people.authenticator.open_session,
        user.name,
        password_changed_at=user.password_changed_at,
        way="link",
        address=address,
    )
    trace.who = user.name
    return user, session


def _refuse_other_user(people: People, code: str, cookie: str | None) -> None:
    """Refuse to make a browser somebody else's: a stranger's link could do that, and nobody would notice."""
    owner = people.links.owner_of(code)
    if owner is None or cookie is None:
        return
    try:
        present = people.authenticator.authenticate_session(cookie).principal.name
    except Unauthorized:
        return
    if present != owner:
        raise Conflict(f"this browser is logged on as {present}, and the link is {owner}'s; log off first")


async def _authenticate_token(request: Request, token: str) -> Identity:
    authenticator = _authentication(request).people.authenticator
    identity = authenticator.check_file_token(token)
    return await run_in_threadpool(authenticator.authenticate_token, token) if identity is None else identity


async def _authenticate_basic(request: Request, given: PasswordCredentials) -> Identity:
    authenticator = _authentication(request).people.authenticator
    identity = await run_in_threadpool(authenticator.recall, given.name, given.password)
    return await _compare_password(request, given, only_password=False) if identity is None else identity


async def _compare_password(request: Request, given: PasswordCredentials, *, only_password: bool) -> Identity:
    authentication, trace = _authentication(request), trace_of(request)
    authenticator = authentication.people.authenticator
    compare = authenticator.authenticate_password if only_password else authenticator.authenticate_basic
    try:
        async with authentication.hashing:
            identity = await run_in_threadpool(compare, given.name, given.password, address_of(request))
    except (Unauthorized, TooMany):
        trace.logon = given.name if await run_in_threadpool(authenticator.has_user, given.name) else ""
        raise
    if identity.logged_on:
        trace.logon = given.name
    return identity
