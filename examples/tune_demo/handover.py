"""How long slots that trials left were free although others wanted them.

Pure. A slot is wanted if a job that trains holds fewer than its maximum, or one waits for its first. What a job asks
for is told by the scheduler's decisions only later, so its maximum counts, from the moment that it trains until it is
paused, held or over. When a trial's process leaves a slot that is wanted, a handover begins; it ends when no slot is
both free and wanted any more.

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
    held: dict[JobId, set[TaskId]] = field(default_factory=dict)
    training: set[JobId] = field(default_factory=set)
    waiting: set[JobId] = field(default_factory=set)
    """Of these none has a slot, and each wants one."""

    def take(self, event: Event) -> None:
        """Note what an event says."""
        job_id = event.job_id
        if job_id is None or job_id not in self.most:
            return
        tasks = self.held.setdefault(job_id, set())
        match event.kind:
            case EventKind.JOB_SUBMITTED | EventKind.JOB_RELEASED:
                self.waiting.add(job_id)
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

    @property
    def num_idle(self) -> int:
        """Slots that are free and wanted."""
        free = self.num_slots - sum(map(len, self.held.values()))
        wanted = sum(max(self.most[job_id] - len(self.held[job_id]), 0) for job_id in self.training)
        return min(free, wanted + len(self.waiting))


def handovers_of(
    events: Sequence[Event], *, num_slots: int, most: Mapping[JobId, int], trials: Sequence[JobId]
) -> tuple[Handover, ...]:
    """Return every time at which trials left slots that others wanted.

    Args:
        events: in order, from the beginning.
        num_slots: of the server.
        most: the highest number of tasks of each job that counts.
        trials: those among them whose leaving counts.
    """
    pool, found = _Pool(num_slots=num_slots, most=most), []
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
