"""One decision while it is being made: what it will write and what it will do then, in that order.

Everything that changes goes through a draft; nothing is visible to anybody until the loop has written it to the store
in one transaction. A draft that is dropped has changed nothing. It knows neither the store nor the cluster.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pliant.control.jobs.live import LiveJob
from pliant.control.settings import ControlSettings
from pliant.core.event import Event, EventKind, Usage, Value
from pliant.core.job import DeletedJob, Generation, JobId, Metric, NodeId, Task, TaskId
from pliant.core.link import ToTask
from pliant.core.plan import NodeView
from pliant.core.ports import Address, StartOrder, Writes
from pliant.core.slot_history import layer_of
from pliant.core.tensor_histogram import JobHistograms

L = TypeVar("L", bound=LiveJob)
"""A job of one kind: it stays of that kind whatever is noted of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTask:
    """Order a process from the cluster."""

    order: StartOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMessage:
    """Say something to a task."""

    task_id: TaskId
    message: ToTask


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTask:
    """Ask a process to go (SIGTERM)."""

    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class KillTask:
    """End a process (SIGKILL)."""

    task_id: TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpStacks:
    """Make a process that has no control link write where its threads are."""

    task_id: TaskId


Action = StartTask | SendMessage | DrainTask | KillTask | DumpStacks


class Draft:
    """What one decision changes."""

    def __init__(
        self,
        jobs: Mapping[JobId, LiveJob],
        *,
        now: float,
        settings: ControlSettings,
        next_id: Callable[..., int],
        free_address: Callable[[NodeId], Address],
        nodes: Callable[[], tuple[NodeView, ...]] = tuple,
        unheard: Callable[[], Collection[NodeId]] = tuple,
    ) -> None:
        self.now = now
        self.who = ""
        """The person who asks for it, if one does and it matters."""
        self.settings = settings
        self.next_id = next_id
        self.free_address = free_address
        self.nodes = nodes
        self.unheard = unheard
        """Returns the hosts that nothing is heard of just now, or that are heard again since a moment only."""
        self.actions: list[Action] = []
        self._before = jobs
        self._after: dict[JobId, LiveJob] = {}
        self._events: list[Event] = []
        self._metrics: list[Metric] = []
        self._histograms: list[JobHistograms] = []
        self._deleted: list[DeletedJob] = []
        self._settled_tasks: dict[TaskId, Task] = {}
        self._settled_generations: dict[tuple[JobId, int], Generation] = {}

    def job(self, job_id: JobId) -> LiveJob | None:
        """Return the job as this decision has left it so far; None if it is over or was never there."""
        return self._after.get(job_id) or self._before.get(job_id)

    def jobs(self) -> tuple[LiveJob, ...]:
        """Return all of them, as this decision has left them so far."""
        return tuple({**self._before, **self._after}.values())

    def put(self, live: L) -> L:
        """Note the new value of a job, with the slots that its tasks hold."""
        known = self._after.get(live.id)
        num_slots = known.job.num_slots if known is not None and known.tasks is live.tasks else live.num_slots
        if live.job.num_slots != num_slots:
            live = replace(live, job=replace(live.job, num_slots=num_slots))
        if (live.held_since is None) == (num_slots > 0):
            ran_s = 0.0 if live.held_since is None else self.now - live.held_since
            live = replace(live, ran_s=live.ran_s + ran_s, held_since=self.now if num_slots else None)
        self._after[live.id] = live
        return live

    def say(
        self,
        kind: EventKind,
        message: str,
        *,
        job_id: JobId | None = None,
        task_id: TaskId | None = None,
        data: Mapping[str, Value] | None = None,
    ) -> None:
        """Note an event."""
        self._events.append(
            Event(at=self.now, kind=kind, message=message, job_id=job_id, task_id=task_id, data=data or {})
        )

    def measure(self, *metrics: Metric) -> None:
        """Note points of a job's series."""
        self._metrics.extend(metrics)

    def keep_histograms(self, histograms: JobHistograms) -> None:
        """Note histograms of a job."""
        self._histograms.append(histograms)

    def delete(self, *jobs: DeletedJob) -> None:
        """Note that jobs, which are over, are deleted."""
        self._deleted.extend(jobs)

    def act(self, action: Action) -> None:
        """Note something to do once all is written."""
        self.actions.append(action)

    def settle(self, job_id: JobId) -> LiveJob | None:
        """Return a job as memory shall hold it; what it drops is written all the same.

        So a draft may take in one thing after the other as if each had been written by itself.
        """
        if (live := self._after.get(job_id)) is None:
            return None
        running = live.running
        self._settled_tasks.update((task.id, task) for task in live.tasks.values() if task.ended)
        self._settled_generations.update(((job_id, n), one) for n, one in live.open_generations.items())
        self._after[job_id] = live = live.keep_tasks({task.id for task in running})
        return live

    def finished(self) -> tuple[JobId, ...]:
        """Return the jobs that are over with this decision: they have ended, and none of their processes is left."""
        return tuple(live.id for live in self._after.values() if _remaining(live) is None)

    @property
    def touched(self) -> tuple[JobId, ...]:
        return tuple(self._after)

    def writes(self) -> Writes | None:
        """Return what has to be stored; None if nothing has. Every job that changed gets its next revision."""
        for live in list(self._after.values()):
            if self._changed(live):
                job = replace(live.job, revision=live.job.revision + 1)
                self._after[live.id] = replace(live, job=job)
        usage = self._usage()
        writes = Writes(
            jobs=tuple(live.job for live in self._after.values() if self._changed(live)),
            tasks=self._changed_tasks(),
            generations=self._changed_generations(),
            events=(*self._events, *map(self._slots_changed, usage)),
            metrics=tuple(self._metrics),
            histograms=tuple(self._histograms),
            usage=usage,
            deleted=tuple(self._deleted),
        )
        return writes if writes != Writes() else None

    def results(self) -> Mapping[JobId, LiveJob | None]:
        """Return what memory shall hold once all is written; None for a job that is over."""
        return {job_id: _remaining(live) for job_id, live in self._after.items()}

    def _changed_tasks(self) -> tuple[Task, ...]:
        found = dict(self._settled_tasks)
        for live in self._after.values():
            old = self._before.get(live.id)
            before = {} if old is None else old.tasks
            for task in live.tasks.values():
                if (was := before.get(task.id)) is not task and was != task:
                    found[task.id] = task
        return tuple(found.values())

    def _changed_generations(self) -> tuple[Generation, ...]:
        found = self._settled_generations | {
            (live.id, number): one for live in self._after.values() for number, one in live.open_generations.items()
        }
        before = {job_id: live.open_generations for job_id in self._after if (live := self._before.get(job_id))}
        return tuple(one for (job_id, number), one in found.items() if before.get(job_id, {}).get(number) != one)

    def _changed(self, live: LiveJob) -> bool:
        old = self._before.get(live.id)
        return old is None or old.job != live.job

    def _slots_changed(self, point: Usage) -> Event:
        """Return the event that goes with a point of usage: whoever draws the one can go on with the other."""
        live, old = self._after[point.job_id], self._before.get(point.job_id)
        layer = layer_of(live.job)
        shown: dict[str, Value] = {"name": layer.name, "owner": layer.owner}
        shown |= {"queue": layer.queue, "colour": layer.colour}
        of: dict[str, Value] = {"search": layer.search, "endpoint": layer.endpoint}
        return Event(
            at=point.at,
            kind=EventKind.SLOTS_CHANGED,
            message=f"{live.label} holds {point.num_slots} slot{'s' * (point.num_slots != 1)}",
            job_id=live.id,
            data={
                "num_slots": point.num_slots,
                "from_slots": old.num_slots if old else 0,
                **shown,
                **{name: value for name, value in of.items() if value is not None},
            },
        )

    def _usage(self) -> tuple[Usage, ...]:
        points = []
        for live in self._after.values():
            old = self._before.get(live.id)
            if live.num_slots != (old.num_slots if old else 0):
                points.append(Usage(at=self.now, job_id=live.id, num_slots=live.num_slots))
        return tuple(points)


def _remaining(live: LiveJob) -> LiveJob | None:
    tasks = {task.id for task in live.running}
    if live.job.ended and not tasks:
        return None
    return live.keep_tasks(tasks)
