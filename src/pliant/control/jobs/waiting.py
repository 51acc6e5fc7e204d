"""Jobs that run after others (`after`, `after_any`): what it means for them that a job is over.

Theory of operation. A job remembers by name what it still waits for. When a job is over, that is written together with
what follows from it for others, in one transaction (`Ledger.commit` calls `follow`). So the store never holds a job
that is over and another one that still waits for it; it does not matter when the server dies, or when what is left of
the first is removed. Over means: it has ended, and its last process is gone, so that all it writes is written.

    job-7 fails       job-9 is to run after job-7 has completed: it is stopped
                      job-11 is to run after job-9 has completed: it is stopped, by the same write
                      job-12 is to run after job-9 has ended: it waits no more

An array is over when all its jobs are. The first of them that does not complete ends who needs them all to complete; so
when the last is over and completes, all have completed, and nobody needs to look up how the others ended.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import job_event
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JobEvent, JobState

_ENDS = {JobState.COMPLETED: "has completed", JobState.FAILED: "failed", JobState.STOPPED: "was stopped"}
_NUM_NAMED = 4
AWAITED = ("after", "after_any")
"""The fields of a job that say what it waits for."""
Awaited = tuple[tuple[str, ...], tuple[str, ...]]
"""What a job waits for to complete, and what it waits for to end."""


def words_of_waiting(after: Sequence[str], after_any: Sequence[str]) -> str:
    """Return what a job waits for: `job-7 and job-8 to complete, and job-6 to end`."""
    parts = [f"{_names(names)} to {verb}" for names, verb in ((after, "complete"), (after_any, "end")) if names]
    return ", and ".join(parts)


def why_waits(job: Job) -> str:
    """Return why a job that waits for others holds no slots."""
    return f"waits for {words_of_waiting(job.after, job.after_any)}"


def why_idle(job: Job) -> str:
    """Return why the scheduler does not see a job that takes no slots: it is held, or waits for others."""
    if job.hold:
        return f"is held: {job.hold}"
    return why_waits(job) if job.after or job.after_any else ""


def unmet(name: str, over: Job, waiter: JobId) -> str:
    """Return why a job will never start that was to run after what is called `name` had completed.

    Args:
        name: of a job, or of an array that it is of.
        over: the job that did not complete.
        waiter: who waited.
    """
    which = "it" if name == over.id else name
    return f"{how_it_ended(name, over)}, and {waiter} was to run after {which} had completed"


def how_it_ended(name: str, over: Job) -> str:
    """Return what became of a job that others know as `name`: `job-7 failed`, or `job-7 of array-1 failed`."""
    return f"{over.id}{'' if name == over.id else f' of {name}'} {_ENDS[over.state]}"


def names_of(job: Job) -> tuple[str, ...]:
    """Return the names that others may wait for this job by."""
    return (job.id,) if job.spec.array is None else (job.id, job.spec.array.id)


def follow(draft: Draft) -> None:
    """Let jobs go on, or end, that wait for what is over with this decision; and so on for those that end."""
    finished = deque(draft.finished())
    waiting = _waiting_by_name(draft) if finished else {}
    if not waiting:
        return
    over = set(finished)
    left = Counter(live.job.spec.array.id for live in draft.jobs() if live.job.spec.array and live.id not in over)
    while finished:
        job = _job(draft, finished.popleft())
        for name in names_of(job):
            for waiter in waiting.get(name, ()):
                live = draft.job(waiter)
                if live is None or live.job.ended or name not in (*live.job.after, *live.job.after_any):
                    continue
                live = _hear(draft, live, name, job, is_last=left[name] == 0)
                if live.job.ended:
                    finished.append(live.id)
                    left.subtract(names_of(live.job)[1:])


def _waiting_by_name(draft: Draft) -> dict[str, list[JobId]]:
    waiting: dict[str, list[JobId]] = {}
    for live in draft.jobs():
        for name in dict.fromkeys((*live.job.after, *live.job.after_any)) if live.competes else ():
            waiting.setdefault(name, []).append(live.id)
    return waiting


def _job(draft: Draft, job_id: JobId) -> Job:
    live = draft.job(job_id)
    assert live is not None, f"{job_id} is part of the decision"
    return live.job


def _hear(draft: Draft, live: LiveJob, name: str, over: Job, *, is_last: bool) -> LiveJob:
    """Note for a job that waits that another one is over; `is_last` tells whether all is over that is called so."""
    if name in live.job.after and over.state is not JobState.COMPLETED:
        return job_event(draft, live, JobEvent.STOP, unmet(name, over, live.id))
    if not is_last:
        return live
    after, after_any = (tuple(n for n in names if n != name) for names in (live.job.after, live.job.after_any))
    return wait_for(draft, live, after, after_any, f"{name} {_ENDS[over.state] if name == over.id else 'is over'}")


def wait_for(draft: Draft, live: LiveJob, after: tuple[str, ...], after_any: tuple[str, ...], cause: str) -> LiveJob:
    """Let a job wait for these from now on; it takes part in the next decision if there are none."""
    job = replace(live.job, after=after, after_any=after_any)
    if not (after or after_any):
        draft.say(EventKind.JOB_RELEASED, f"{live.label} waits for no other job any more: {cause}", job_id=live.id)
    return draft.put(replace(live, job=replace(job, why=why_idle(job))))


def _names(names: Sequence[str]) -> str:
    if len(names) > _NUM_NAMED:
        return f"{', '.join(names[: _NUM_NAMED - 1])} and {len(names) - _NUM_NAMED + 1} others"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
