"""What time alone does to a job: late processes are killed, its own time may be over, and its kind does what is due."""

from collections.abc import Container
from typing import Final

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import conclude
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.transitions import stop
from pliant.core.duration import duration
from pliant.core.job import NodeId

OUT_OF_REACH_S: Final = 1.0
"""The deadlines of a job that cannot be heard are looked at again so much later."""


def pass_time(draft: Draft, kinds: Kinds, live: LiveJob, silent: Container[NodeId] = ()) -> None:
    """Do what is due for one job.

    What its tasks have to say or to do in time waits as long as all that matter are on machines that nothing is heard
    of (`silent`): they may train on, and nobody else may then begin where they are.
    """
    kind = kinds.of(live.job)
    if live.competes and live.is_out_of_reach(silent):
        live = draft.put(live.postpone(OUT_OF_REACH_S))
    for task_id in [task_id for task_id, kill_at in live.kill_at.items() if kill_at <= draft.now]:
        live = kind.kill_late(draft, live, live.tasks[task_id])
    if live.failing is not None:
        if live.failing.until <= draft.now:
            conclude(draft, live)
    elif live.limit_at is not None and live.limit_at <= draft.now:
        limit = duration(live.job.spec.time_limit_s or 0.0)
        stop(draft, kind, live, f"it has held slots for {limit}, which is its time limit")
    elif not live.job.ended:
        kind.pass_time(draft, live)


def postpone(draft: Draft, seconds: float) -> None:
    """Move the deadlines of all jobs: the server stood still for so long, and could not hear what would meet them."""
    for live in draft.jobs():
        draft.put(live.postpone(seconds))


def next_deadline(kinds: Kinds, live: LiveJob) -> float | None:
    """Return when this job next needs `pass_time`; None if time alone changes nothing for it."""
    instants = list(live.kill_at.values())
    if live.failing is not None:
        instants.append(live.failing.until)
    if live.limit_at is not None:
        instants.append(live.limit_at)
    if live.failing is None and not live.job.ended and (due := kinds.of(live.job).next_deadline(live)) is not None:
        instants.append(due)
    return min(instants, default=None)
