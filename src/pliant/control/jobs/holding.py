"""Jobs that are held: they take no slots until they are released, whoever could have them.

That a job is held is written in one transaction with its tasks being asked to leave. So whenever a server dies, the
next one finds either a job that is not held, or one whose tasks all leave; and as the scheduler sees that it wants
nothing, none is started. Example: job-4 trains on three tasks, and is held. All three leave at the next step boundary,
their leader saves the state, and job-4 is paused. Its slots were given to others by the decision that followed.
"""

from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import leave
from pliant.control.jobs.waiting import why_idle
from pliant.core.errors import Conflict
from pliant.core.event import EventKind
from pliant.core.lifecycle import JobState


def hold(draft: Draft, kinds: Kinds, live: LiveJob, why: str) -> None:
    """Hold a job that has not ended: if it runs, all its tasks leave. Of one that is held the reason is kept up.

    Raises:
        Conflict: it runs and is of a kind that cannot be paused.
    """
    assert why, "who is held is told why"
    if live.job.hold == why:
        return
    if live.running and not live.on_hold:
        _refuse_unpausable(live)
        live = live.give_up(live.staying)
    was_on_hold = live.on_hold
    job = replace(live.job, hold=why)
    live = draft.put(replace(live, target=0, job=replace(job, why=why_idle(job))))
    if was_on_hold:
        return
    draft.say(EventKind.JOB_HELD, f"{live.label} is held: {why}", job_id=live.id)
    if live.staying:
        leave(draft, kinds.of(live.job), live, tuple(task.id for task in live.staying), why)


def release(draft: Draft, live: LiveJob, why: str) -> None:
    """Let a job that is held compete for slots again."""
    if not live.on_hold:
        return
    job = replace(live.job, hold="")
    if job.state is JobState.PAUSED:
        job = replace(job, reason=f"it was released ({why}); it goes on when slots free up")
    draft.say(EventKind.JOB_RELEASED, f"{live.label} is not held any more: {why}", job_id=live.id)
    draft.put(replace(live, job=replace(job, why=why_idle(job))))


def _refuse_unpausable(live: LiveJob) -> None:
    spec = live.job.spec
    if spec.fixed or spec.endpoint is not None:
        what = "is fixed" if spec.fixed else "serves an endpoint"
        raise Conflict(
            f"{live.id} {what} and runs: its state cannot be saved, so it cannot be held; hold it before it starts, "
            f"let it end, or stop it"
        )
