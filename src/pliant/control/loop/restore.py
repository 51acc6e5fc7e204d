"""What memory held before the server went away, rebuilt from the store and put in order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pliant.control.jobs.draft import Draft, KillTask
from pliant.control.jobs.failure import failing_of, go_on_failing
from pliant.control.jobs.kind import Kinds, Remembered
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import vacate
from pliant.control.settings import Timeouts
from pliant.core.event import EventKind, Usage
from pliant.core.job import Job, JobId, Task, TaskId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import UNENDED_STATES, JobState, TaskState
from pliant.core.ports import Observation, Store

UNENDED = JobFilter(states=UNENDED_STATES)
_PAGE = 1000


def load(store: Store, kinds: Kinds, *, now: float, timeouts: Timeouts) -> dict[JobId, LiveJob]:
    """Return every job that has not ended, or whose processes may live still, oldest first."""
    by_job: dict[JobId, list[Task]] = {}
    for task in store.tasks(live=True):
        by_job.setdefault(task.job_id, []).append(task)
    jobs = {job.id: job for job in _load_unended(store)}
    for job_id in by_job.keys() - jobs.keys():
        if (job := store.job(job_id)) is not None:
            jobs[job_id] = job
    ordered = sorted(jobs.values(), key=lambda job: (job.submitted_at, len(job.id), job.id))
    found = {}
    for job in ordered:
        kind, tasks = kinds.of(job), by_job.get(job.id, [])
        live = replace(
            kind.begin(job, now),
            tasks={task.id: task for task in tasks},
            target=sum(task.state is not TaskState.LEAVING for task in tasks),
            failing=failing_of(job, now),
        )
        if job.spec.time_limit_s is not None:
            live = replace(live, **_time_held(store.usage(since=0.0, job_id=job.id)))
        past = Remembered(tasks=store.tasks(job.id), generations=store.generations(job.id))
        live = live.give_up(task for task in past.tasks if task.state in (TaskState.LEAVING, TaskState.EXITED))
        found[job.id] = kind.restore(live, past, timeouts)
    return found


def _time_held(usage: Sequence[Usage]) -> dict[str, Any]:
    """Return for how long a job held slots before now, and since when it holds those that it has."""
    ran_s, since = 0.0, None
    for point in usage:
        if since is None and point.num_slots > 0:
            since = point.at
        elif since is not None and point.num_slots == 0:
            ran_s, since = ran_s + point.at - since, None
    return {"ran_s": ran_s, "held_since": since}


def _load_unended(store: Store) -> list[Job]:
    jobs: list[Job] = []
    page = store.jobs(UNENDED, limit=_PAGE)
    while page:
        jobs.extend(page)
        page = store.jobs(UNENDED, before=page[-1].id, limit=_PAGE)
    return jobs


def reconcile(draft: Draft, kinds: Kinds, observed: Observation) -> frozenset[TaskId]:
    """Put in order what was loaded, and what runs; return the tasks whose processes are not there.

    End processes that nobody knows, let the kinds go on with their jobs, and bring jobs that hold no slots out of
    states that say they do.
    """
    there = {task.task_id for task in observed.tasks}
    known = {task.id for live in draft.jobs() for task in live.running}
    for task_id in sorted(there - known):
        draft.act(KillTask(task_id=task_id))
    num_jobs = sum(live.competes for live in draft.jobs())
    draft.say(EventKind.SERVER_STARTED, f"the server is up; {num_jobs} job{'s' * (num_jobs != 1)} to go on with")
    for live in draft.jobs():
        if live.job.ended:
            continue
        if live.failing is not None:
            go_on_failing(draft, live)
            continue
        kinds.of(live.job).resume(draft, live)
        resumed = draft.job(live.id) or live
        if not resumed.running and resumed.job.state not in (JobState.PENDING, JobState.PAUSED):
            vacate(draft, resumed, "the server went away while it ran; it goes on when slots free up")
    return frozenset(known - there)
