"""How long ticks of control take on pools of many sizes, in the simulator: the real loop, no disk and no links.

Half of the jobs are fixed and half elastic (`pools.pending_job`); they are in the store when the server starts, which
is as after a restart. A tick is what the loop does each time: `tick`, and finding out when the next one is due. All
begin by the virtual clock, so what is timed is the loop's own processor time.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.growth.pools import JOBS_PER_NODE, nodes_of, pending_job
from bench.plan import timed
from pliant.api.jobs import JobPatch
from pliant.control.loop.tick import Control
from pliant.control.settings import ControlSettings
from pliant.core.job import TaskId
from pliant.core.link import ToTask
from pliant.core.ports import Writes
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster, SimTimes
from pliant.sim.store import MemoryStore
from pliant.sim.tasks import SimTasks
from pliant.sim.training import SimWork

_WARM_S: Final = 1.0
_AT_REST_S: Final = 30.0
"""By then all are warm, and all who grow have grown."""
_SECOND_S: Final = 1.0
_FAR: Final = 10**9


@dataclass(slots=True, kw_only=True)
class TickTimes:
    """Milliseconds of processor time."""

    num_nodes: int
    num_jobs: int
    num_tasks: int = 0
    starting: list[float] = field(default_factory=list)
    """The ticks in which all jobs begin and grow."""
    changes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """The ticks after each of some changes, by what has changed."""


class _NoEnds(SimTasks):
    """Tasks that train for ever; what is sent to them is not kept."""

    def send(self, task_id: TaskId, message: ToTask) -> None:
        super().send(task_id, message)
        self.sent.clear()


class _BusyClock(VirtualClock):
    """A virtual clock that goes on while control works, as a real one would: a tick ends when it has taken long."""

    began_at: float | None = None
    """When the tick began, in processor time."""

    def now(self) -> float:
        worked_s = 0.0 if self.began_at is None else time.process_time() - self.began_at
        return super().now() + worked_s


class SimPool:
    """Control over a simulated pool, all jobs in its store."""

    def __init__(self, num_nodes: int, home: Path) -> None:
        self.clock = _BusyClock()
        self.cluster = SimCluster(self.clock, nodes_of(num_nodes), SimTimes(start_s=0.05, exit_s=0.05, drain_s=None))
        self.store = MemoryStore(self.clock.now)
        work = SimWork(num_steps=_FAR, step_s=1.0, virtual_workers=16, warm_s=_WARM_S, report_s=float(_FAR))
        self.tasks = _NoEnds(self.clock, self.cluster, lambda _job_id: work)
        jobs = [pending_job(number) for number in range(JOBS_PER_NODE * num_nodes)]
        self.store.write(Writes(jobs=tuple(jobs)))
        settings = ControlSettings(home=home, url="", secret=b"simulated")
        self.control = Control(
            store=self.store, cluster=self.cluster, links=self.tasks, clock=self.clock, settings=settings
        )
        self.tasks.connect(self.control)

    def tick(self) -> float:
        """Return what one tick took."""
        self.clock.began_at = time.process_time()
        taken = timed(self._tick)
        self.clock.began_at = None
        return taken

    def _tick(self) -> None:
        self.control.tick()
        self.control.wake_at()

    def ticks_to_rest(self) -> list[float]:
        """Return what the ticks took, until one wrote nothing; the last one is of them."""
        taken, before = [self.tick()], -1
        while before != self.store.num_writes:
            before = self.store.num_writes
            taken.append(self.tick())
        return taken

    def run(self, seconds: float) -> list[float]:
        """Let time pass, and return what the ticks took: whenever something happens, and until nothing more does."""
        until, taken = self.clock.now() + seconds, self.ticks_to_rest()
        while (at := self.clock.next_at()) is not None and at <= until:
            self.clock.advance(at - self.clock.now())
            taken += self.ticks_to_rest()
        self.clock.advance(until - self.clock.now())
        return taken + self.ticks_to_rest()


def measure(num_nodes: int, num_runs: int, home: Path) -> TickTimes:
    """Start all jobs of a pool of so many nodes, and change one thing after the other, each so many times."""
    pool = SimPool(num_nodes, home)
    pool.control.start()
    found = TickTimes(num_nodes=num_nodes, num_jobs=JOBS_PER_NODE * num_nodes)
    found.starting = pool.run(_AT_REST_S)
    found.num_tasks = len(pool.cluster.observe().tasks)
    fixed = [live.id for live in pool.control.jobs().values() if live.job.spec.fixed and live.running]
    elastic = [live for live in pool.control.jobs().values() if not live.job.spec.fixed and live.running]
    turns = range(num_runs)
    found.changes = {
        "nothing": [pool.tick() for _ in turns],
        "a priority was changed": [
            pool_after(pool, lambda n=n: pool.control.requests.change(elastic[n].id, JobPatch(priority=7000 + n)))  # type: ignore[misc]
            for n in turns
        ],
        "a fixed job was stopped": [
            pool_after(pool, lambda n=n: pool.control.requests.stop(fixed[n], "ada"))  # type: ignore[misc]
            for n in turns
        ],
    }
    return found


def pool_after(pool: SimPool, change: Callable[[], object]) -> float:
    """Return what the longest tick took of those that follow a change."""
    change()
    return max(pool.run(_SECOND_S))
