"""The audit trail: writes down every request that changes something, every log-on, and every refusal.

An entry is written before the answer is sent, so that no answered change is missing, also if the server ends then; of
many refusals that are like each other the most are only counted (`refusals.py`). An entry holds no query string, no
header and no body: those can hold secrets. The trail does not know what a route does.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pliant.core.access import Principal
from pliant.core.errors import PliantError
from pliant.core.ports import Clock
from pliant.core.registry import AuditEntry, AuditLog
from pliant.server.middleware.refusals import RefusalCounts

log = logging.getLogger(__name__)

LOG_ON: Final = "log on"
"""The action of a caller who gives a password."""
LOG_ON_BY_LINK: Final = "log on by link"
"""The action of a browser that comes by a one-time link. It is another one: it proves no password."""

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REFUSALS: Final = frozenset({401, 403})
_KEY: Final = "pliant.trace"
_MAX_PATH: Final = 300
_TASK: Final = re.compile(r"[A-Za-z0-9._-]{1,60}")


@dataclass(slots=True, kw_only=True)
class AuditTrace:
    """What the rest of the server adds to the audit entries of one request."""

    who: str = ""
    """Who sent it, once they are authenticated."""
    sees_all: bool = False
    """They run the server, or help to."""
    logon: str | None = None
    """The account that a password was given for, empty if there is no such account; None if none was given.

    A name that nobody has is not kept: people type passwords there."""
    changes_nothing: bool = False
    """The request asks something, though its method is one of those that change things."""
    is_logon: bool = False
    """The request is to log on, and nothing else."""
    logon_action: str = LOG_ON

    def know(self, caller: Principal) -> None:
        """Note who sent the request."""
        self.who, self.sees_all = caller.name, caller.sees_all


def trace_of(connection: HTTPConnection) -> AuditTrace:
    """Return the trace of a request."""
    trace = connection.scope.setdefault(_KEY, AuditTrace())
    assert isinstance(trace, AuditTrace)
    return trace


def trace_in(scope: Scope) -> AuditTrace | None:
    """Return the trace of a request by its scope; None if it has none."""
    trace: AuditTrace | None = scope.get(_KEY)
    return trace


class AuditTrail:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, audit: AuditLog, clock: Clock, refusals: RefusalCounts) -> None:
        self._app = app
        self._audit = audit
        self._clock = clock
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        trace = scope[_KEY] = AuditTrace()
        answered = False

        async def send_audited(message: Message) -> None:
            nonlocal answered
            if not answered and (status := _status(message)) is not None:
                answered = True
                await self._write(scope, trace, status)
            await send(message)

        try:
            await self._app(scope, receive, send_audited)
        except Exception:
            if not answered:
                await self._write(scope, trace, 500)
            raise

    async def _write(self, scope: Scope, trace: AuditTrace, status: int) -> None:
        """Write the entries of a request, but for those that are only counted."""
        for entry in _entries(scope, trace, status, self._clock.now()):
            refused = 400 <= entry.status < 500
            entries = self._refusals.admit(entry) if refused else (entry,)
            if entries:
                await run_in_threadpool(write_entries, self._audit, entries)


def write_entries(audit: AuditLog, entries: Iterable[AuditEntry]) -> None:
    """Write entries. A log that cannot be written does not undo what a request did."""
    for entry in entries:
        try:
            audit.append(entry)
        except PliantError:
            log.exception("the audit log could not be written; it lacks %s", entry)


def _status(message: Message) -> int | None:
    """Return the status that a message answers with; None if it does not answer."""
    match message["type"]:
        case "http.response.start" | "websocket.http.response.start":
            return int(message["status"])
        case "websocket.accept":
            return 101
        case "websocket.close":
            return 403
        case _:
            return None


def _entries(scope: Scope, trace: AuditTrace, status: int, now: float) -> Iterator[AuditEntry]:
    address = _address(scope)
    if trace.logon is not None:
        logon_status = 200 if trace.who else status
        action, target = trace.logon_action, trace.logon
        yield AuditEntry(at=now, who=trace.who, action=action, target=target, status=logon_status, address=address)
        if trace.is_logon:
            return
    changes = scope["type"] == "http" and scope["method"] not in _READING and not trace.changes_nothing
    if changes or status in _REFUSALS:
        action = f"{scope.get('method', 'LINK')} {_path(scope)}"
        yield AuditEntry(at=now, who=trace.who, action=action, target=_target(scope), status=status, address=address)


def _path(scope: Scope) -> str:
    """Return the path as it was sent, without its query: percent-encoded, so that it holds printable letters only."""
    raw = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")
    return str(raw.partition(b"?")[0].decode("ascii", "backslashreplace"))[:_MAX_PATH]


def _target(scope: Scope) -> str:
    """Return the task of a control link."""
    if scope["type"] != "websocket":
        return ""
    (task_id, *_) = parse_qs(scope["query_string"].decode("latin-1")).get("task", [""])
    return task_id if _TASK.fullmatch(task_id) else ""


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
