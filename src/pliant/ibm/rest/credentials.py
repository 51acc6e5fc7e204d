"""The credentials of IBM's routes: those of every route, or the cookie of a logon.

A browser sends a cookie along whoever made it ask, so a cookie opens changes only to pages of this server itself.
"""

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from pliant.core.access import Principal
from pliant.core.errors import Forbidden, Unauthorized
from pliant.people.authenticator import Identity
from pliant.server.context import context_of
from pliant.server.middleware import authentication
from pliant.server.middleware.audit import trace_of
from pliant.server.middleware.authorisation import Needs, authorise

COOKIE: Final = "platform.rest.token"
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


def cookie_of(request: Request) -> str | None:
    """Return the token in the cookie of a request that has no other credentials.

    Raises:
        Forbidden: it came with a change that a page of another server asked for.
    """
    if "authorization" in request.headers or "x-auth-token" in request.headers:
        return None
    cookie = request.cookies.get(COOKIE)
    if cookie and request.method not in _SAFE and not _is_own_page(request):
        raise Forbidden("a page of another server asked for this; ask from one of this server, or send a token")
    return cookie or None


def token_of(request: Request) -> str | None:
    """Return the token that a request shows in a header; None if it shows name and password, or a cookie."""
    token = _user_token(request)
    if token is not None:
        return token
    try:
        given = authentication.credentials_of(request.headers)
    except Unauthorized:
        return None
    return given.text if isinstance(given, authentication.TokenCredentials) else None


def _user_token(request: Request) -> str | None:
    """Return the token in IBM's third header for one, of a request that has neither of the others."""
    if "authorization" in request.headers or "x-auth-token" in request.headers:
        return None
    return request.headers.get("x-user-token", "").strip() or None


def _is_own_page(request: Request) -> bool:
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def authenticate(request: Request) -> Identity:
    """Return who sent a request, and what they authenticated with.

    Raises:
        Unauthorized: the request has no credentials, or wrong ones.
        TooMany: too many attempts have failed.
        Forbidden: as `cookie_of`.
    """
    token = _user_token(request) or cookie_of(request)
    if token is None:
        return await authentication.authenticate_shown(request)
    identity = await run_in_threadpool(context_of(request).people.authenticator.authenticate_token, token)
    trace_of(request).know(identity.principal)
    return identity


InIdentity = Annotated[Identity, Depends(authenticate)]


async def authenticate_caller(identity: InIdentity) -> Principal:
    """Return who sent a request."""
    return identity.principal


Caller = Annotated[Principal, Depends(authenticate_caller)]
"""Who asks; their permission has been checked."""


@dataclass(frozen=True)
class IbmNeeds(Needs):
    """The dependency of a route of IBM's that needs a permission."""

    async def __call__(self, request: Request, caller: Caller) -> None:
        """Refuse whoever lacks the permission.

        Raises:
            Unauthorized, TooMany: the caller is not authenticated.
            Forbidden: they lack it.
        """
        authorise(request, caller)
