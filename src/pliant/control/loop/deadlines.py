"""What time alone does to a job: processes are killed that were to be gone, and the job's kind does what is due."""

from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import conclude
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.live import LiveJob


def pass_time(draft: Draft, kinds: Kinds, live: LiveJob) -> None:
    """Do what is due for one job."""
    kind = kinds.of(live.job)
    for task_id in [task_id for task_id, kill_at in live.kill_at.items() if kill_at <= draft.now]:
        live = kind.kill_late(draft, live, live.tasks[task_id])
    if live.failing is not None:
        if live.failing.until <= draft.now:
            conclude(draft, live)
    elif not live.job.ended:
        kind.pass_time(draft, live)


def postpone(draft: Draft, seconds: float) -> None:
    """Move the deadlines of all jobs: the server stood still for so long, and could not hear what would meet them."""
    for live in draft.jobs():
        kill_at = {task_id: at + seconds for task_id, at in live.kill_at.items()}
        draft.put(replace(live, kill_at=kill_at, slept_s=live.slept_s + seconds))


def next_deadline(kinds: Kinds, live: LiveJob) -> float | None:
    """Return when this job next needs `pass_time`; None if time alone changes nothing for it."""
    instants = list(live.kill_at.values())
    if live.failing is not None:
        instants.append(live.failing.until)
    elif not live.job.ended and (due := kinds.of(live.job).next_deadline(live)) is not None:
        instants.append(due)
    return min(instants, default=None)
