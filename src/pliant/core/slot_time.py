"""How long jobs held how many slots: the integral of the step function slots(job, time) over a span of time.

Example: a job holds 4 slots from 10 s on, 2 from 20 s on and none from 30 s on. From 15 s to 100 s it used
4 x 5 + 2 x 10 = 40 slot-seconds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pliant.core.event import Usage
from pliant.core.job import JobId

UsageKey = Literal["user", "queue", "job"]
"""What slot-seconds are added up by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTime:
    """What a job used in a span of time, and what it is added up by."""

    job_id: JobId
    name: str
    owner: str
    queue: str
    """The one that it is in now, or was in at its end."""
    slot_seconds: float

    def key(self, by: UsageKey) -> tuple[str, str]:
        """Return what it is added up under, with what people call that."""
        match by:
            case "user":
                return self.owner, self.owner
            case "queue":
                return self.queue, self.queue
            case "job":
                return self.job_id, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """What a user, a queue or a job used."""

    key: str
    name: str
    """Of a job what people call it; else the key."""
    num_jobs: int
    """Those that held a slot."""
    slot_seconds: float
    share: float
    """Of all slot-seconds, 0 to 1."""


def integrate(points: Iterable[Usage], start: float, until: float) -> Mapping[JobId, float]:
    """Return the slot-seconds of each job between two instants.

    Args:
        points: in order of time; of each job those in the span, and the last one before it if there is any.
        start: the first instant.
        until: the last one.
    """
    sums: defaultdict[JobId, float] = defaultdict(float)
    held: dict[JobId, Usage] = {}
    for point in points:
        if point.at >= until:
            break
        _add(sums, held.get(point.job_id), start, point.at)
        held[point.job_id] = point
    for point in held.values():
        _add(sums, point, start, until)
    return sums


def _add(sums: defaultdict[JobId, float], point: Usage | None, start: float, until: float) -> None:
    begin = start if point is None else max(start, point.at)
    if point is not None and point.num_slots and until > begin:
        sums[point.job_id] += point.num_slots * (until - begin)


def add_up(times: Iterable[SlotTime], by: UsageKey) -> tuple[UsageSum, ...]:
    """Return the sums by user, queue or job, the largest first."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for time in times:
        found[time.key(by)].append(time.slot_seconds)
    total = sum(map(sum, found.values()))
    sums = (
        UsageSum(
            key=key,
            name=name,
            num_jobs=len(used),
            slot_seconds=sum(used),
            share=sum(used) / total if total else 0.0,
        )
        for (key, name), used in found.items()
    )
    return tuple(sorted(sums, key=lambda one: (-one.slot_seconds, one.key)))
