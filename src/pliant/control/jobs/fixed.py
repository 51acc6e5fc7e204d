"""Fixed jobs: ordinary `torch.distributed` scripts of one size, whose processes start, fail and end together.

They have no control link and no coordinator: what is known of a process is that it exists and how it ended. All tasks
are started by one decision or none; when one fails or is lost the others are ended, and when all are gone the job waits
for its slots again, as the first in line. It completes when all its processes have ended with exit code 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.last_words import describe, stderr_of_first
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.orders import Seat
from pliant.control.jobs.transitions import complete, fail, job_event, leave, put_task, task_event, vacated
from pliant.core.errors import Conflict
from pliant.core.event import EventKind
from pliant.core.job import Job, Task, TaskId
from pliant.core.lifecycle import JobEvent, JobState, TaskEvent, TaskState
from pliant.core.plan import Placement
from pliant.core.ports import Address, Observation, TaskExit


def refuse_resize(job: Job) -> NoReturn:
    """Refuse to change how many tasks a fixed job has.

    Raises:
        Conflict: always.
    """
    raise Conflict(
        f"{job.id} is fixed at {job.max_tasks}: its script cannot go on with another number of processes; stop it and "
        f"submit it again with another --fixed"
    )


# How they start


def startable(live: LiveJob, placements: Sequence[Placement]) -> tuple[Placement, ...]:
    """Return where all processes start now, in order of rank; nowhere unless all of them can and none is left."""
    if live.running or len(placements) < live.job.max_tasks:
        return ()
    nodes = list(dict.fromkeys(placement.node_id for placement in placements))
    return tuple(sorted(placements, key=lambda placement: nodes.index(placement.node_id)))


def seats(placements: Sequence[Placement], meeting: Address) -> tuple[Seat, ...]:
    """Return the place of every process; those of a node have consecutive ranks, as torchrun gives them."""
    nodes = list(dict.fromkeys(placement.node_id for placement in placements))
    found = []
    for rank, placement in enumerate(placements):
        beside = [other for other in placements if other.node_id == placement.node_id]
        firsts = [other.slots[0] for other in beside]
        found.append(
            Seat(
                rank=rank,
                size=len(placements),
                local_rank=beside.index(placement),
                local_size=len(beside),
                node_rank=nodes.index(placement.node_id),
                num_nodes=len(nodes),
                meeting=meeting,
                node_slots=(*firsts, *(slot for other in beside for slot in other.slots[1:])),
            )
        )
    return tuple(found)


def see(draft: Draft, observed: Observation) -> bool:
    """Note which processes exist now; a fixed job whose processes all do is running. Return whether that is news."""
    pids = {task.task_id: task.pid for task in observed.tasks if task.pid is not None}
    for live in draft.jobs():
        if live.job.spec.fixed and live.competes:
            _see(draft, live, pids)
    return bool(draft.touched)


def _see(draft: Draft, live: LiveJob, pids: dict[TaskId, int]) -> None:
    for task in live.running:
        if task.state is TaskState.STARTING and task.id in pids:
            live = put_task(draft, live, replace(task, pid=pids[task.id]))
            live = task_event(draft, live, task.id, TaskEvent.READY)
            live = task_event(draft, live, task.id, TaskEvent.JOIN)
    whole = all(task.state is TaskState.TRAINING for task in live.running)
    if live.running and whole and live.job.state is JobState.STARTING:
        job_event(draft, live, JobEvent.TRAIN, "")


# How they end


def take_exit(draft: Draft, live: LiveJob, task: Task, ended: TaskExit) -> None:
    """Take in the end of one process of a fixed job; its exit code is noted already."""
    if live.job.ended or task.state is TaskState.LEAVING:
        _left(draft, live, task)
    elif ended.error and task.started_at >= live.adopted_at:
        live = task_event(draft, live, task.id, TaskEvent.LOSE, ended.error)
        fail(draft, live, f"{task.id} could not be started: {ended.error}")
    elif ended.error:
        lose(draft, live, task, f"was not started: {ended.error}")
    elif ended.exit_code == 0:
        _finished(draft, live, task)
    else:
        _failed(draft, live, task, ended.exit_code)


def lose(draft: Draft, live: LiveJob, task: Task, how: str) -> None:
    """Lose a process while the server was away, for which nobody is to blame; all start again."""
    if live.job.ended or task.state is TaskState.LEAVING:
        _left(draft, live, task)
        return
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    draft.say(EventKind.TASK_LOST, f"{task.id} of {live.label} {how}", job_id=live.id, task_id=task.id)
    _end_all(draft, live, f"{task.id} {how}; all its processes start again")


def _left(draft: Draft, live: LiveJob, task: Task) -> None:
    live = task_event(draft, live, task.id, TaskEvent.EXIT)
    why = task.reason or "its job is over"
    draft.say(EventKind.TASK_LEFT, f"{task.id} was ended: {why}", job_id=live.id, task_id=task.id)
    if not live.running and not live.job.ended:
        vacated(draft, draft.put(replace(live, finished=frozenset())), task.reason)


def _finished(draft: Draft, live: LiveJob, task: Task) -> None:
    live = task_event(draft, live, task.id, TaskEvent.EXIT)
    live = draft.put(replace(live, finished=live.finished | {task.id}, target=max(0, live.target - 1)))
    draft.say(EventKind.TASK_LEFT, f"{task.id} has finished", job_id=live.id, task_id=task.id)
    if not live.running:
        complete(draft, live, f"all {len(live.finished)} processes ended with exit code 0")


def _failed(draft: Draft, live: LiveJob, task: Task, exit_code: int | None) -> None:
    how, spec = live.killed.get(task.id) or describe(exit_code), live.job.spec
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    number = live.job.num_restarts + 1
    last = number > spec.max_restarts
    what = "no restart is left" if last else f"all processes start again (restart {number} of {spec.max_restarts})"
    draft.say(
        EventKind.TASK_LOST,
        f"{task.id} of {live.label} {how}; {what}",
        job_id=live.id,
        task_id=task.id,
        data={"exit_code": exit_code, "restart": None if last else number},
    )
    if last:
        times = f" after {spec.max_restarts} restart{'s' * (spec.max_restarts != 1)}" if spec.max_restarts else ""
        words = stderr_of_first(draft.settings, task, live.staying)
        fail(draft, live, f"{task.id} {how}{times} (max_restarts){words}")
        return
    live = draft.put(replace(live, job=replace(live.job, num_restarts=number), restarting=exit_code is not None))
    _end_all(draft, live, f"restart {number} of {spec.max_restarts}: {task.id} {how}")


def _end_all(draft: Draft, live: LiveJob, cause: str) -> None:
    live = draft.put(replace(live, finished=frozenset(), target=live.job.max_tasks))
    if not live.running:
        vacated(draft, live, cause)
    elif live.staying:
        leave(draft, live, tuple(task.id for task in live.staying), cause)


def finished_before(job: Job, tasks: Sequence[Task]) -> frozenset[TaskId]:
    """Return which processes of the present attempt had finished when the server went away.

    Args:
        job: a fixed job.
        tasks: all it ever had, oldest first. An attempt starts all processes, so the newest ones are the present one.
    """
    newest = tasks[-job.max_tasks :]
    ended = [task for task in newest if task.ended]
    over = len(ended) == len(newest) or any(task.exit_code != 0 for task in ended)
    if over or any(task.state is TaskState.LEAVING for task in newest):
        return frozenset()
    return frozenset(task.id for task in ended)
