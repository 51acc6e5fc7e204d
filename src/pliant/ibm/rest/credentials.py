"""Who asks IBM's routes: as everywhere, or by the cookie of a logon.

A cookie is sent by a browser whoever made it ask, so it opens changes only to pages of this server itself.
"""

from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from pliant.core.access import Principal
from pliant.core.errors import Forbidden
from pliant.people.gate import Admitted
from pliant.server.context import context_of
from pliant.server.middleware import access, auth
from pliant.server.middleware.audit import trace_of

COOKIE: Final = "platform.rest.token"
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


def cookie_of(request: Request) -> str | None:
    """Return the token in the cookie of a request that shows nothing else.

    Raises:
        Forbidden: it came with a change that a page of another server asked for.
    """
    if "authorization" in request.headers or "x-auth-token" in request.headers:
        return None
    cookie = request.cookies.get(COOKIE)
    if cookie and request.method not in _SAFE and not _own_page(request):
        raise Forbidden("a page of another server asked for this; ask from one of this server, or send a token")
    return cookie or None


def _own_page(request: Request) -> bool:
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def admitted(request: Request) -> Admitted:
    """Return who sent a request, and how they showed it.

    Raises:
        Unauthorized: no credentials, or wrong ones.
        TooMany: wrong ones too often.
        Forbidden: see `cookie_of`.
    """
    cookie = cookie_of(request)
    if cookie is None:
        return await auth.admitted(request)
    found = await run_in_threadpool(context_of(request).people.gate.by_token, cookie)
    trace_of(request).who = found.principal.name
    return found


InAdmitted = Annotated[Admitted, Depends(admitted)]


async def allowed(request: Request, found: InAdmitted) -> Principal:
    """Let in who may use the route that was asked for.

    Raises:
        Forbidden: they may not.
    """
    return await access.allowed(request, found.principal)


Caller = Annotated[Principal, Depends(allowed)]
"""Who asks, already let in."""
