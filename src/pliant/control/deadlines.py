"""What time alone does to a job: the coordinator's clock, processes that must be killed, scripts that never train."""

from dataclasses import replace

from pliant.control.draft import Draft, KillTask
from pliant.control.exits import never_started
from pliant.control.live import LiveJob
from pliant.control.transitions import fail, feed, release_leavers
from pliant.core.job import Task
from pliant.core.lifecycle import TaskState
from pliant.policy.membership import Tick

KILL_AGAIN_S = 5.0


def pass_time(draft: Draft, live: LiveJob) -> None:
    """Do what is due for one job."""
    due = [task_id for task_id, kill_at in live.kill_at.items() if kill_at <= draft.now]
    for task_id in due:
        draft.act(KillTask(task_id=task_id))
    if due:
        again = dict.fromkeys(due, draft.now + KILL_AGAIN_S)
        live = draft.put(replace(live, kill_at={**live.kill_at, **again}))
    if live.job.ended:
        return
    late = [task for task in live.running if (at := _start_deadline(live, task)) is not None and at <= draft.now]
    if late:
        fail(draft, live, never_started(draft.settings, live, late[0]))
        return
    wake_at = live.membership.wake_at
    if wake_at is not None and wake_at <= draft.now:
        release_leavers(draft, feed(draft, live, Tick()))


def next_deadline(live: LiveJob) -> float | None:
    """Return when this job next needs `pass_time`; None if time alone changes nothing for it."""
    instants = list(live.kill_at.values())
    if not live.job.ended:
        instants += [at for task in live.running if (at := _start_deadline(live, task)) is not None]
        if live.membership.wake_at is not None:
            instants.append(live.membership.wake_at)
    return min(instants, default=None)


def _start_deadline(live: LiveJob, task: Task) -> float | None:
    if task.state is not TaskState.STARTING or not live.competes:
        return None
    return max(task.started_at, live.adopted_at) + live.job.spec.start_timeout_s
