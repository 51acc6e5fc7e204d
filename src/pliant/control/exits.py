"""What control makes of the end of a process: it left, it was lost, or its job has failed; with a diagnosis.

A loss is a process that a signal ended or that nobody can account for; its slot is granted again. A program that ends
by itself before its training has, ends the job.
"""

import os
import signal
from dataclasses import replace
from pathlib import Path

from pliant.control.draft import Draft
from pliant.control.live import LiveJob, task_number
from pliant.control.settings import ControlSettings
from pliant.control.transitions import (
    complete,
    fail,
    feed,
    put_task,
    release_leavers,
    task_event,
    vacated,
)
from pliant.core.event import EventKind
from pliant.core.job import JobId, Task, TaskId
from pliant.core.lifecycle import TaskEvent, TaskState
from pliant.core.link import Failed
from pliant.core.ports import TaskExit
from pliant.policy.membership import Gone

NUM_TRACEBACK_LINES = 30
NUM_STDERR_LINES = 10
_TAIL_BYTES = 8192


def take_exit(draft: Draft, job_id: JobId, ended: TaskExit) -> None:
    """Take in the end of one process. Of a process that is not known, or known to have ended, nothing is made."""
    live = draft.job(job_id)
    task = live.tasks.get(ended.task_id) if live is not None else None
    if live is None or task is None or task.ended:
        return
    live = put_task(draft, live, replace(task, exit_code=ended.exit_code))
    if ended.error:
        _could_not_start(draft, live, task, ended.error)
    elif live.job.ended or task.state is TaskState.LEAVING or task.id in live.finished:
        _left(draft, live, task)
    elif ended.exit_code is None or ended.exit_code < 0:
        _lost(draft, live, task, ended.exit_code)
    else:
        _ended_by_itself(draft, live, task, ended.exit_code)


def _could_not_start(draft: Draft, live: LiveJob, task: Task, error: str) -> None:
    if task.started_at < live.adopted_at and live.competes:
        _lost_while_away(draft, live, task, f"was not started: {error}")
        return
    live = task_event(draft, live, task.id, TaskEvent.LOSE, error)
    if not live.competes:
        _after(draft, live, task, error)
        return
    fail(draft, live, f"{task.id} could not be started: {error}")


def _left(draft: Draft, live: LiveJob, task: Task) -> None:
    live = task_event(draft, live, task.id, TaskEvent.EXIT)
    draft.say(
        EventKind.TASK_LEFT,
        f"{task.id} has left {_slots(task)}",
        job_id=live.id,
        task_id=task.id,
    )
    _after(draft, live, task, "it left")


def _lost(draft: Draft, live: LiveJob, task: Task, exit_code: int | None) -> None:
    how = describe(exit_code)
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    draft.say(
        EventKind.TASK_LOST,
        f"{task.id} of {live.label} {how}; its share goes on elsewhere and its slot is granted again",
        job_id=live.id,
        task_id=task.id,
        data={"exit_code": exit_code},
    )
    live = _count_loss(draft, live, task)
    if live.competes and live.num_losses >= draft.settings.max_losses:
        fail(draft, live, _crash_loop(draft.settings, live, task, how))
        return
    _after(draft, live, task, how)


def _count_loss(draft: Draft, live: LiveJob, task: Task) -> LiveJob:
    """Count losses in a row. Processes lost together are one loss; a committed step begins a new row."""
    progressed = live.step > live.loss_step
    if not progressed and live.num_losses and task_number(task.id) <= live.loss_task:
        return live
    num_losses = 1 if progressed else live.num_losses + 1
    timeouts = draft.settings.timeouts
    held_until = live.held_until
    if num_losses >= 2:
        held_until = draft.now + min(timeouts.max_backoff_s, timeouts.backoff_s * 2.0 ** (num_losses - 2))
    return draft.put(
        replace(
            live,
            num_losses=num_losses,
            loss_step=live.step,
            loss_task=max(task_number(task_id) for task_id in live.tasks),
            held_until=held_until,
        )
    )


def _ended_by_itself(draft: Draft, live: LiveJob, task: Task, exit_code: int) -> None:
    script = live.job.spec.script
    others = [t for t in live.running if t.id != task.id and t.id in live.membership.active]
    if exit_code == 0 and live.trained and others:
        # The others know better whether training is over: each of them ends, or goes on without it.
        live = task_event(draft, live, task.id, TaskEvent.EXIT, "it ended by itself")
        _after(draft, live, task, "it ended by itself")
        return
    if exit_code == 0 and live.trained and _model_is_saved(draft.settings, live):
        live = task_event(draft, live, task.id, TaskEvent.EXIT)
        complete(draft, live, "all epochs are trained and the model is saved; it ended while the server was away")
        return
    live = task_event(draft, live, task.id, TaskEvent.EXIT, f"it ended with exit code {exit_code}")
    python = live.job.spec.python
    if exit_code and python is not None and task.pid is None:
        reason = (
            f"the interpreter {python} ended with exit code {exit_code} before {script} began; see that Pliant is "
            f"installed in its environment (`{python} -c 'import pliant.train'`)"
        )
    elif exit_code:
        reason = f"{script} ended with exit code {exit_code}"
    elif live.trained:
        reason = (
            f"{script} ended (exit code 0) at step {live.step}, before its training was finished; iterate all epochs "
            f"of its pliant.train.Run, or ask for fewer"
        )
    else:
        reason = (
            f"{script} ended (exit code 0) without training: it never began to train; build a pliant.train.Run or a "
            f"FabricModel and iterate it"
        )
    fail(draft, live, reason + stderr_of(draft.settings, task))


def _after(draft: Draft, live: LiveJob, task: Task, reason: str) -> None:
    """Draw the consequences for the job of a process that is gone."""
    if live.job.ended:
        return
    if live.running:
        leader_gone = not live.membership.active or task.id == live.membership.active[0]
        if live.finished and leader_gone:
            complete(draft, live, "all epochs are trained and the model is saved")
            return
        release_leavers(draft, feed(draft, live, Gone(task_id=task.id, reason=reason)))
        return
    if live.finished:
        complete(draft, live, "all epochs are trained and the model is saved")
        return
    live = feed(draft, live, Gone(task_id=task.id, reason=reason))
    vacated(draft, live, _vacated_because(live, task, reason))


def _vacated_because(live: LiveJob, task: Task, reason: str) -> str:
    where = "from its newest checkpoint" if live.trained else "from the beginning"
    if task.state is TaskState.LEAVING:
        return f"its state is saved; it goes on when slots free up ({task.reason})" if live.trained else task.reason
    return f"its last task was lost ({reason}); it goes on {where} when slots free up"


def describe(exit_code: int | None) -> str:
    """Return how a process ended, in words that follow its name."""
    if exit_code is None:
        return "vanished without anybody seeing how"
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    number = -exit_code
    known = {s.value: s.name for s in signal.Signals}
    hint = " (often the kernel, out of memory)" if number == signal.SIGKILL else ""
    return f"was killed by {known.get(number, f'signal {number}')}{hint}"


def failure(settings: ControlSettings, live: LiveJob, task: Task, failed: Failed) -> str:
    """Return why a job has failed whose program raised: the error first, then the end of its traceback."""
    lines = failed.traceback.rstrip().splitlines()[-NUM_TRACEBACK_LINES:]
    tail = "\n" + "\n".join(lines) if lines else ""
    where = settings.folders(live.id).log(task.id, task.node_id) / "stderr"
    return f"{live.job.spec.script} raised {failed.error} (in {task.id}, see {where}){tail}"


def never_started(settings: ControlSettings, live: LiveJob, task: Task) -> str:
    """Return why a job has failed whose script did not begin to train in time."""
    limit = live.job.spec.start_timeout_s
    return (
        f"{live.job.spec.script} never started to train: {task.id} ran {limit:g} s (start_timeout_s) without building "
        f"a pliant.train.Run or FabricModel; mend the script or raise start_timeout_s" + stderr_of(settings, task)
    )


def _crash_loop(settings: ControlSettings, live: LiveJob, task: Task, how: str) -> str:
    log = settings.folders(live.id).log(task.id, task.node_id)
    return (
        f"its tasks were lost {live.num_losses} times without a step committed in between; the last, {task.id}, {how}; "
        f"its log is in {log}" + stderr_of(settings, task)
    )


def stderr_of(settings: ControlSettings, task: Task) -> str:
    """Return the last lines of what a task wrote to stderr, to be put behind a reason."""
    path = settings.folders(task.job_id).log(task.id, task.node_id) / "stderr"
    lines = [line for line in _tail(path).splitlines() if line.strip()][-NUM_STDERR_LINES:]
    return f"; the end of its stderr ({path}):\n" + "\n".join(lines) if lines else "; its stderr is empty"


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _model_is_saved(settings: ControlSettings, live: LiveJob) -> bool:
    try:
        return (settings.folders(live.id).model / "model.pt").stat().st_mtime >= live.job.submitted_at
    except OSError:
        return False


def _slots(task: Task) -> str:
    numbers = ", ".join(str(slot) for slot in task.slots)
    return f"slot{'s' * (len(task.slots) != 1)} {numbers} of {task.node_id}"


def lose_vanished(draft: Draft, job_id: JobId, task_id: TaskId) -> None:
    """Note that a process is gone that ended while no server was there to see it, and that left no trace."""
    live = draft.job(job_id)
    task = live.tasks.get(task_id) if live is not None else None
    if live is None or task is None or task.ended:
        return
    if live.job.ended or task.state is TaskState.LEAVING or task.id in live.finished:
        _left(draft, live, task)
        return
    _lost_while_away(draft, live, task, "vanished while the server was away")


def _lost_while_away(draft: Draft, live: LiveJob, task: Task, how: str) -> None:
    """Lose a task without blaming its job."""
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    draft.say(EventKind.TASK_LOST, f"{task.id} of {live.label} {how}", job_id=live.id, task_id=task.id)
    _after(draft, live, task, how)
