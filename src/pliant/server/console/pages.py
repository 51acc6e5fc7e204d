"""The routes of the web console: its page at `/` and at every path that is nobody else's, and what the page loads.

The page is one and the same for everybody, and holds nothing that is anybody's; what it shows it asks for below `/v1`,
where its session is looked at. Which page a path means, the page itself knows.
"""

import secrets
from collections.abc import Callable
from typing import Final

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from pliant.server.accept import encodings_of, wants_page
from pliant.server.console.bundle import ROOT_FILES, Bundle, BundledFile
from pliant.server.late_route import LateRoute
from pliant.server.middleware.authorisation import Audience
from pliant.server.middleware.secure_headers import headers_of_page
from pliant.server.routing import Routes
from pliant.server.site import API_FOLDERS, site_of

_NUM_NONCE_BYTES: Final = 16
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_FOR_AN_HOUR: Final = "public, max-age=3600"
_NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Pliant</title>
<h1>This server runs, and has no web console</h1>
<p>It was started from a checkout in which the console was not built. Run <code>make console</code> there, and load this
page again. A Pliant that was installed with <code>pip</code> brings the console along.</p>
<p>The REST API and the command line do without: see the page of the API, <code>docs</code> beside this one.</p>
</html>
"""


class PageRoute(LateRoute):
    """A route at any path that people may ask for as a page, unless it is one of an API.

    All other requests it leaves alone, so that what is not there stays what it is to programs: a problem in JSON.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether a request is one for a page."""
        found, child_scope = super().matches(scope)
        is_page = found is Match.FULL and scope["path"].split("/", 2)[1] not in API_FOLDERS
        if not is_page or not wants_page(Headers(scope=scope).get("accept", "")):
            return Match.NONE, {}
        return found, child_scope


def page(request: Request) -> Response:
    """Return the console's page, whichever of its paths was asked for."""
    site = site_of(request)
    nonce = secrets.token_urlsafe(_NUM_NONCE_BYTES)
    text = Bundle(site.bundle).page(base=site.base, nonce=nonce)
    if text is None:
        return HTMLResponse(_NOT_BUILT, status_code=404)
    return HTMLResponse(text, headers=headers_of_page(nonce))


def asset(request: Request, name: str) -> Response:
    """Return a file that the page loads, compressed if that is taken."""
    return _answer(Bundle(site_of(request).bundle).asset(name, _encodings(request)), _FOR_EVER)


def _root_file(name: str) -> Callable[[Request], Response]:
    """Return what answers a request for a file beside the page."""

    def root_file(request: Request) -> Response:
        return _answer(Bundle(site_of(request).bundle).root_file(name, _encodings(request)), _FOR_AN_HOUR)

    return root_file


def _encodings(request: Request) -> frozenset[str]:
    return encodings_of(",".join(request.headers.getlist("accept-encoding")))


def _answer(file: BundledFile, cache_control: str) -> Response:
    headers = {"Cache-Control": cache_control, "Vary": "Accept-Encoding", "Content-Type": file.media_type}
    if file.encoding is not None:
        headers["Content-Encoding"] = file.encoding
    return Response(file.content, headers=headers)


def _make_routes() -> tuple[Routes, ...]:
    """Return the routes, in the order in which they are tried."""
    files = Routes("", include_in_schema=False)
    anywhere = Routes("", include_in_schema=False, route_class=PageRoute)
    for method in ("GET", "HEAD"):
        files.add(method, "/", Audience.EVERYBODY)(page)
        files.add(method, "/assets/{name:path}", Audience.EVERYBODY)(asset)
        for name in ROOT_FILES:
            files.add(method, f"/{name}", Audience.EVERYBODY)(_root_file(name))
        anywhere.add(method, "/{path:path}", Audience.EVERYBODY)(page)
    return files, anywhere


routes: Final = _make_routes()
