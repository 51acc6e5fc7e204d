"""Requests as they were sent: what a trusted proxy says of them, and without the path that it shows the server below.

    X-Forwarded-For    who sent it: of the addresses, from the right, the first that is no proxy of ours
    X-Forwarded-Proto  `https` if it came over TLS
    X-Forwarded-Host   the name and port that it was sent to

Each proxy adds to the right of what it was sent, so what stands there is the proxy's word and all before it a
stranger's. From any other address these headers say nothing, and are left as they are. Everything behind this
middleware (throttle, audit log, cookies, origins) sees a request as if there were no proxy.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.core.address import parse_address
from pliant.server.site import Site

_HOST: Final = re.compile(r"(?=.{1,260}$)([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_WITH_PORT: Final = re.compile(r"\[([^\]]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
_SECURE: Final = {"http": "https", "ws": "wss", "https": "https", "wss": "wss"}
_CLEAR: Final = {secure: clear for clear, secure in _SECURE.items() if clear != secure} | {"http": "http", "ws": "ws"}


class ForwardedRequests:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        scope = _without_proxy(scope, self._site)
        if not self._site.root_path:
            await self._app(scope, receive, send)
            return
        scope, root_path = _below(scope, self._site.root_path), self._site.root_path

        async def send_below(message: Message) -> None:
            if message["type"] == "http.response.start" and 300 <= message["status"] < 400:
                _lead_below(message, scope, root_path)
            await send(message)

        await self._app(scope, receive, send_below)


def _without_proxy(scope: Scope, site: Site) -> Scope:
    """Return a request as the proxy that it comes from was sent it; as it is, if it comes from none that we trust."""
    client = scope.get("client")
    if client is None or not site.trusts(client[0]):
        return scope
    headers = Headers(scope=scope)
    changed: dict[str, Any] = {}
    address = _sender(list(_listed(headers, "x-forwarded-for")), client[0], site)
    if address != client[0]:
        changed["client"] = (address, 0)
    schemes = {"https": _SECURE, "http": _CLEAR}
    said = next(reversed(list(_listed(headers, "x-forwarded-proto"))), "").lower()
    changed["scheme"] = schemes.get(said, {}).get(scope["scheme"], scope["scheme"])
    host = next(reversed(list(_listed(headers, "x-forwarded-host"))), "")
    if _HOST.fullmatch(host):
        others = [header for header in scope["headers"] if header[0] != b"host"]
        changed["headers"] = [(b"host", host.encode()), *others]
    return {**scope, **changed}


def _sender(forwarded_for: list[str], proxy: str, site: Site) -> str:
    """Return who sent a request: the last address that is no proxy of ours, or the last that can be read."""
    sender = proxy
    for said in reversed(forwarded_for):
        found = _WITH_PORT.fullmatch(said)
        parsed = parse_address(said if found is None else found[1] or found[2])
        if parsed is None:
            return sender
        sender = str(parsed)
        if not site.trusts(sender):
            return sender
    return sender


def _listed(headers: Headers, name: str) -> Iterator[str]:
    """Yield what a header lists, which may be there more than once."""
    for value in headers.getlist(name):
        yield from (one.strip() for one in value.split(","))


def _below(scope: Scope, root_path: str) -> Scope:
    """Return a request with its path from `root_path` on; as it is, if the proxy has taken that away."""
    if not f"{scope['path']}/".startswith(f"{root_path}/"):
        return scope
    raw = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
    begins = raw.startswith(root_path.encode())  # whoever encodes letters that need none keeps their raw path
    return {
        **scope,
        "path": scope["path"].removeprefix(root_path) or "/",
        "raw_path": (raw.removeprefix(root_path.encode()) or b"/") if begins else raw,
    }


def _lead_below(message: Message, scope: Scope, root_path: str) -> None:
    """Let a redirect to this server itself lead below `root_path`."""
    headers = MutableHeaders(raw=list(message.get("headers", ())))
    own = f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}/"
    location = headers.get("location", "")
    if location.startswith(own):
        headers["location"] = f"{root_path}/{location.removeprefix(own)}"
        message["headers"] = headers.raw
