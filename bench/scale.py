"""How the server answers when it holds much, and when many look on.

Much: 10,000 jobs and 1,000,000 points of series (half of them in one series) in its database. Asked for over HTTP, one
after the other: pages of the list, the newest and deep ones, of one state, and charts. The claim: 200 ms each.

Many: 200 clients, each with two streams of its own, follow all events and the growing log of one task, while jobs are
changed several times a second so that there is something to tell. The claims: the control loop, which looks at
everything once a second, is never much later than that; every client gets every event and every line, in order.
"""

import argparse
import asyncio
import io
import json
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from bench._report import Claim, finish, head, spread, table, verdicts
from bench.peers.processes import Processes
from bench.peers.server import START_S, Server
from pliant.client.http.home import read_record, read_token
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId, JobSpec, Metric, Progress
from pliant.core.lifecycle import JobState
from pliant.core.ports import Writes
from pliant.store.sql import SqlStore

NUM_JOBS = 10_000
LONG_SERIES = 500_000
NUM_OTHERS = 500
POINTS_OF_OTHERS = 1000
BATCH = 5000
LIMIT_MS = 200.0
NUM_CALLS = 20
NUM_CLIENTS = 200
TICK_LIMIT_S = 1.5
"""The loop sleeps a second at most; half of one is left for the work itself and for who measures."""

NUM_LINES = 400
LINES_PER_S = 20.0
CHANGES_PER_S = 4.0
SCRIPT = f"""
import sys, time
for number in range({NUM_LINES}):
    print(number, flush=True)
    time.sleep({1 / LINES_PER_S})
time.sleep(3600)
"""
"""An ordinary program that prints a line now and then; it is ended when all was seen."""


def fill(home: Path) -> None:
    """Write jobs and points into the database of a home."""
    home.mkdir(mode=0o700)
    store = SqlStore(f"sqlite:///{home / 'pliant.db'}")
    spec = JobSpec(name="train", script="train.py", max_tasks=8, virtual_workers=8)
    states = (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)
    progress = Progress(epoch=3, num_epochs=3, step=300, num_steps=300, samples=19_200, samples_per_s=640.0, loss=0.25)
    for start in range(0, NUM_JOBS, BATCH):
        jobs = [_job(number, spec, states[number % 3], progress) for number in range(start + 1, start + BATCH + 1)]
        events = [
            Event(at=job.submitted_at, kind=EventKind.JOB_SUBMITTED, message=f"{job.id} was submitted", job_id=job.id)
            for job in jobs
        ]
        store.write(Writes(jobs=tuple(jobs), events=tuple(events)))
    for _ in range(NUM_JOBS):
        store.next_id("job")
    _fill_series(store, JobId("job-1"), LONG_SERIES)
    for number in range(2, NUM_OTHERS + 2):
        _fill_series(store, JobId(f"job-{number}"), POINTS_OF_OTHERS)
    store.close()


def _job(number: int, spec: JobSpec, state: JobState, progress: Progress) -> Job:
    return Job(
        id=JobId(f"job-{number}"),
        spec=replace(spec, name=f"train-{number}"),
        owner="admin",
        state=state,
        priority=5000,
        min_tasks=1,
        max_tasks=8,
        submitted_at=1e9 + number,
        started_at=1e9 + number + 1,
        ended_at=1e9 + number + 60,
        progress=progress,
    )


def _fill_series(store: SqlStore, job_id: JobId, num_points: int) -> None:
    for start in range(0, num_points, BATCH):
        steps = range(start, min(start + BATCH, num_points))
        store.write(
            Writes(
                metrics=tuple(
                    Metric(job_id=job_id, name="loss", step=s, epoch=s // 100, at=1e9 + s, value=1 / (1 + s % 997))
                    for s in steps
                )
            )
        )


@contextmanager
def served(home: Path) -> Iterator[httpx.Client]:
    """Serve the home of a folder with a real server; give a client of it."""
    processes = Processes(home.parent / "server.log")
    try:
        Server(home.parent, processes, slots=1)
        headers = {"Authorization": f"Bearer {read_token(home)}"}
        with httpx.Client(base_url=f"{read_record(home).url}/v1", headers=headers, timeout=60) as client:
            yield client
    finally:
        processes.end()


def timed(call: Callable[[], httpx.Response]) -> list[float]:
    """Return how long a call took, several times, milliseconds; the first is not counted."""
    times = []
    for number in range(NUM_CALLS + 1):
        began = time.perf_counter()
        call().raise_for_status()
        if number:
            times.append((time.perf_counter() - began) * 1000)
    return times


def much(client: httpx.Client) -> dict[str, list[float]]:
    """Ask for pages and charts; return the times of each, milliseconds."""

    def get(path: str, **params: str | int) -> Callable[[], httpx.Response]:
        return lambda: client.get(path, params=params)

    calls = {
        "the newest 100 jobs": get("/jobs", limit=100),
        "100 jobs in the middle": get("/jobs", limit=100, before="job-5000"),
        "the oldest 100 jobs": get("/jobs", limit=100, before="job-101"),
        "100 failed jobs in the middle": get("/jobs", limit=100, before="job-5000", state="failed"),
        f"a chart of {LONG_SERIES:,} points": get("/jobs/job-1/chart"),
        "the same in 5,000 buckets": get("/jobs/job-1/chart", max_buckets=5000),
        "a tenth of it": get("/jobs/job-1/chart", first_step=100_000, last_step=150_000),
        f"a chart of {POINTS_OF_OTHERS:,} points": get("/jobs/job-7/chart"),
        "1,000 events in the middle": get("/events", after=5000, limit=1000),
        "(nothing but an answer: /healthz)": get("/healthz"),
    }
    return {name: timed(call) for name, call in calls.items()}


@dataclass(slots=True)
class Follower:
    """What one client got."""

    events: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What came of many looking on."""

    ages_s: list[float]
    """How long ago the loop had ticked, looked at all the time, seconds."""
    num_events: int
    num_lines: int
    num_whole: int
    """Clients that got every event and every line in order."""
    deliveries: int


def many(client: httpx.Client) -> Watched:
    """Let clients follow events and a log while something happens."""
    return asyncio.run(_follow(str(client.base_url), client.headers["Authorization"]))


async def _follow(url: str, token: str) -> Watched:
    followers = [Follower() for _ in range(NUM_CLIENTS)]
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": token}, timeout=120, limits=limits) as http:
        first = await _last_event(http)
        running, waiting = await _submit(http), await _submit(http)
        await _until(lambda: _has_log(http, running))
        streams = [
            asyncio.create_task(run)
            for follower in followers
            for run in (_events(http, follower, first), _lines(http, follower, running))
        ]
        ages: list[float] = []
        looking = asyncio.create_task(_look(http, ages))
        await _stir(http, waiting)
        last = await _last_event(http)
        await _until(lambda: _all_seen(followers, last))
        for stream in (*streams, looking):
            stream.cancel()
        await asyncio.gather(*streams, looking, return_exceptions=True)
        for job in (running, waiting):
            (await http.post(f"/jobs/{job}/stop")).raise_for_status()
    events, lines = list(range(first + 1, last + 1)), list(range(NUM_LINES))
    return Watched(
        ages_s=ages,
        num_events=len(events),
        num_lines=len(lines),
        num_whole=sum(f.events[: len(events)] == events and f.lines == lines for f in followers),
        deliveries=sum(len(f.events) + len(f.lines) for f in followers),
    )


async def _submit(http: httpx.AsyncClient) -> str:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("lines.py")
        info.size = len(SCRIPT)
        tar.addfile(info, io.BytesIO(SCRIPT.encode()))
    body = {"script": "lines.py", "fixed": True}
    files: dict[str, tuple[str | None, bytes]] = {
        "job": (None, json.dumps(body).encode()),
        "code": ("code.tar.gz", out.getvalue()),
    }
    answer = await http.post("/jobs", files=files)
    answer.raise_for_status()
    return str(answer.json()["id"])


async def _has_log(http: httpx.AsyncClient, job: str) -> bool:
    return bool((await http.get(f"/jobs/{job}/logs")).json())


async def _all_seen(followers: Sequence[Follower], last: int) -> bool:
    return all(f.events and f.events[-1] >= last and len(f.lines) >= NUM_LINES for f in followers)


async def _last_event(http: httpx.AsyncClient) -> int:
    last = 0
    while (page := (await http.get("/events", params={"after": last, "limit": 10_000})).json())["events"]:
        last = page["last"]
    return last


async def _events(http: httpx.AsyncClient, follower: Follower, after: int) -> None:
    async with http.stream("GET", "/events/stream", params={"after": after}) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("id:"):
                follower.events.append(int(line[3:]))


async def _lines(http: httpx.AsyncClient, follower: Follower, job: str) -> None:
    path = f"/jobs/{job}/logs/{job}.1/stdout"
    async with http.stream("GET", path, params={"follow": True, "offset": 0}) as answer:
        async for line in answer.aiter_lines():
            follower.lines.append(int(line))


async def _look(http: httpx.AsyncClient, ages: list[float]) -> None:
    while True:
        ages.append((await http.get("/healthz")).json()["tick_age_s"])
        await asyncio.sleep(0.02)


async def _stir(http: httpx.AsyncClient, job: str) -> None:
    """Change a job that waits, so that there are events, for as long as the lines are printed."""
    deadline = time.monotonic() + NUM_LINES / LINES_PER_S
    priority = 1000
    while time.monotonic() < deadline:
        priority += 1
        (await http.patch(f"/jobs/{job}", json={"priority": priority})).raise_for_status()
        await asyncio.sleep(1 / CHANGES_PER_S)


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(START_S):
        while not await condition():
            await asyncio.sleep(0.05)


def main() -> int:
    """Measure, write the report; the exit status is 1 if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plb-") as folder:
        home = Path(folder) / "home"
        began = time.perf_counter()
        fill(home)
        filled_s = time.perf_counter() - began
        with served(home) as client:
            times = much(client)
            watched = many(client)
    claims = [
        Claim(
            text=f"{name}: {LIMIT_MS:.0f} ms",
            found=f"{statistics.median(found):.1f} ms",
            holds=statistics.median(found) <= LIMIT_MS,
        )
        for name, found in times.items()
    ]
    latest = max(watched.ages_s)
    claims += [
        Claim(
            text=f"the loop is late by half a second at most with {NUM_CLIENTS} clients",
            found=f"at most {latest:.2f} s between two looks",
            holds=latest <= TICK_LIMIT_S,
        ),
        Claim(
            text="every client gets every event and every line in order",
            found=f"{watched.num_whole} of {NUM_CLIENTS}",
            holds=watched.num_whole == NUM_CLIENTS,
        ),
    ]
    text = "\n".join(
        (
            head("Much in the database, many looking on", "python -m bench.scale"),
            __doc__.partition("\n")[2] if __doc__ else "",
            f"Writing it took {filled_s:.0f} s.\n",
            table(("asked for", "ms"), *((name, spread(found)) for name, found in times.items())),
            f"{NUM_CLIENTS} clients got {watched.deliveries:,} events and lines in all, of {watched.num_events} events "
            f"and {watched.num_lines} lines each. The loop was looked at {len(watched.ages_s)} times.\n",
            verdicts(claims),
        )
    )
    return finish(text, claims, given.out)


if __name__ == "__main__":
    sys.exit(main())
