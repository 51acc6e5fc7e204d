"""A database as a busy pool has one: 10,000 jobs that have ended, and twenty that changed their slots all week.

Everything is written through the store, as a server writes it, so the sums of hours are there, too.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from pliant.core.event import Usage
from pliant.core.job import Job, JobId, JobSpec, Progress
from pliant.core.lifecycle import JobState
from pliant.core.ports import Writes
from pliant.core.slot_history import CapacitySpan
from pliant.store.sql import SqlStore

NUM_JOBS = 10_000
NUM_CHANGING = 20
"""The newest of the jobs; their changes are those of the week."""
NUM_CHANGES = 46_000
WEEK_S = 7 * 86_400.0
SLOTS_EACH = 8
BATCH = 2_000

T = TypeVar("T")

_ENDS = (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)
_SPEC = JobSpec(name="train", script="train.py", max_tasks=SLOTS_EACH, virtual_workers=SLOTS_EACH)
_PROGRESS = Progress(epoch=3, num_epochs=3, step=300, num_steps=300, samples=19_200, samples_per_s=640.0, loss=0.25)


def plant(url: str, now: float) -> float:
    """Write jobs, who held how many slots, and how many there were; return how long that took, seconds.

    Args:
        url: of a database that is new.
        now: when the week ends, seconds since the epoch (UTC).
    """
    began = time.perf_counter()
    store = SqlStore(url)
    try:
        for jobs in _batched(planted_jobs(now)):
            store.write(Writes(jobs=jobs, usage=tuple(point for job in jobs for point in _whole_life(job))))
        for changes in _batched(changes_of_week(now)):
            store.write(Writes(usage=changes))
        span = CapacitySpan(number=1, from_at=now - 2 * WEEK_S, until_at=now, num_slots=NUM_CHANGING * SLOTS_EACH)
        store.write(Writes(capacity=(span,)))
        store.next_id("job", NUM_JOBS)
    finally:
        store.close()
    return time.perf_counter() - began


def _batched(items: Iterator[T]) -> Iterator[tuple[T, ...]]:
    while batch := tuple(islice(items, BATCH)):
        yield batch


def planted_jobs(now: float) -> Iterator[Job]:
    """Yield the jobs: most a minute each, one after the other before the week; the newest all the week long."""
    for number in range(1, NUM_JOBS + 1):
        changes = number > NUM_JOBS - NUM_CHANGING
        submitted_at = now - WEEK_S - 60.0 * (NUM_JOBS - number)
        yield Job(
            id=JobId(f"job-{number}"),
            spec=replace(_SPEC, name=f"train-{number}"),
            owner="admin",
            state=_ENDS[number % len(_ENDS)],
            priority=5000,
            min_tasks=1,
            max_tasks=SLOTS_EACH,
            submitted_at=submitted_at,
            started_at=submitted_at + 1,
            ended_at=now if changes else submitted_at + 59,
            progress=_PROGRESS,
            colour=number % 24,
        )


def _whole_life(job: Job) -> Iterator[Usage]:
    if job.ended_at is None or job.started_at is None or job.ended_at - job.started_at > 60:
        return  # one of the week: see `changes_of_week`
    yield Usage(at=job.started_at, job_id=job.id, num_slots=1)
    yield Usage(at=job.ended_at, job_id=job.id, num_slots=0)


def changes_of_week(now: float) -> Iterator[Usage]:
    """Yield the changes in the order of time: evenly spread, by one job after the other; at last nobody has anything.

    No two changes of a job are to the same number, so each of them is a step of the chart.
    """
    last = NUM_CHANGES - NUM_CHANGING
    for number in range(NUM_CHANGES):
        turn, job = divmod(number, NUM_CHANGING)
        yield Usage(
            at=now - WEEK_S * (1 - (number + 1) / (NUM_CHANGES + 1)),
            job_id=JobId(f"job-{NUM_JOBS - NUM_CHANGING + 1 + job}"),
            num_slots=0 if number >= last else 1 + (3 * turn + job) % SLOTS_EACH,
        )
