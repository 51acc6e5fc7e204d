"""What is written for one job: transactions and rows at its submission, start, change and end, and for each report.

The real control over a simulated cluster and a real database (SQLite, in a folder of its own). Everything that a job
causes is counted, whoever writes it; the processor time is that of the writes alone.
"""

import io
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from bench.growth.pools import nodes_of
from bench.plan import timed
from pliant.api.jobs import JobPatch
from pliant.api.link import encode
from pliant.control.loop.tick import Control
from pliant.control.settings import ControlSettings
from pliant.core.event import Event
from pliant.core.job import JobId, JobSpec, Progress, TaskId
from pliant.core.link import Point, Report
from pliant.core.ports import Writes
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster, SimTimes
from pliant.sim.tasks import SimTasks
from pliant.sim.training import SimWork
from pliant.store.sql import SqlStore

_TASKS: Final = 4
_LATER_S: Final = 15.0
"""All is done by then, and no training has stood still for so long that it is told."""
_NUM_SERIES: Final = 2
"""Points in each report: a loss and a metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written in one part of a job's life."""

    what: str
    transactions: int
    rows: int
    seconds: float
    """Processor time of the writes."""


class CountingStore(SqlStore):
    """A database, and what was written into it since it was asked last."""

    transactions = 0
    rows = 0
    seconds = 0.0

    def write(self, writes: Writes) -> tuple[Event, ...]:
        if writes.capacity:  # that the pool goes on is written now and then, whatever jobs do
            return super().write(writes)
        began = time.process_time()
        try:
            return super().write(writes)
        finally:
            self.seconds += time.process_time() - began
            self.transactions += 1
            self.rows += sum(len(getattr(writes, field.name)) for field in fields(writes))

    def next_id(self, name: str, how_many: int = 1) -> int:
        began = time.process_time()
        try:
            return super().next_id(name, how_many)
        finally:
            self.seconds += time.process_time() - began
            self.transactions += 1
            self.rows += 1


class CountedPool:
    """A pool, and what is written for what happens on it."""

    def __init__(self, store: CountingStore, home: Path, num_nodes: int = 1) -> None:
        self._store = store
        self._clock = VirtualClock()
        cluster = SimCluster(self._clock, nodes_of(num_nodes), SimTimes(start_s=0.05, exit_s=0.05, drain_s=None))
        work = SimWork(num_steps=10**9, step_s=1.0, virtual_workers=8, warm_s=1.0, report_s=1e9)
        tasks = SimTasks(self._clock, cluster, lambda _job_id: work)
        self.control = Control(
            store=store,
            cluster=cluster,
            links=tasks,
            clock=self._clock,
            settings=ControlSettings(home=home, url="", secret=b"simulated"),
        )
        tasks.connect(self.control)
        self.control.start()

    def count(self, what: str, work: Callable[[], object]) -> Written:
        """Return what something writes, and all that follows from it."""
        store = self._store
        transactions, rows, seconds = store.transactions, store.rows, store.seconds
        work()
        self._run()
        return Written(
            what=what,
            transactions=store.transactions - transactions,
            rows=store.rows - rows,
            seconds=store.seconds - seconds,
        )

    def _run(self) -> None:
        until = self._clock.now() + _LATER_S
        self._rest()
        while (at := self._next_at()) is not None and at < until:
            self._clock.advance(max(0.0, at - self._clock.now()))
            self._rest()
        self._clock.advance(until - self._clock.now())
        self._rest()

    def _next_at(self) -> float | None:
        return min((at for at in (self._clock.next_at(), self.control.wake_at()) if at is not None), default=None)

    def _rest(self) -> None:
        before = -1
        while before != self._store.transactions:
            before = self._store.transactions
            self.control.tick()


def measure(home: Path) -> list[Written]:
    """Return what is written in the life of an elastic job and of a fixed one, of four tasks each."""
    archive = home / "code.tar.gz"
    archive.write_bytes(_code())
    with closing(CountingStore(f"sqlite:///{home / 'pliant.db'}")) as store:
        pool = CountedPool(store, home)
        return [*_life_of_elastic(pool, archive), *_life_of_fixed(pool, archive)]


def _life_of_elastic(pool: CountedPool, archive: Path) -> Iterator[Written]:
    spec = JobSpec(name="elastic", script="train.py", max_tasks=_TASKS, virtual_workers=8)
    asked = pool.control.requests
    yield pool.count(
        f"elastic job: submitted, {_TASKS} tasks start, one and then the others",
        lambda: asked.submit(spec, archive, "ada"),
    )
    job_id = next(iter(pool.control.jobs()))
    pool.count("the first report, before statements are made", lambda: report(pool, job_id, 1))
    yield pool.count("elastic job: one report of its leader", lambda: report(pool, job_id, 2))
    patch = JobPatch(max_tasks=_TASKS // 2)
    yield pool.count(f"elastic job: from {_TASKS} tasks to {_TASKS // 2}", lambda: asked.change(job_id, patch))
    yield pool.count("elastic job: stopped, its tasks leave", lambda: asked.stop(job_id, "ada"))


def _life_of_fixed(pool: CountedPool, archive: Path) -> Iterator[Written]:
    spec = JobSpec(
        name="fixed", script="train.py", min_tasks=_TASKS, max_tasks=_TASKS, virtual_workers=_TASKS, fixed=True
    )
    asked = pool.control.requests
    yield pool.count(f"fixed job: submitted, {_TASKS} tasks start", lambda: asked.submit(spec, archive, "ada"))
    job_id = next(iter(pool.control.jobs()))
    yield pool.count("fixed job: stopped, its tasks leave", lambda: asked.stop(job_id, "ada"))


def report(pool: CountedPool, job_id: JobId, step: int) -> None:
    """Have the leader of a training say how far it is."""
    pool.control.receive(TaskId(f"{job_id}.1"), _said(pool.control.jobs()[job_id].job.generation, step))


def _said(generation: int, step: int) -> Report:
    progress = Progress(epoch=0, num_epochs=1, step=step, num_steps=10**6, samples=step, samples_per_s=1.0, loss=0.5)
    points = tuple(Point(name=f"series-{n}", step=step, epoch=0, at=float(step), value=0.5) for n in range(_NUM_SERIES))
    return Report(generation=generation, progress=progress, points=points)


def report_bytes() -> int:
    """Return the bytes of a report in a frame of a WebSocket that a client sends."""
    return len(encode(_said(2, 100_000), 1000)) + 8


def report_seconds(home: Path, num_jobs: int, num_each: int) -> float:
    """Return the processor time that the loop needs for one report, if so many jobs report in turn."""
    archive = home / "code.tar.gz"
    archive.write_bytes(_code())
    with closing(CountingStore(f"sqlite:///{home / 'pliant.db'}")) as store:
        pool = CountedPool(store, home, num_nodes=num_jobs)
        spec = JobSpec(name="elastic", script="train.py", max_tasks=1, virtual_workers=8)
        for _ in range(num_jobs):
            pool.control.requests.submit(spec, archive, "ada")
        pool.count("all start", lambda: None)
        for step in range(1, num_each + 1):
            for job_id in pool.control.jobs():
                report(pool, job_id, step)
        return timed(pool.control.tick) / 1000 / num_each / num_jobs


def _code() -> bytes:
    """Return a packed folder with a script that nobody runs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("train.py"))
    return out.getvalue()
