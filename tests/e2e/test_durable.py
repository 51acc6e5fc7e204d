"""`kill -9` of the server at random moments under load, on both databases: tasks train on, and nothing that was
acknowledged is lost, doubled or started again."""

import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.databases import new_database
from tests.e2e.load import Acknowledged, Load
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

from pliant.client import Client
from pliant.core.event import EventKind
from pliant.core.job import JobId
from pliant.core.ports import EventFilter
from pliant.store.sql import SqlStore

READOPT_S = 5.0
SECRET = "sesame-7f3a"
"""Stands in the URL as a password; the tests' PostgreSQL trusts whoever comes."""
NUM_KILLS = 2
NUM_POINTS = 20
NUM_JOBS = 10
"""The least number of points of a metric that are compared with the steps, however fast the machine is."""


@pytest.fixture(params=["sqlite", "postgresql"])
def pool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pool]:
    """A server that has not been started; its tasks have to find the next one on another port."""
    if request.param == "sqlite":
        yield from _pool(tmp_path, None)
        return
    with new_database() as url:
        yield from _pool(tmp_path, with_password(url))


def _pool(tmp_path: Path, database: str | None) -> Iterator[Pool]:
    pool = Pool(tmp_path / "home", slots=6, options=("--port", "0"), database=database)
    yield pool
    pool.close()


def with_password(url: str) -> str:
    """Return the URL with a password."""
    scheme, _, rest = url.partition("://")
    user, _, where = rest.partition("@")
    return f"{scheme}://{user}:{SECRET}@{where}"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_server_that_is_killed_at_random_moments_loses_nothing(pool: Pool, tmp_path: Path, pace: Pace) -> None:
    chance, starts = random.Random(20_260_721), tmp_path / "starts"
    starts.mkdir()
    pace.set(0.1)  # a step takes four, longer than the time between two reports: every step has a point
    pool.up()
    tasks = ("--min", "2", "--max", "2", "--virtual-workers", "8")
    training = pool.submit(HERE / "paced.py", *tasks, args=("--epochs", "1000", "--pace", str(pace)))
    with pool.client() as client:
        pids = pool.until(lambda: len(p := pids_of(pool, client, training)) == 2 and p, "two tasks train")
    with Load(pool, starts).applied() as told:
        for number in range(NUM_KILLS):
            threading.Event().wait(0.0 if number == 1 else chance.uniform(0.2, 2.5))  # the random moment
            pool.signal(signal.SIGKILL)
            took_s = until_readopted(pool, training)
            allowed_s = READOPT_S + pool.starved_s()
            assert took_s < allowed_s, f"the tasks were taken up after {took_s:.1f} s, allowed {allowed_s:.1f} s"
            with pool.client() as client:
                assert pids_of(pool, client, training) == pids
        shows_nothing_secret(pool, pids)
        pool.until(lambda: len(told.jobs) > NUM_JOBS, "enough jobs to compare")
    with pool.client() as client:
        pool.until(lambda: progress(client, training) > NUM_POINTS, "enough steps to compare")
    assert told.num_refused > 0, "nobody noticed that the server was killed"
    pool.close()
    check(pool, told, JobId(training), starts)


def until_readopted(pool: Pool, job_id: str) -> float:
    """Start the next server; return when the training's progress is heard of again, seconds after it was there.

    What Python needs until then to import the program is the machine's matter, not the server's.
    """
    pool.up()
    began_at = float(json.loads((pool.home / "server.json").read_text())["started_at"])
    with pool.client() as client:
        before = progress(client, job_id)
        return pool.lacked_s(
            lambda: progress(client, job_id) > before, "the tasks have found the server", since=began_at
        )


def progress(client: Client, job_id: str) -> int:
    found = client.job(job_id).job.progress
    return 0 if found is None else found.step


def pids_of(pool: Pool, client: Client, job_id: str) -> set[int]:
    return {task.pid for task in pool.training(client, job_id) if task.pid is not None}


def shows_nothing_secret(pool: Pool, pids: set[int]) -> None:
    """The password of the database is in no list of processes, no log, and no task."""
    assert pool.process is not None
    for pid in (pool.process.pid, *pids):
        assert SECRET.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    for pid in pids:
        assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    assert SECRET not in pool.log()


def check(pool: Pool, told: Acknowledged, training: JobId, starts: Path) -> None:
    """Compare what was acknowledged with what the database holds."""
    store = SqlStore(pool.database or f"sqlite:///{pool.home / 'pliant.db'}")
    try:
        jobs = {job.id: job for job in store.jobs(limit=10_000)}
        events = store.events(EventFilter(limit=100_000))
        points = store.metrics(training, names=["loss"])
        tasks = store.tasks()
    finally:
        store.close()
    assert told.jobs <= jobs.keys()
    for job_id, asked in told.priorities.items():
        assert jobs[JobId(job_id)].priority in asked, job_id
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    stored = [(event.seq, str(event.kind), event.message) for event in events]
    assert told.seen
    assert told.seen == stored[: len(told.seen)], "a follower saw what is not stored, or missed something"
    assert sum(event.kind is EventKind.SERVER_STARTED for event in events) == NUM_KILLS + 1
    steps = [point.step for point in points]
    assert len(steps) >= NUM_POINTS
    assert all(after == before + 1 for before, after in pairwise(steps)), steps
    assert len({task.id for task in tasks}) == len(tasks)
    assert sum(task.job_id == training for task in tasks) == 2, "the training's tasks were replaced"
    counts = Counter(file.name.rpartition("-")[0] for file in starts.iterdir())
    assert counts
    assert set(counts.values()) == {1}, "a task was started twice"
    assert_recorded_once(pool, counts)


def assert_recorded_once(pool: Pool, counts: dict[str, int]) -> None:
    """Every process that noted its start is the one that the agent has recorded for its task."""
    for task_id in counts:
        record: dict[str, Any] = json.loads((pool.home / "agent" / f"{task_id}.json").read_text())
        assert record["pid"] is not None, task_id
