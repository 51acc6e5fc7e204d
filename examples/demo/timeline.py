"""Numbers that change at instants: the slots that each job held, and those of them that trained or answered.

Pure: made from what the server told.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from pliant.core.event import Event, EventKind, Usage
from pliant.core.job import JobId, TaskId


@dataclass(slots=True)
class Timeline:
    """A number over time; 0 before its first change."""

    instants: list[float] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def add(self, at: float, number: int) -> None:
        """Append a change; instants never fall."""
        self.instants.append(at)
        self.numbers.append(number)

    def at(self, instant: float) -> int:
        """Return the number right after what happened at an instant."""
        place = bisect_right(self.instants, instant)
        return self.numbers[place - 1] if place else 0

    def mean(self, start: float, end: float) -> float:
        """Return the mean over a span of time."""
        edges = [start, *(at for at in self.instants if start < at < end), end]
        area = sum(self.at(left) * (right - left) for left, right in pairwise(edges))
        return area / (end - start) if end > start else 0.0


def held_by_job(usage: Iterable[Usage]) -> Mapping[JobId, Timeline]:
    """Return the slots that each job's processes held."""
    found: defaultdict[JobId, Timeline] = defaultdict(Timeline)
    for point in usage:
        found[point.job_id].add(point.at, point.num_slots)
    return found


def working_by_job(events: Iterable[Event], endpoint_id: JobId | None) -> Mapping[JobId, Timeline]:
    """Return how many tasks of each job trained, or answered.

    A training changes its size at once, and trains on none while it is paused; the kernels of an endpoint come and go
    one by one: they answer once they have loaded their model, until they are gone.
    """
    found: defaultdict[JobId, Timeline] = defaultdict(Timeline)
    ready: set[TaskId] = set()
    for event in events:
        if event.job_id is None:
            continue
        if event.job_id == endpoint_id:
            if event.kind is EventKind.TASK_READY and event.task_id is not None:
                ready.add(event.task_id)
            elif event.kind in (EventKind.TASK_LEFT, EventKind.TASK_LOST) and event.task_id is not None:
                ready.discard(event.task_id)
            else:
                continue
            found[event.job_id].add(event.at, len(ready))
        elif event.kind is EventKind.GENERATION_SWITCHED:
            found[event.job_id].add(event.at, int(event.data["size"] or 0))
        elif event.kind is EventKind.JOB_STATE and event.data.get("to") == "paused":
            found[event.job_id].add(event.at, 0)
    return found
