"""A small REST server with the routes of `docs/architecture.md` over plain dictionaries, for tests of clients.

It really listens on loopback and speaks the wire shapes; it runs nothing. A test puts nouns into it, and takes out what
was asked (`asked`) and uploaded (`uploads`). `failures` and `cut_after` script what goes wrong.
"""

import io
import json
import math
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from pliant.api.jobs import (
    ClusterView,
    EventPage,
    JobDetail,
    JobPage,
    JobPatch,
    JobRequest,
    LogFile,
    MetricPage,
    ProblemDetails,
    ProblemItem,
    SlotView,
    UsagePage,
    Why,
)
from pliant.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    PliantError,
    Problem,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from pliant.core.event import Event, Usage
from pliant.core.job import Generation, Job, JobId, Metric, Task
from pliant.core.lifecycle import JobState
from pliant.core.plan import NodeView, PolicyName

_STATUS: Final[Mapping[type[PliantError], int]] = {
    InvalidInput: 422,
    Unauthorized: 401,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    Unavailable: 503,
}
_PIECE: Final = 1013
"""Bytes of a log sent at once; cuts lines and letters apart."""

Query = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A submission as it arrived."""

    request: JobRequest
    files: Mapping[str, bytes]


@dataclass(slots=True)
class World:
    """What the server shows; a test may change it while the server runs."""

    token: str = "a-token"
    jobs: dict[str, Job] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    generations: list[Generation] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    logs: dict[tuple[str, str], bytes] = field(default_factory=dict)
    results: dict[str, bytes] = field(default_factory=dict)
    node: NodeView | None = None
    uploads: list[Upload] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Status and body of the next answers, whatever is asked."""
    cut_after: list[int] = field(default_factory=list)
    """Each of the next streams breaks off after so many pieces (events, or bytes of a log)."""
    end_new_jobs: Job | None = None
    """A job that is submitted takes state and reason of this one at once."""
    shut_down: bool = False
    """A client asked for it; the server goes on all the same."""
    closed: bool = False
    """No connection is answered any more."""

    def job(self, job_id: str) -> Job:
        """Return a job."""
        if job_id not in self.jobs:
            raise NotFound(f"no job {job_id!r}; `pliant ps --all` lists them")
        return self.jobs[job_id]


@contextmanager
def serve(world: World) -> Iterator[str]:
    """Serve a world on a free port of loopback; the value is its URL."""
    handler = type("Handler", (_Handler,), {"world": world})
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            world.closed = True
            server.shutdown()
            thread.join(10.0)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away in the middle of an answer; they may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    world: World
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        if self.world.closed:
            self.close_connection = True
            return
        url = urlsplit(self.path)
        self.world.asked.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        try:
            if self.world.failures:
                self._send(*self.world.failures.pop(0))
                return
            if self.headers.get("Authorization") != f"Bearer {self.world.token}" and url.path != "/v1/healthz":
                raise Unauthorized("the token does not open this server; use the one in its home folder")
            self._route(url.path.removeprefix("/v1/").split("/"), parse_qs(url.query), body)
        except PliantError as error:
            self._refuse(error)
        except ValueError as error:  # a body that is not what the route takes
            self._refuse(InvalidInput(Problem(field="", message=str(error))))

    def _route(self, path: list[str], query: Query, body: bytes) -> None:
        """Answer one request."""
        match (self.command, *path):
            case ("GET", "events", "stream"):
                self._stream_events(query)
            case ("GET", "jobs", _, "logs", task_id, stream):
                self._stream_log(task_id, stream, query)
            case ("GET", "jobs", job_id, "result"):
                if job_id not in self.world.results:
                    raise NotFound(f"{job_id} has no results yet; wait until it has saved its model")
                self._send(200, self.world.results[job_id])
            case ("POST", "jobs"):
                self._send(201, _json(submit(self.world, self.headers["Content-Type"], body)))
            case ("POST", "shutdown"):
                self.world.shut_down = True
                self._send(202, b"")
            case _:
                self._send(200, _json(answer(self.world, self.command, path, query, body)))

    def _stream_events(self, query: Query) -> None:
        after = int(self.headers.get("Last-Event-ID") or query.get("after", ["0"])[0])
        job_id = query.get("job_id", [None])[0]
        self._begin_chunks("text/event-stream")
        left = self.world.cut_after.pop(0) if self.world.cut_after else len(self.world.events) + 1
        for event in [e for e in self.world.events if e.seq > after and job_id in (None, e.job_id)]:
            if left == 0:
                self._chunk(b'id: 99\ndata: {"half":')
                self.close_connection = True
                return
            left -= 1
            self._chunk(b": keep alive\n\n")
            self._chunk(f"id: {event.seq}\nevent: {event.kind}\ndata: {_json(event).decode()}\n\n".encode())
        self._chunk(b"")

    def _stream_log(self, task_id: str, stream: str, query: Query) -> None:
        if (task_id, stream) not in self.world.logs:
            raise NotFound(f"task {task_id!r} has no log {stream!r}; `pliant show JOB` lists the tasks")
        log = self.world.logs[task_id, stream][int(query.get("offset", ["0"])[0]) :]
        if "tail" in query:
            log = b"".join(log.splitlines(keepends=True)[-int(query["tail"][0]) :])
        self._begin_chunks("text/plain; charset=utf-8")
        if "follow" in query and self.world.cut_after:
            self._chunk(log[: self.world.cut_after.pop(0)])
            self.close_connection = True
            return
        for start in range(0, len(log), _PIECE):
            self._chunk(log[start : start + _PIECE])
        self._chunk(b"")

    def _begin_chunks(self, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _send(self, status: int, body: bytes | str) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, error: PliantError) -> None:
        items = [ProblemItem(field=p.field, message=p.message) for p in getattr(error, "problems", ())]
        status = _STATUS.get(type(error), 500)
        details = ProblemDetails(title=type(error).__name__, status=status, detail=str(error), problems=items)
        self._send(status, details.model_dump_json())


def answer(world: World, method: str, path: list[str], query: Query, body: bytes) -> object:
    """Return the noun that a plain route answers with."""
    match (method, *path):
        case ("GET", "healthz"):
            return {"status": "ok"}
        case ("GET", "jobs"):
            return job_page(world, query)
        case ("GET", "cluster"):
            return cluster_view(world)
        case ("GET", "events"):
            return event_page(world, query)
        case ("GET", "usage"):
            return UsagePage(points=tuple(world.usage), now=1000.0)
        case ("GET", "jobs", job_id):
            return job_detail(world, world.job(job_id))
        case ("PATCH", "jobs", job_id):
            return change(world, world.job(job_id), JobPatch.model_validate_json(body))
        case ("POST", "jobs", job_id, "stop"):
            return stop(world, world.job(job_id))
        case ("GET", "jobs", job_id, verb):
            return _OF_JOB[verb](world, world.job(job_id), query)
    raise NotFound(f"no route {method} /{'/'.join(path)}")


def submit(world: World, content_type: str, body: bytes) -> Job:
    """Take an upload apart, keep it and make a waiting job of it."""
    parts: dict[object, bytes] = {}
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        parts[part.get_param("name", header="content-disposition")] = content
    request = JobRequest.model_validate_json(parts["job"])
    with tarfile.open(fileobj=io.BytesIO(parts["code"]), mode="r:gz") as tar:
        files = {m.name: file.read() for m in tar if (file := tar.extractfile(m)) is not None}
    world.uploads.append(Upload(request=request, files=files))
    spec = request.spec()
    job = Job(
        id=JobId(f"job-{len(world.jobs) + 1}"),
        spec=spec,
        owner="admin",
        state=JobState.PENDING,
        priority=spec.priority,
        min_tasks=spec.min_tasks,
        max_tasks=spec.max_tasks,
        submitted_at=100.0,
    )
    end = world.end_new_jobs
    world.jobs[job.id] = job if end is None else replace(job, state=end.state, reason=end.reason)
    return job


def job_page(world: World, query: Query) -> JobPage:
    """Return jobs newest first."""
    found = [j for j in reversed(world.jobs.values()) if not query.get("state") or j.state.value in query["state"]]
    if "before" in query:
        found = found[[j.id for j in found].index(JobId(query["before"][0])) + 1 :]
    limit = int(query.get("limit", ["100"])[0])
    return JobPage(jobs=tuple(found[:limit]), next=found[limit - 1].id if len(found) > limit else None)


def job_detail(world: World, job: Job) -> JobDetail:
    """Return a job with its tasks and generations."""
    return JobDetail(
        job=job,
        tasks=tuple(task for task in world.tasks.values() if task.job_id == job.id),
        generations=tuple(generation for generation in world.generations if generation.job_id == job.id),
    )


def change(world: World, job: Job, patch: JobPatch) -> Job:
    """Change a job that has not ended; a fixed one only in its priority."""
    if job.ended:
        raise Conflict(f"{job.id} has ended ({job.state.value}); it cannot be changed any more")
    if job.spec.fixed and patch.model_fields_set & {"min_tasks", "max_tasks"}:
        raise Conflict(f"{job.id} is fixed at {job.max_tasks}; submit it again with another --fixed")
    world.jobs[job.id] = replace(job, **patch.model_dump(exclude_unset=True))
    return world.jobs[job.id]


def stop(world: World, job: Job) -> Job:
    """Stop a job at once."""
    if not job.ended:
        world.jobs[job.id] = replace(job, state=JobState.STOPPED, reason="stopped by admin", num_slots=0)
    return world.jobs[job.id]


def event_page(world: World, query: Query) -> EventPage:
    """Return events in order."""
    after, limit = int(query.get("after", ["0"])[0]), int(query.get("limit", ["1000"])[0])
    job_id = query.get("job_id", [None])[0]
    found = [e for e in world.events if e.seq > after and job_id in (None, e.job_id)][:limit]
    return EventPage(events=tuple(found), last=found[-1].seq if found else after)


def cluster_view(world: World) -> ClusterView:
    """Return the pool."""
    nodes = () if world.node is None else (world.node,)
    holders = {(t.node_id, slot): t for t in world.tasks.values() if not t.ended for slot in t.slots}
    slots = []
    for node in nodes:
        for slot in node.slots:
            task = holders.get((node.id, slot))
            job_id, task_id = (task.job_id, task.id) if task else (None, None)
            taken = job_id is not None
            slots.append(SlotView(node_id=node.id, slot=slot, taken=taken, job_id=job_id, task_id=task_id))
    return ClusterView(policy=PolicyName.FAIRSHARE, nodes=nodes, slots=tuple(slots), version="0.1.0", now=1000.0)


def _why(world: World, job: Job, _query: Query) -> Why:
    history = tuple(e for e in reversed(world.events) if e.job_id == job.id and e.kind == "decision")
    return Why(
        job_id=job.id,
        state=job.state.value,
        num_tasks=sum(1 for t in world.tasks.values() if t.job_id == job.id and not t.ended),
        target_tasks=job.max_tasks,
        sentence=job.why,
        history=history,
    )


def _metrics(world: World, job: Job, query: Query) -> MetricPage:
    after = int(query.get("after_step", ["-1"])[0])
    names = query.get("name", [])
    points = [m for m in world.metrics if m.job_id == job.id and m.step > after and (not names or m.name in names)]
    return MetricPage(points=tuple(points))


def _logs(world: World, job: Job, _query: Query) -> tuple[LogFile, ...]:
    return tuple(
        LogFile(task_id=task_id, stream=stream, num_bytes=len(data))
        for (task_id, stream), data in world.logs.items()
        if task_id.startswith(f"{job.id}.")
    )


_OF_JOB: Final[Mapping[str, Callable[[World, Job, Query], object]]] = {
    "why": _why,
    "metrics": _metrics,
    "logs": _logs,
}


def _json(noun: Any) -> bytes:
    return json.dumps(_plain(noun)).encode()


def _plain(noun: Any) -> Any:
    """Return a noun as what JSON has; a number that is not finite becomes null, as on the real server."""
    if is_dataclass(noun):
        return {field.name: _plain(getattr(noun, field.name)) for field in fields(noun)}
    if isinstance(noun, Mapping):
        return {name: _plain(value) for name, value in noun.items()}
    if isinstance(noun, list | tuple):
        return [_plain(value) for value in noun]
    return None if isinstance(noun, float) and not math.isfinite(noun) else noun
