"""The session of a browser: a cookie, and the pages that may send it.

A browser sends a cookie along whoever made it ask, so the cookie alone proves nothing. What changes something needs

- the header `X-Pliant-Console: 1`, which no page of another server can send without asking first, and nobody is
  answered who asks that;
- an `Origin` that is this server's own, and `Sec-Fetch-Site: same-origin`, if the browser says either.

The cookie opens Pliant's own routes below `/v1` alone. It is not looked at where a request shows other credentials, on
the routes of other APIs, or on WebSockets.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from pliant.core.errors import Forbidden
from pliant.server.site import site_of

CONSOLE_HEADER: Final = "X-Pliant-Console"
_OWN_ROUTES: Final = "/v1/"
_SAFE: Final = frozenset({"GET", "HEAD"})
_PORTS: Final = {"http": 80, "https": 443}
_HOW: Final = "ask from the console's own pages, or send a token in the place of the cookie"


def cookie_of(connection: HTTPConnection) -> str | None:
    """Return the session in the cookie of a request to a route of our own that shows no other credentials."""
    shown = "authorization" in connection.headers or "x-auth-token" in connection.headers
    if shown or not connection.scope["path"].startswith(_OWN_ROUTES):
        return None
    return connection.cookies.get(site_of(connection).cookie) or None


def require_own_page_to_change(request: Request) -> None:
    """Refuse a request by cookie that changes something, unless a page of this server asks.

    Raises:
        Forbidden: another page asks, or none.
    """
    if request.method not in _SAFE:
        require_own_page(request)


def require_own_page(request: Request) -> None:
    """Refuse a request unless a page of this server asks.

    Raises:
        Forbidden: another page asks, or none.
    """
    if request.headers.get(CONSOLE_HEADER) != "1":
        raise Forbidden(f"a change by cookie needs the header `{CONSOLE_HEADER}: 1`; {_HOW}")
    origin = request.headers.get("origin")
    if origin is not None and not _is_own(origin, request):
        raise Forbidden(f"a page of another server asked for this: {origin:.200}; {_HOW}")
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        raise Forbidden(f"a page that is not this server's asked for this: its site is {site:.40}; {_HOW}")


def _is_own(origin: str, request: Request) -> bool:
    scheme = request.scope["scheme"]
    own = _host_and_port(f"{scheme}://{request.headers.get('host', '')}", scheme)
    return own is not None and own == _host_and_port(origin, scheme)


def _host_and_port(url: str, scheme: str) -> tuple[str, int | None] | None:
    """Return who answers at a URL; None if it is of another scheme, or none."""
    try:
        parts = urlsplit(url)
        found = (parts.hostname or "", parts.port or _PORTS.get(scheme))
    except ValueError:
        return None
    return found if parts.scheme == scheme and found[0] else None


def set_cookie(request: Request, response: Response, token: str, max_age_s: float) -> None:
    """Give a browser the session that it sends from now on."""
    site = site_of(request)
    response.set_cookie(
        site.cookie,
        token,
        max_age=int(max_age_s),
        path=site.base,
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="strict",
    )


def delete_cookie(request: Request, response: Response) -> None:
    """Let a browser forget the session."""
    site, secure = site_of(request), request.scope["scheme"] == "https"
    response.delete_cookie(site.cookie, path=site.base, secure=secure, httponly=True, samesite="strict")


def is_from_page(request: Request) -> bool:
    """Tell whether a page asks, and not a program or a person: it is to word a refusal itself.

    A browser that is challenged for name and password asks for them in a window of its own, over the page.
    """
    headers = request.headers
    if CONSOLE_HEADER in headers or headers.get("accept") == "text/event-stream":
        return True
    return headers.get("sec-fetch-mode", "navigate") != "navigate" or cookie_of(request) is not None
