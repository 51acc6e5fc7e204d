"""What time alone does to a job: the coordinator's clock, processes that must be killed, scripts that never train."""

from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.exits import fence, never_started
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import fail, feed, kill, release_leavers
from pliant.core.job import Task, TaskId
from pliant.core.lifecycle import TaskState
from pliant.policy.elastic.membership import Tick


def pass_time(draft: Draft, live: LiveJob) -> None:
    """Do what is due for one job."""
    for task_id in [task_id for task_id, kill_at in live.kill_at.items() if kill_at <= draft.now]:
        live = _kill(draft, live, task_id)
    if live.job.ended:
        return
    late = [task for task in live.running if (at := _start_deadline(live, task)) is not None and at <= draft.now]
    if late:
        fail(draft, live, never_started(draft.settings, live, late[0]))
        return
    if live.recovers_until is not None and live.recovers_until <= draft.now:
        live = draft.put(replace(live, recovers_until=None))
    wake_at = live.membership.wake_at
    if wake_at is not None and wake_at <= draft.now:
        release_leavers(draft, feed(draft, live, Tick()))


def _kill(draft: Draft, live: LiveJob, task_id: TaskId) -> LiveJob:
    task = live.tasks[task_id]
    if task_id in live.raised:
        return kill(draft, live, task_id, "raised, did not end in time and was killed by Pliant")
    over = live.job.ended or task.state is TaskState.LEAVING or task_id in live.finished
    if over or task_id in live.killed:
        return kill(draft, live, task_id, "did not end in time, was killed by Pliant")
    silent_s = draft.now - live.adopted_at - live.slept_s
    fence(draft, live.id, task_id, f"said nothing for {silent_s:.0f} s after the server came back", blame=False)
    after = draft.job(live.id)
    assert after is not None
    return after


def postpone(draft: Draft, seconds: float) -> None:
    """Move the deadlines of all jobs: the server stood still for so long, and could not hear what would meet them."""
    for live in draft.jobs():
        kill_at = {task_id: at + seconds for task_id, at in live.kill_at.items()}
        draft.put(replace(live, kill_at=kill_at, slept_s=live.slept_s + seconds))


def next_deadline(live: LiveJob) -> float | None:
    """Return when this job next needs `pass_time`; None if time alone changes nothing for it."""
    instants = list(live.kill_at.values())
    if not live.job.ended:
        instants += [at for task in live.running if (at := _start_deadline(live, task)) is not None]
        instants += [at for at in (live.membership.wake_at, live.recovers_until) if at is not None]
    return min(instants, default=None)


def _start_deadline(live: LiveJob, task: Task) -> float | None:
    if task.state is not TaskState.STARTING or not live.competes or live.job.spec.fixed:
        return None
    return max(task.started_at, live.adopted_at) + live.slept_s + live.job.spec.start_timeout_s
