"""How long slots that trials left were free although others wanted them.

Pure. A slot is wanted if a job that trains holds fewer than its maximum, or one waits for its first. The scheduler
decides only after a process has left, so the maximum counts, from the moment that a job trains until it is paused, held
or over. A slot is free if nobody holds it and it is not kept for a job that starts: who starts gets the first slots at
once, and what was decided for it besides when it trains. When a trial's process leaves a slot and one is free and
wanted then, a handover begins; it ends when none is both any more.

    12.40 s  trial 3 waits at a rung: its process leaves slot 5; A trains on 3 and may have 4     wanted 1, free 1
    12.42 s  A's fourth process starts on it                                                      handed over in 0.02 s
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pliant.core.event import Event, EventKind
from pliant.core.job import JobId, TaskId

_GONE = ("completed", "failed", "stopped", "stopping", "paused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """Slots that a trial has left, until others held them."""

    began_at: float
    job_id: JobId
    """Whose process left."""
    took_s: float


@dataclass(slots=True)
class _Pool:
    """Who holds and who wants slots, in the middle of the events."""

    num_slots: int
    most: Mapping[JobId, int]
    least: Mapping[JobId, int]
    decided: dict[JobId, int] = field(default_factory=dict)
    held: dict[JobId, set[TaskId]] = field(default_factory=dict)
    training: set[JobId] = field(default_factory=set)
    waiting: set[JobId] = field(default_factory=set)
    """Of these none has a slot, and each wants its minimum."""

    def take(self, event: Event) -> None:
        """Note what an event says."""
        job_id = event.job_id
        if job_id is None or job_id not in self.most:
            return
        tasks = self.held.setdefault(job_id, set())
        match event.kind:
            case EventKind.JOB_SUBMITTED | EventKind.JOB_RELEASED:
                self.waiting.add(job_id)
            case EventKind.DECISION:
                self.decided[job_id] = int(event.data.get("to") or 0)
            case EventKind.TASK_STARTED if event.task_id is not None:
                tasks.add(event.task_id)
                self.waiting.discard(job_id)
            case EventKind.TASK_LEFT | EventKind.TASK_LOST if event.task_id is not None:
                tasks.discard(event.task_id)
            case EventKind.GENERATION_SWITCHED:
                self.training.add(job_id)
            case EventKind.JOB_HELD:
                self._forget(job_id)
            case EventKind.JOB_STATE if event.data.get("to") in _GONE:
                self._forget(job_id)

    def _forget(self, job_id: JobId) -> None:
        self.training.discard(job_id)
        self.waiting.discard(job_id)
        self.decided.pop(job_id, None)

    @property
    def num_idle(self) -> int:
        """Slots that are free and wanted."""
        starting = {job_id for job_id, tasks in self.held.items() if tasks} - self.training
        kept = sum(max(self.decided.get(job_id, 0) - len(self.held[job_id]), 0) for job_id in starting)
        free = self.num_slots - sum(map(len, self.held.values())) - kept
        wanted = sum(max(self.most[job_id] - len(self.held[job_id]), 0) for job_id in self.training)
        wanted += sum(self.least[job_id] for job_id in self.waiting if self.least[job_id] <= free)
        return min(free, wanted)


def handovers_of(
    events: Sequence[Event], *, num_slots: int, limits: Mapping[JobId, tuple[int, int]], trials: Sequence[JobId]
) -> tuple[Handover, ...]:
    """Return every time at which trials left slots that others wanted.

    Args:
        events: in order, from the beginning.
        num_slots: of the server.
        limits: of each job that counts the least and the highest number of tasks.
        trials: those among them whose leaving counts.
    """
    least, most = ({job_id: pair[end] for job_id, pair in limits.items()} for end in (0, 1))
    pool, found = _Pool(num_slots=num_slots, least=least, most=most), []
    left: tuple[float, JobId] | None = None
    for event in events:
        pool.take(event)
        leaves = event.kind is EventKind.TASK_LEFT and event.job_id in trials
        if left is None and leaves and event.job_id is not None and pool.num_idle > 0:
            left = (event.at, event.job_id)
        elif left is not None and pool.num_idle <= 0:
            found.append(Handover(began_at=left[0], job_id=left[1], took_s=event.at - left[0]))
            left = None
    return tuple(found)
