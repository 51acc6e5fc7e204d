"""A browser, as far as an attack needs one: what it sends, its session in a cookie, and one-time links."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Final

from tests.attack.target import Target

PAGE: Final = {"Accept": "text/html,application/xhtml+xml"}
CONSOLE: Final = {"X-Pliant-Console": "1"}
JSON: Final = {"Content-Type": "application/json"}
EVIL: Final = "evil.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    """By their names in small letters."""
    body: bytes


def ask(target: Target, request: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
    """Send `METHOD /path`, as it is written, with these headers alone; `Host` is the server's own if none is given."""
    method, _, path = request.partition(" ")
    host, port = target.address
    connection = HTTPConnection(host, port, timeout=10.0)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sent = {"Host": f"{host}:{port}", "Content-Length": str(len(body)), **(headers or {})}
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return Answer(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.getheaders()},
            body=answer.read(),
        )
    finally:
        connection.close()


def cookie(target: Target, token: str = "", port: int | None = None) -> dict[str, str]:
    """Return Ada's session, or another token, as her browser sends it."""
    return {"Cookie": f"pliant_{target.pool.port if port is None else port}={token or target.tokens['ada']}"}


def own(target: Target) -> dict[str, str]:
    """Return what Ada's browser sends with a change that her console asks for."""
    host, port = target.address
    return {**cookie(target), **CONSOLE, "Origin": f"http://{host}:{port}"}


def link_of_ada(target: Target) -> bytes:
    """Let Ada make a link; return the body that redeems it."""
    made = ask(target, "POST /v1/logon/links", {"Authorization": f"Bearer {target.tokens['ada']}"})
    return json.dumps({"code": json.loads(made.body)["code"]}).encode()


def redeem(target: Target, code: bytes, headers: Mapping[str, str] | None = None) -> Answer:
    """Log a browser on by a link, as the console's own page does."""
    host, port = target.address
    page = {**CONSOLE, "Origin": f"http://{host}:{port}", "Content-Type": "application/json"}
    return ask(target, "POST /v1/logon/link", {**page, **(headers or {})}, code)
