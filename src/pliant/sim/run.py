"""Plays a trace: the real control over a virtual clock, a simulated cluster and simulated tasks. Hours take seconds.

The clock jumps from one thing that happens to the next; between two, control ticks until it is at rest. Everything is
deterministic: the same trace, policy and times give the same outcome.
"""

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pliant.control.kinds.elastic.job import ElasticJob
from pliant.control.loop.tick import Control
from pliant.control.settings import ControlSettings
from pliant.core.errors import Conflict, InvalidInput, Problem
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId, NodeId
from pliant.core.plan import NodeView, Policy, PolicyName
from pliant.core.ports import EventFilter
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster, SimTimes
from pliant.sim.outcome import JobOutcome, TraceOutcome
from pliant.sim.store import MemoryStore
from pliant.sim.tasks import SimTasks
from pliant.sim.trace import Arrival, Change, ScriptedLoss, Trace
from pliant.sim.training import SimWork

STEP_SLOT_S = 8.0
"""Slot-seconds in one step."""
MAX_S = 366 * 86_400.0
"""Whatever has not ended by then is shown as it stands."""
_PROCESS_TIMES = SimTimes(start_s=0.05, exit_s=0.1, drain_s=None)
_WHO = "trace"


def simulate(trace: Trace, policy: PolicyName, home: Path) -> TraceOutcome:
    """Play a trace to its end; `home` is an empty folder for the jobs' files."""
    return _Player(trace, policy, home).play()


class _Player:
    """One trace on its way."""

    def __init__(self, trace: Trace, policy: PolicyName, home: Path) -> None:
        self._trace = trace
        self._policy = policy
        self._archive = home / "code.tar.gz"
        self._archive.write_bytes(_code())
        self._clock = VirtualClock()
        nodes = [NodeView(id=NodeId(f"node-{n + 1}"), slots=tuple(range(trace.slots))) for n in range(trace.nodes)]
        cluster = SimCluster(self._clock, nodes, _PROCESS_TIMES)
        self._work: dict[JobId, SimWork] = {}
        self._ids: dict[str, JobId] = {}
        self._tasks = SimTasks(self._clock, cluster, lambda job_id: self._work[job_id])
        self._store = MemoryStore(self._clock.now)
        settings = ControlSettings(home=home, url="", secret=b"simulated", policy=Policy(name=policy))
        self._control = Control(
            store=self._store, cluster=cluster, links=self._tasks, clock=self._clock, settings=settings
        )
        self._tasks.connect(self._control)

    def play(self) -> TraceOutcome:
        for arrival in self._trace.jobs:
            self._clock.call_later(arrival.at_s, partial(self._submit, arrival))
        for change in self._trace.changes:
            self._clock.call_later(change.at_s, partial(self._change, change))
        for loss in self._trace.losses:
            self._clock.call_later(loss.at_s, partial(self._lose, loss))
        self._control.start()
        self._make_queues()
        self._rest()
        while (due := self._next_at()) is not None and due <= MAX_S:
            self._clock.advance(max(0.0, due - self._clock.now()))
            self._rest()
        return self._outcome()

    def _make_queues(self) -> None:
        for group in self._trace.groups:
            self._control.queues.add_group(group.noun(_WHO), _WHO)
        for request in self._trace.queues:
            queue = request.noun(_WHO)
            if "policy" not in request.model_fields_set:
                queue = replace(queue, policy=self._policy)
            self._control.queues.add_queue(queue, _WHO)

    def _rest(self) -> None:
        """Tick until a tick changes nothing."""
        before = -1
        while before != self._store.num_writes:
            before = self._store.num_writes
            self._control.tick()

    def _next_at(self) -> float | None:
        if len(self._ids) == len(self._trace.jobs) and not self._control.jobs():
            return None
        return min((at for at in (self._clock.next_at(), self._control.wake_at()) if at is not None), default=None)

    def _submit(self, arrival: Arrival) -> None:
        after, after_any = (tuple(self._ids[n] for n in names) for names in (arrival.after, arrival.after_any))
        spec = replace(arrival.spec(), after=after, after_any=after_any)
        with _name_place(f"job {arrival.name}"):
            job = self._control.requests.submit(spec, self._archive, _WHO)
        self._ids[arrival.name] = job.id
        self._work[job.id] = SimWork(
            num_steps=max(1, round(arrival.slot_hours * 3600 / STEP_SLOT_S)),
            step_s=STEP_SLOT_S / arrival.slots_per_task,
            virtual_workers=spec.virtual_workers or spec.max_tasks,
            warm_s=8.0,
            connect_s=0.2,
            pause_s=0.1,
        )

    def _change(self, change: Change) -> None:
        with _name_place(f"change of {change.job} at {change.at_s:g}"), suppress(Conflict):
            # a conflict: it has ended, which depends on the policy, or its size is fixed
            self._control.requests.change(self._ids[change.job], change.set)

    def _lose(self, loss: ScriptedLoss) -> None:
        live = self._control.jobs().get(self._ids[loss.job])
        if live is not None and live.running:
            members = live.membership.active if isinstance(live, ElasticJob) else ()
            self._tasks.exit((*(task.id for task in live.running), *members)[-1], -9)

    def _outcome(self) -> TraceOutcome:
        jobs = {job.id: job for job in self._store.jobs(limit=len(self._ids))}
        last = max((job.ended_at or self._clock.now() for job in jobs.values()), default=0.0)
        decisions = self._store.events(EventFilter(kinds=(EventKind.DECISION,), limit=1_000_000))
        return TraceOutcome(
            policy=self._policy,
            num_slots=self._trace.num_slots,
            ended_at=max([last, *(point.at for point in self._store.usage())]),
            jobs=tuple(self._job_outcome(jobs[self._ids[arrival.name]], last) for arrival in self._trace.jobs),
            decisions=tuple((event.at, event.message) for event in decisions),
        )

    def _job_outcome(self, job: Job, last: float) -> JobOutcome:
        held = tuple((point.at, point.num_slots) for point in self._store.usage(job_id=job.id))
        ends = [*(at for at, _ in held[1:]), last]
        until = last if job.ended_at is None else job.ended_at
        spans = [(min(end, until) - min(at, until), num) for (at, num), end in zip(held, ends, strict=False)]
        ran_s = sum(span_s for span_s, num in spans if num)
        switched = self._store.events(
            EventFilter(job_id=job.id, kinds=(EventKind.GENERATION_SWITCHED,), limit=1_000_000)
        )
        return JobOutcome(
            name=job.spec.name,
            queue=job.queue,
            state=job.state,
            submitted_at=job.submitted_at,
            started_at=job.started_at,
            ended_at=job.ended_at,
            held=held,
            waited_s=until - job.submitted_at - ran_s,
            ran_s=ran_s,
            slot_s=sum((end - at) * num for (at, num), end in zip(held, ends, strict=False)),
            num_resizes=sum(event.data["from_size"] not in (0, event.data["size"]) for event in switched),
            num_redone_steps=job.num_redone_steps,
        )


@contextmanager
def _name_place(where: str) -> Iterator[None]:
    """Say where in the trace it stands what control refuses."""
    try:
        yield
    except InvalidInput as error:
        problems = (Problem(field=f"{where}: {p.field}", message=p.message) for p in error.problems)
        raise InvalidInput(*problems) from error


def _code() -> bytes:
    """Return a packed folder with a script that nobody runs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("train.py"))
    return out.getvalue()
