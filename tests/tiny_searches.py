"""A server of searches whose answers a test says, for tests of those who ask; it keeps what was asked."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import TypeAdapter

from pliant.api.searches import SearchView, TrialPage
from pliant.core.errors import Problem
from pliant.core.job import JobId, JobSpec
from pliant.core.search import Objective, SearchSettings, SearchState, Trial, TrialState
from pliant.core.space import SearchParameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    body: Any
    """Its JSON, or that of the part `job` or `settings` beside code; None without."""


@dataclass(slots=True, kw_only=True)
class SearchServer:
    """What a test says of it, and sees of what came."""

    url: str = ""
    token: str = "t"
    answers: dict[str, list[Any]] = field(default_factory=dict)
    """By method and path, such as `GET /v1/searches`: one for each time, the last for ever. Each is a noun, bytes, a
    status, or a status with problems."""
    asked: list[Asked] = field(default_factory=list)

    def answer(self, route: str, *nouns: Any) -> None:
        """Say what is answered."""
        self.answers[route] = [*nouns]

    def sent(self, route: str) -> list[Any]:
        """Return the bodies that were sent to a route."""
        return [one.body for one in self.asked if f"{one.method} {one.path}" == route]

    def take(self, asked: Asked) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        self.asked.append(asked)
        left = self.answers.get(f"{asked.method} {asked.path}")
        if not left:
            return _problem(404, f"there is no {asked.path}")
        noun = left[0] if len(left) == 1 else left.pop(0)
        if isinstance(noun, tuple):
            return _problem(noun[0], "some of it is wrong", noun[1])
        if isinstance(noun, int):
            return (noun, b"") if noun < 400 else _problem(noun, "this is not possible now")
        return 200, noun if isinstance(noun, bytes) else TypeAdapter(type(noun)).dump_json(noun)


def _problem(status: int, detail: str, problems: tuple[Problem, ...] = ()) -> tuple[int, bytes]:
    found = [{"field": one.field, "message": one.message} for one in problems]
    return status, json.dumps({"title": "wrong", "status": status, "detail": detail, "problems": found}).encode()


@contextmanager
def search_server() -> Iterator[SearchServer]:
    """Serve on a port of loopback while the block runs."""
    server = SearchServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            at, length = urlsplit(self.path), int(self.headers.get("Content-Length", 0))
            asked = Asked(
                method=self.command, path=at.path, query=parse_qs(at.query), body=_body_of(self.rfile.read(length))
            )
            status, content = server.take(asked)
            self.send_response(status)
            kind = "application/json" if status < 400 else "application/problem+json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PATCH = do_DELETE = do_PUT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join(10.0)


def _body_of(content: bytes) -> Any:
    if found := re.search(rb'name="(?:job|settings)"\r\n\r\n(.*?)\r\n--', content, re.DOTALL):
        return json.loads(found[1])
    if b'name="code"' in content:
        return None
    return json.loads(content) if content else None


SETTINGS = SearchSettings(
    parameters={
        "lr": SearchParameter(kind="float", low=1e-5, high=0.1, log=True),
        "act": SearchParameter(kind="choice", choices=("relu", "gelu")),
    },
    objectives=(Objective(metric="val_loss", direction="minimize"),),
    max_trials=40,
)


def view(**fields: Any) -> SearchView:
    """Return a search as a server shows it."""
    given: dict[str, Any] = {
        "name": "digits",
        "owner": "ada",
        "settings": SETTINGS,
        "job": JobSpec(name="digits", script="train.py", virtual_workers=8, max_tasks=8),
        "state": SearchState.RUNNING,
        "reason": "",
        "created_at": 1.0,
        "ended_at": None,
        "ran_s": 90.0,
        "num_trials": 12,
        "num_known": 0,
        "trials": {TrialState.RUNNING: 3, TrialState.PAUSED: 2, TrialState.COMPLETED: 7},
        "best": trial(4),
        "progress": 0.175,
        "eta_s": 300.0,
        "num_at_once": 4,
        "why_at_once": "with more tpe chooses worse, and each trial may take several slots",
        "revision": 5,
    }
    return SearchView(**{**given, **fields})


def trial(number: int, **fields: Any) -> Trial:
    """Return a trial of that search."""
    given: dict[str, Any] = {
        "search": "digits",
        "number": number,
        "values": {"lr": 0.01 * (number + 1), "act": "relu"},
        "state": TrialState.COMPLETED,
        "job_id": JobId(f"job-{number + 10}"),
        "reports": ((1, 0.9), (2, 0.5)),
        "results": (0.5,),
        "begun_at": 10.0,
        "ended_at": 20.0,
    }
    return Trial(**{**given, **fields})


def page(*trials: Trial, next: int | None = None) -> TrialPage:
    """Return a page of trials."""
    return TrialPage(trials=trials, next=next)
