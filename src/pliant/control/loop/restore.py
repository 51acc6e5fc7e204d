"""What memory held before the server went away, rebuilt from the store and put in order."""

from dataclasses import replace

from pliant.control.jobs.draft import Draft, KillTask
from pliant.control.jobs.fixed import finished_before
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import feed, vacated, want
from pliant.control.settings import Timeouts
from pliant.core.event import EventKind
from pliant.core.job import Generation, Job, JobId, Task, TaskId
from pliant.core.lifecycle import JOB_LIFECYCLE, GenerationState, JobState, TaskState, is_final
from pliant.core.ports import Observation, Store
from pliant.policy.elastic.membership import GenerationView, Gone, Membership, restore

UNENDED = tuple(state for state in JobState if not is_final(JOB_LIFECYCLE, state))
_PAGE = 1000


def load(store: Store, *, now: float, timeouts: Timeouts) -> dict[JobId, LiveJob]:
    """Return every job that has not ended, or whose processes may live still, oldest first.

    Processes that live are expected to say hello within `silent_s`, those that were ready to train within `return_s`.
    """
    by_job: dict[JobId, list[Task]] = {}
    for task in store.tasks(live=True):
        by_job.setdefault(task.job_id, []).append(task)
    jobs = {job.id: job for job in _unended(store)}
    for job_id in by_job.keys() - jobs.keys():
        if (job := store.job(job_id)) is not None:
            jobs[job_id] = job
    ordered = sorted(jobs.values(), key=lambda job: (job.submitted_at, len(job.id), job.id))
    lives = [_live(job, by_job.get(job.id, []), store.generations(job.id), now) for job in ordered]
    return {live.id: _fixed(live, store) if live.job.spec.fixed else _awaited(live, now, timeouts) for live in lives}


def _awaited(live: LiveJob, now: float, timeouts: Timeouts) -> LiveJob:
    limits = {TaskState.WARM: timeouts.return_s, TaskState.TRAINING: timeouts.return_s}
    kill_at = {task.id: now + limits.get(task.state, timeouts.silent_s) for task in live.tasks.values()}
    return replace(live, kill_at=kill_at)


def _fixed(live: LiveJob, store: Store) -> LiveJob:
    """A fixed job's processes say nothing; those that have finished count still."""
    finished = finished_before(live.job, store.tasks(live.id))
    return replace(live, finished=finished, membership=Membership(job_id=live.id))


def _unended(store: Store) -> list[Job]:
    jobs: list[Job] = []
    page = store.jobs(states=UNENDED, limit=_PAGE)
    while page:
        jobs.extend(page)
        page = store.jobs(states=UNENDED, before=page[-1].id, limit=_PAGE)
    return jobs


def _live(job: Job, tasks: list[Task], generations: tuple[Generation, ...], now: float) -> LiveJob:
    open_ones = {g.number: g for g in generations if g.state in (GenerationState.FORMING, GenerationState.ACTIVE)}
    groups = {g.state: GenerationView(number=g.number, members=g.members, cause=g.cause) for g in open_ones.values()}
    staying = frozenset(task.id for task in tasks if task.state is not TaskState.LEAVING)
    return LiveJob(
        job=job,
        membership=restore(
            job.id,
            number=max((g.number for g in generations), default=0),
            active=groups.get(GenerationState.ACTIVE),
            forming=groups.get(GenerationState.FORMING),
            wanted=staying,
            leaving=frozenset(task.id for task in tasks) - staying,
        ),
        tasks={task.id: task for task in tasks},
        generations=open_ones,
        target=len(staying),
        trained=any(g.switched_at is not None for g in generations),
        step=max((g.step or 0 for g in generations), default=0),
        adopted_at=now,
    )


def reconcile(draft: Draft, observed: Observation) -> frozenset[TaskId]:
    """Tell people that the server is up and the coordinators who is there, end processes that nobody knows, and bring
    jobs that hold no slots out of states that say they do. Return the tasks whose processes are not there."""
    there = {task.task_id for task in observed.tasks}
    known = {task.id for live in draft.jobs() for task in live.running}
    for task_id in sorted(there - known):
        draft.act(KillTask(task_id=task_id))
    num_jobs = sum(live.competes for live in draft.jobs())
    draft.say(EventKind.SERVER_STARTED, f"the server is up; {num_jobs} job{'s' * (num_jobs != 1)} to go on with")
    for live in draft.jobs():
        if live.job.ended:
            continue
        alive = {task.id for task in live.running}
        for task_id in live.membership.tasks.keys() - alive:
            live = feed(draft, live, Gone(task_id=task_id))
        if alive:
            want(draft, live, "the server is back")
        elif live.job.state not in (JobState.PENDING, JobState.PAUSED):
            vacated(draft, live, "the server went away while it ran; it goes on when slots free up")
    return frozenset(known - there)
