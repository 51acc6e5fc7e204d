"""When kernels that were asked to leave drain: at once, but for those that move from one slot to another.

A kernel that holds a part of a slot may be told to leave so that its slot is free, while another of its version starts
in its place. It goes on answering until that one has loaded its model, `MOVE_S` at most. Example: `digits` has one
kernel, and its slot is given back to a training. The new one, on a slot that `shop` has, loads for 2 s; then the old
one drains. No request waits for the model.
"""

from itertools import islice
from typing import Final

from pliant.control.jobs.draft import Draft, DrainTask
from pliant.control.jobs.transitions import kill_later
from pliant.control.kinds.endpoint.job import EndpointJob
from pliant.core.job import Task
from pliant.core.lifecycle import TaskState
from pliant.core.slot import WHOLE_SLOT

DRAIN_S: Final = 5.0
"""A kernel that was asked to leave has so long beyond what a batch may take."""
MOVE_S: Final = 30.0
"""A kernel waits no longer for the one in its place; somebody else waits for its slot."""


def drain_leavers(draft: Draft, live: EndpointJob) -> EndpointJob:
    """Have kernels drain that were asked to leave, but for as many as load in the place of others."""
    num_waiting = sum(_is_awaited(live, task, draft.now) for task in live.running)
    for task in islice(_leavers(live), max(0, len(_leavers(live)) - num_waiting)):
        draft.act(DrainTask(task_id=task.id))
        live = kill_later(draft, live, task.id, draft.now + live.profile.execution_timeout_s + DRAIN_S)
    return live


def wait_for_successors_until(live: EndpointJob) -> list[float]:
    """Return when kernels stop waiting for those in their place, if some wait."""
    if not _leavers(live):
        return []
    return [task.started_at + MOVE_S for task in live.running if task.state is TaskState.STARTING]


def _leavers(live: EndpointJob) -> list[Task]:
    """Return kernels that were asked to leave and do not drain yet."""
    return [task for task in live.running if task.state is TaskState.LEAVING and task.id not in live.kill_at]


def _is_awaited(live: EndpointJob, task: Task, now: float) -> bool:
    moves = live.competes and live.job.spec.slot_share < WHOLE_SLOT
    return moves and task.state is TaskState.STARTING and now < task.started_at + MOVE_S
