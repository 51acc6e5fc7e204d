"""What control makes of the end of a process: it left, it was lost, or its job has failed; with a diagnosis.

A loss is a process that a signal ended, that nobody can account for or that hangs; its slot is granted again. So is one
whose program raised or exited while others train on; what happens again at that step, or with nobody else left, ends
the job.
"""

from dataclasses import replace

from pliant.control.jobs import fixed
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.last_words import describe, stderr_of
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.losses import count_loss
from pliant.control.jobs.transitions import (
    complete,
    fail,
    feed,
    kill,
    kill_later,
    put_task,
    release_leavers,
    task_event,
    vacated,
)
from pliant.control.settings import ControlSettings
from pliant.core.event import EventKind
from pliant.core.job import JobId, Task, TaskId
from pliant.core.lifecycle import TaskEvent, TaskState
from pliant.core.link import Failed
from pliant.core.ports import TaskExit
from pliant.files import step_file
from pliant.policy.elastic.diagnose import ProcessFailure
from pliant.policy.elastic.membership import Gone

NUM_TRACEBACK_LINES = 30
RECOVERY_S = 1.0
"""The longest that a lost task's place stays empty so that the survivors can do a step first."""


def take_exit(draft: Draft, job_id: JobId, ended: TaskExit) -> None:
    """Take in the end of one process. Of a process that is not known, or known to have ended, nothing is made."""
    live = draft.job(job_id)
    task = live.tasks.get(ended.task_id) if live is not None else None
    if live is None or task is None or task.ended:
        return
    live = put_task(draft, live, replace(task, exit_code=ended.exit_code))
    if ended.cause:
        live = draft.put(replace(live, killed={**live.killed, task.id: ended.cause}))
    if live.job.spec.fixed:
        fixed.take_exit(draft, live, live.tasks[task.id], ended)
    elif task.id in live.fenced:
        _fenced_is_gone(draft, live, task)
    elif ended.error:
        _could_not_start(draft, live, task, ended.error)
    elif live.job.ended or task.state is TaskState.LEAVING or task.id in live.finished:
        _left(draft, live, task)
    elif ended.exit_code is None or ended.exit_code < 0 or task.id in live.raised:
        _lost(draft, live, task, ended)
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
    killed = live.killed.get(task.id)
    draft.say(
        EventKind.TASK_LEFT,
        f"{task.id} {killed} and has left {_slots(task)}" if killed else f"{task.id} has left {_slots(task)}",
        job_id=live.id,
        task_id=task.id,
    )
    _after(draft, live, task, "it left")


def take_failure(draft: Draft, live: LiveJob, task: Task, failed: Failed) -> None:
    """Take in that a worker's program raised. If others train on, its process is awaited, and is a loss like others."""
    if not _is_survived(draft, live, task):
        fail(draft, live, failure(draft.settings, live, task, failed))
        return
    live = _blame(draft, live, task)
    live = draft.put(replace(live, raised={**live.raised, task.id: failed.error}))
    kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.messages_s)


def _is_survived(draft: Draft, live: LiveJob, task: Task) -> bool:
    """Tell whether the others go on without a worker that ended by its own fault.

    Once at a step: what happens there again is the script's doing, or its data's. A newcomer's fault is its own.
    """
    gone = {task.id, *live.fenced, *live.raised}
    others = [t for t in live.running if t.id in live.joined and t.id not in gone]
    return bool(others) and (task.id not in live.joined or live.raised_at != _step_of(draft, live, task))


def _blame(draft: Draft, live: LiveJob, task: Task) -> LiveJob:
    if task.id not in live.joined:
        return live
    return draft.put(replace(live, raised_at=_step_of(draft, live, task)))


def _step_of(draft: Draft, live: LiveJob, task: Task) -> int:
    noted = step_file.read(draft.settings.folders(live.id).log(task.id, task.node_id))
    return live.step if noted is None else noted


def _lost(draft: Draft, live: LiveJob, task: Task, ended: TaskExit) -> None:
    exit_code = ended.exit_code
    killed = live.killed.get(task.id)
    raised = live.raised.get(task.id)
    how = f"raised {raised}" if raised else killed or describe(exit_code)
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    _say_lost(draft, live, task, how, exit_code)
    number = -exit_code if exit_code is not None and exit_code < 0 and killed is None else None
    large = bool(ended.cause)
    death = ProcessFailure(task_id=task.id, node_id=task.node_id, how=how, signal=number, too_large=large)
    live = count_loss(draft, _recovering(draft, live, task), task, death)
    _after(draft, live, task, how)


def _recovering(draft: Draft, live: LiveJob, task: Task) -> LiveJob:
    """Let those who train on do a step before anybody starts in the place of a task that was lost."""
    if task.id not in live.joined or live.membership.current is None:
        return live
    return draft.put(replace(live, recovers_until=draft.now + RECOVERY_S))


def fence(draft: Draft, job_id: JobId, task_id: TaskId, how: str, *, blame: bool) -> None:
    """Take a task out of its job at once and kill its process: it gives no sign of life, so it may wake at any time.

    Its slots stay taken until the process is gone.

    Args:
        how: what is wrong with it, in words that follow its name.
        blame: count it as a loss of the job's.
    """
    live = draft.job(job_id)
    task = live.tasks.get(task_id) if live is not None else None
    if live is None or task is None or task.ended or task.id in live.fenced:
        return
    how = f"{how} and was killed by Pliant"
    live = kill(draft, live, task.id, how)
    if live.job.ended or task.id in live.finished:
        return
    live = draft.put(replace(live, fenced=live.fenced | {task.id}))
    live = task_event(draft, live, task.id, TaskEvent.LEAVE, how)
    _say_lost(draft, live, task, how, None)
    live = _recovering(draft, live, task)
    if blame and task.state is not TaskState.LEAVING:
        death = ProcessFailure(task_id=task.id, node_id=task.node_id, how=how, hung=True)
        live = count_loss(draft, live, task, death)
    _after(draft, live, task, how)


def _say_lost(draft: Draft, live: LiveJob, task: Task, how: str, exit_code: int | None) -> None:
    draft.say(
        EventKind.TASK_LOST,
        f"{task.id} of {live.label} {how}; its share goes on elsewhere and its slot is granted again",
        job_id=live.id,
        task_id=task.id,
        data={"exit_code": exit_code},
    )


def _fenced_is_gone(draft: Draft, live: LiveJob, task: Task) -> None:
    """Free the slots of a task that was lost before; nothing else changes, unless it was the last."""
    how = live.killed[task.id]
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    if not live.running and not live.job.ended:
        _after(draft, live, replace(task, state=TaskState.LOST), how)


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
    if exit_code and _is_survived(draft, live, task):
        _lost(draft, _blame(draft, live, task), task, TaskExit(task_id=task.id, exit_code=exit_code))
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
    if live.job.spec.fixed:
        fixed.lose(draft, live, task, "vanished while the server was away")
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
