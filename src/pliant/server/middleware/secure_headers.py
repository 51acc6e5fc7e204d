"""Headers that tell browsers to do with an answer only what it is for: OWASP's secure headers.

They are on every answer, also on errors and streams: the answers are for programs, so a browser shall run nothing of
them (a sandbox, should it show what a person has written), show them in no frame, guess no type, keep no copy, and
hand no part of them to another site. The page `/docs` has a style, its own; the pages of the console run their scripts
and load what belongs to them, from this server alone.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.server.manual import STYLE_HASH

_NO_FEATURES: Final = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "autoplay",
        "camera",
        "clipboard-read",
        "clipboard-write",
        "display-capture",
        "fullscreen",
        "geolocation",
        "gyroscope",
        "microphone",
        "midi",
        "payment",
        "usb",
        "xr-spatial-tracking",
    )
)
_ALWAYS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store, max-age=0",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": _NO_FEATURES,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "deny",
    "X-Permitted-Cross-Domain-Policies": "none",
}
OF_DOCS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{STYLE_HASH}'; sandbox",
}
"""For the answer to `/docs`."""
_OF_PAGE: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
    "base-uri 'self'; frame-ancestors 'none'; object-src 'none'"
)
_PAGE_FEATURES: Final = ("clipboard-write", "fullscreen")
"""What pages of the console may use: they copy commands, and show a chart alone."""
CLEAR_SITE_DATA: Final = {"Clear-Site-Data": '"cache", "cookies", "storage"'}
"""For the answer to a log-off."""
_OVER_TLS: Final = {"Strict-Transport-Security": "max-age=31536000; includeSubDomains"}
"""Only there: over plain HTTP browsers ignore it, and a server on loopback would bind all others of that name. What a
proxy speaks to browsers is the proxy's to say."""


def headers_of_answer(scheme: str | None) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer, as ASGI takes them."""
    return _headers(scheme in ("https", "wss"))


def headers_of_page(nonce: str) -> dict[str, str]:
    """Return the headers of a page of the console that differ from those of all answers.

    `nonce` is another one for every answer; only styles that show it count.
    """
    features = _NO_FEATURES
    for feature in _PAGE_FEATURES:
        features = features.replace(f"{feature}=()", f"{feature}=(self)")
    return {"Content-Security-Policy": _OF_PAGE.format(nonce=nonce), "Permissions-Policy": features}


@cache
def _headers(is_tls: bool) -> list[tuple[bytes, bytes]]:
    headers = {**_ALWAYS, **(_OVER_TLS if is_tls else {})}
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


class SecureHeaders:
    """ASGI middleware. A route that sets one of the headers itself keeps its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        always = headers_of_answer(scope["scheme"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                own = list(message.get("headers", ()))
                names = {name.lower() for name, _ in own}
                message = {**message, "headers": own + [header for header in always if header[0] not in names]}
            await send(message)

        await self._app(scope, receive, send_with_headers)
