"""What time alone does to a job: late processes are killed, its own time may be over, and its kind does what is due."""

import heapq
import itertools
from collections.abc import Container, Sequence
from typing import Final

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import conclude
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import stop
from pliant.core.duration import duration
from pliant.core.job import JobId, NodeId

_FEW: Final = 64
OUT_OF_REACH_S: Final = 1.0
"""The deadlines of a job that cannot be heard are looked at again so much later."""


def pass_time(draft: Draft, kinds: Kinds, live: LiveJob, silent: Container[NodeId] = ()) -> None:
    """Do what is due for one job.

    What its tasks have to say or to do in time waits as long as all that matter are on machines that nothing is heard
    of (`silent`): they may train on, and nobody else may then begin where they are.
    """
    kind = kinds.of(live.job)
    if live.competes and live.is_out_of_reach(silent):
        live = draft.put(live.postpone(OUT_OF_REACH_S))
    for task_id in [task_id for task_id, kill_at in live.kill_at.items() if kill_at <= draft.now]:
        live = kind.kill_late(draft, live, live.tasks[task_id])
    if live.failing is not None:
        if live.failing.until <= draft.now:
            conclude(draft, live)
    elif live.limit_at is not None and live.limit_at <= draft.now:
        limit = duration(live.job.spec.time_limit_s or 0.0)
        stop(draft, kind, live, f"it has held slots for {limit}, which is its time limit")
    elif not live.job.ended:
        kind.pass_time(draft, live)


def postpone(draft: Draft, seconds: float) -> None:
    """Move the deadlines of all jobs: the server stood still for so long, and could not hear what would meet them."""
    for live in draft.jobs():
        draft.put(live.postpone(seconds))


class Deadlines:
    """When jobs next need `pass_time`, worked out anew for those that have changed. Used under the ledger's lock.

    It depends on the job alone, and on no clock. What is worked out stays in the heap when it is so no more; it is
    dropped when it comes to the front, or when most of the heap is of that kind.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._at: dict[JobId, tuple[float, int]] = {}
        """Of jobs that have a deadline, with the number under which they are in the heap."""
        self._numbers: dict[JobId, int] = {}
        """In the order in which the jobs came."""
        self._count = itertools.count()
        self._heap: list[tuple[float, int, JobId]] = []

    def __len__(self) -> int:
        """Return how many instants are kept, also those that are so no more."""
        return len(self._heap)

    def next_at(self) -> float | None:
        """Return when the first job is due; None if time alone does nothing."""
        self._look()
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Sequence[JobId]:
        """Return the jobs that are due, in the order in which they came."""
        found: dict[JobId, int] = {}
        while (at := self.next_at()) is not None and at <= now:
            _, number, job_id = heapq.heappop(self._heap)
            del self._at[job_id]
            found[job_id] = number
        for job_id, number in found.items():  # who is looked at and stays as it is, is due again
            self._put(job_id, number)
        return sorted(found, key=found.__getitem__)

    def _look(self) -> None:
        for job_id in self._ledger.take_changed():
            if self._ledger.get(job_id) is None:
                self._numbers.pop(job_id, None)
                self._at.pop(job_id, None)
            else:
                number = self._numbers.get(job_id)
                if number is None:
                    number = self._numbers[job_id] = next(self._count)
                self._put(job_id, number)

    def _put(self, job_id: JobId, number: int) -> None:
        live = self._ledger.get(job_id)
        at = None if live is None else next_deadline(self._ledger.kinds, live)
        if at is None:
            self._at.pop(job_id, None)
        elif self._at.get(job_id) != (at, number):
            self._at[job_id] = at, number
            heapq.heappush(self._heap, (at, number, job_id))
            if len(self._heap) > _FEW + 2 * len(self._at):
                self._heap = [(*known, one) for one, known in self._at.items()]
                heapq.heapify(self._heap)


def next_deadline(kinds: Kinds, live: LiveJob) -> float | None:
    """Return when this job next needs `pass_time`; None if time alone changes nothing for it."""
    instants = list(live.kill_at.values())
    if live.failing is not None:
        instants.append(live.failing.until)
    if live.limit_at is not None:
        instants.append(live.limit_at)
    if live.failing is None and not live.job.ended and (due := kinds.of(live.job).next_deadline(live)) is not None:
        instants.append(due)
    return min(instants, default=None)
