"""Keeps the places of the server's files out of answers to people who do not run the server.

What is in its folder is told by its place there: `jobs/job-3/code`, not `/home/…/.pliant/jobs/job-3/code`. When the
server itself fails (the database, a disk), places and URLs are left out as a whole; the server's log has them. Logs,
results and other files of people pass as they are, and operators and administrators are told everything.
"""

import json
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.server.middleware.audit import AuditTrace, trace_in

log = logging.getLogger(__name__)

_FAILED: Final = frozenset({500, 503, 507})
_PLACE: Final = re.compile(rb"(?:[a-z][a-z+]*:/+|(?<![\w/<.])/)[^\s,;'\"()\\]*\w")
_LEFT_OUT: Final = b"[left out]"
_JSON: Final = ("application/json", "application/problem+json", "text/event-stream")


class HiddenPlaces:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, folders: Iterable[Path]) -> None:
        self._app = app
        outermost = _outermost(folders)
        self._folders = {way: [_Folder(folder, is_json=way) for folder in outermost] for way in (True, False)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start: Message = {}
        held = hides = False

        async def send_hidden(message: Message) -> None:
            nonlocal start, held, hides
            if message["type"] == "http.response.start":
                start, hides = message, _tells(message) and not _runs_the_server(scope)
                held = hides and "content-length" in Headers(raw=message.get("headers", []))
                if held:
                    return  # its body may have another length
            elif hides and message["type"] == "http.response.body":
                message = {**message, "body": self._hide(message.get("body", b""), scope, start)}
                if held:
                    await send(_resized(start, message))
                    held = False
            await send(message)

        await self._app(scope, receive, send_hidden)

    def _hide(self, body: bytes, scope: Scope, start: Message) -> bytes:
        hidden = body
        for folder in self._folders[_is_json(start)]:
            hidden = folder.hide(hidden)
        if start["status"] in _FAILED:
            hidden = _PLACE.sub(_LEFT_OUT, hidden)
            if hidden != body:
                log.warning("%s %s failed: %s", scope["method"], scope["path"], body.decode(errors="replace"))
        return hidden


class _Folder:
    """A folder as it is written in JSON, or in a text."""

    def __init__(self, folder: Path, *, is_json: bool) -> None:
        text = str(folder)
        written = [json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]] if is_json else [text]
        self._ways = tuple(dict.fromkeys(way.encode("utf-8", "surrogateescape") for way in written))
        either = b"|".join(re.escape(way) for way in self._ways)
        self._pattern = re.compile(rb"(?<![\w.-])(?:" + either + rb")(?:(/)(?=[\w.])|(?![\w.-]))")

    def hide(self, text: bytes) -> bytes:
        """Return a text without the folder: what is in it by its place there, the folder itself as a dot."""
        if not any(way in text for way in self._ways):
            return text
        return self._pattern.sub(lambda found: b"" if found[1] else b".", text)


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Return the folders, as they are given and as they are, without those that lie in another one."""
    every = {path for folder in folders for path in (folder, folder.resolve())}
    return sorted(path for path in every if not any(other in path.parents for other in every))


def _tells(start: Message) -> bool:
    """Tell whether an answer is the server's own words: JSON, or an error."""
    return start["status"] >= 400 or _is_json(start)


def _is_json(start: Message) -> bool:
    return Headers(raw=start.get("headers", [])).get("content-type", "").startswith(_JSON)


def _runs_the_server(scope: Scope) -> bool:
    trace: AuditTrace | None = trace_in(scope)
    return trace is not None and trace.sees_all


def _resized(start: Message, message: Message) -> Message:
    """Return the start of an answer whose body may have another length now; that of HEAD has none."""
    headers = MutableHeaders(raw=list(start["headers"]))
    if message["body"] and not message.get("more_body", False):
        headers["content-length"] = str(len(message["body"]))
    return {**start, "headers": headers.raw}
