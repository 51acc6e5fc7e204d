"""What the end of a kernel means: it left, or it was lost; a model that does not load ends its version.

Requests are the gateway's business: what a kernel held, another one gets. Here a lost kernel only counts. Each loss in
a row doubles the pause before the next start; one that went with its machine is no fault of the model's, and does not
count. A version whose first kernels all end before one was ready, or cannot be started, has failed, and the version
before it goes on serving; one that has served is started again for ever, unless another version can take its place
(`catalog.endpoints.exchange`).
"""

from dataclasses import replace
from typing import Final

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import describe_exit, fail_after_exits
from pliant.control.jobs.transitions import fail, task_event, vacate
from pliant.control.kinds.endpoint.job import EndpointJob
from pliant.core.event import EventKind
from pliant.core.job import Task
from pliant.core.lifecycle import TaskEvent, TaskState
from pliant.core.ports import TaskExit

MAX_FIRST_LOSSES: Final = 3
"""A model that was never loaded is given up after so many kernels."""
_MAX_DOUBLINGS: Final = 16


def take_exit(draft: Draft, live: EndpointJob, task: Task, ended: TaskExit) -> None:
    """Decide what the end of one kernel means; its exit code is noted already."""
    if live.over or task.state is TaskState.LEAVING:
        _leave(draft, live, task)
    elif ended.error and task.started_at >= live.adopted_at and not live.has_served:
        live = task_event(draft, live, task.id, TaskEvent.LOSE, ended.error)
        fail(draft, live, f"{task.id} could not be started: {ended.error}")
    else:
        _lose(draft, live, task, ended)


def _leave(draft: Draft, live: EndpointJob, task: Task) -> None:
    live = task_event(draft, live, task.id, TaskEvent.EXIT)
    how = live.killed.get(task.id, "has left")
    draft.say(EventKind.TASK_LEFT, f"{task.id} {how}: {task.reason}", job_id=live.id, task_id=task.id)
    _vacate_if_empty(draft, live, task.reason)


def _lose(draft: Draft, live: EndpointJob, task: Task, ended: TaskExit) -> None:
    how = live.killed.get(task.id) or (f"was not started: {ended.error}" if ended.error else "")
    how = how or describe_exit(ended.exit_code)
    was_ready = task.state is TaskState.TRAINING
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    number = live.num_failures + (not ended.went_with_its_machine)
    live = draft.put(replace(live, num_failures=number))
    draft.say(
        EventKind.TASK_LOST,
        f"{task.id} of {live.label} {how}; " + ("its requests go to others" if was_ready else "it had not loaded"),
        job_id=live.id,
        task_id=task.id,
        data={"exit_code": ended.exit_code},
    )
    if number >= MAX_FIRST_LOSSES and not live.has_served:
        reason = f"its model did not load, {number} times in a row; {task.id} {how}"
        fail_after_exits(draft, live, task, reason, facts=ended.facts)
        return
    timeouts = draft.settings.timeouts
    pause_s = timeouts.backoff_s * 2.0 ** min(number - 1, _MAX_DOUBLINGS) if number > 1 or not was_ready else 0.0
    if pause_s and not ended.went_with_its_machine:
        live = draft.put(replace(live, held_until=draft.now + min(pause_s, timeouts.max_backoff_s)))
    _vacate_if_empty(draft, live, f"{task.id} {how}")


def _vacate_if_empty(draft: Draft, live: EndpointJob, reason: str) -> None:
    if not live.running and not live.over:
        vacate(draft, live, reason)
