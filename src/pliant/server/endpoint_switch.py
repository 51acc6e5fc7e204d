"""Starts and stops endpoints for those who ask a gateway for it. The routes of REST do it; nothing is decided here.

So the same rights and limits hold, and the same entries come into the audit log, whichever way somebody asks.
"""

import json
from typing import Any, Final

from starlette.types import ASGIApp, Message, Scope

from pliant.api.endpoints import require_endpoint_name
from pliant.core.errors import InvalidInput
from pliant.core.serving import Switch, SwitchOutcome

_PATH: Final = "/v1/endpoints"


async def switch_endpoint(app: ASGIApp, asked: Switch) -> SwitchOutcome:
    """Do what a gateway was asked for.

    Args:
        app: the application, with all that a request passes.
        asked: which endpoint, and for whom.
    """
    try:
        require_endpoint_name(asked.endpoint)
    except InvalidInput as error:
        return SwitchOutcome(number=asked.number, status=404, message=str(error))
    answer = _Answer()
    await app(_scope(asked, app), _receive, answer.take)
    said = json.loads(answer.body)
    if answer.status == 200:
        return SwitchOutcome(number=asked.number, status=200, revision=said["revision"])
    wait = answer.headers.get(b"retry-after", b"")
    retry_after_s = int(wait) if wait.isdigit() else None
    return SwitchOutcome(number=asked.number, status=answer.status, message=said["detail"], retry_after_s=retry_after_s)


def _scope(asked: Switch, app: ASGIApp) -> Scope:
    path = f"{_PATH}/{asked.endpoint}/{'start' if asked.start else 'stop'}"
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer " + asked.token.encode()), (b"content-length", b"0")],
        "client": (asked.address, 0),
        "server": None,
        "app": app,
    }


async def _receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


class _Answer:
    """What the application answers."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: dict[bytes, bytes] = {}
        self.body = b""

    async def take(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        else:
            self.body += message.get("body", b"")
