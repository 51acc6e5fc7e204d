"""Arrays of which only so many jobs may run at once: which of their jobs the scheduler does not see yet.

A job that has held a slot keeps its place until it has ended, also while it is paused: what is begun goes on before
something new begins. Example: `array_max` 2, jobs 0 to 3. 0 runs and 1 is paused, so 2 and 3 are held back. 0
completes; now 2 is seen, and 3 held back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.live import LiveJob
from pliant.core.array import JobArray
from pliant.core.job import JobId


def held_back(jobs: Iterable[LiveJob]) -> Mapping[JobId, str]:
    """Return the jobs that their array's limit keeps from running now, each with why."""
    by_array: dict[str, tuple[JobArray, list[LiveJob]]] = {}
    for live in jobs:
        array = live.job.spec.array
        if array is not None and array.max_running is not None:
            by_array.setdefault(array.id, (array, []))[1].append(live)
    return {
        live.id: f"waits: no more than {_jobs(array.max_running or 0)} of {array.id} may run at once (array_max)"
        for array, members in by_array.values()
        for live in _beyond(members, array.max_running or 0)
    }


def _beyond(members: Iterable[LiveJob], limit: int) -> list[LiveJob]:
    begun = {live.id for live in members if live.running or (live.competes and live.job.started_at is not None)}
    new = [live for live in members if live.id not in begun and live.competes and not (live.waits or live.on_hold)]
    return sorted(new, key=_index)[max(0, limit - len(begun)) :]


def _jobs(number: int) -> str:
    return f"{number} job{'s' * (number != 1)}"


def _index(live: LiveJob) -> int:
    return live.job.spec.array.index if live.job.spec.array is not None else 0


def note_held(draft: Draft, held: Mapping[JobId, str]) -> None:
    """Note why these jobs have no slots; what is so already stays as it is."""
    for job_id, why in held.items():
        live = draft.job(job_id)
        if live is not None and (live.job.why != why or live.target):
            draft.put(replace(live, target=0, job=replace(live.job, why=why)))
