"""What the end of a process of an elastic training means: it left, it was lost, or its job has failed.

A loss is a process that a signal ended, that nobody can account for or that hangs; its slot is granted again. So is one
whose program raised or exited while others train on; what happens again at that step, or with nobody else left, ends
the job. Example: of three workers one raises at step 40. The two others go on, and a newcomer takes its place. Raises
another one at step 40 too, the script or its data are to blame, and the job fails; at step 41 it would go on again.
A process that a machine cannot start is a loss, too, if others train on or there is another machine to try.

A script that ends well and has never shown that it wants to train elastically is a plain one: its job has completed.
"""

from dataclasses import replace

from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import describe_exit, fail_after_exits, lines_of, quote_stderr
from pliant.control.jobs.transitions import (
    complete,
    fail,
    kill,
    kill_later,
    release_leavers,
    task_event,
    vacate,
)
from pliant.control.kinds.elastic.coordination import coordinate
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.control.kinds.elastic.losses import can_do_without, count_loss, loss_of
from pliant.control.settings import ControlSettings
from pliant.core.event import EventKind
from pliant.core.job import Task
from pliant.core.lifecycle import TaskEvent, TaskState
from pliant.core.link import Failed
from pliant.core.ports import ExitFacts, TaskExit
from pliant.policy.elastic.diagnose import ProcessFailure
from pliant.policy.elastic.membership import Gone
from pliant.policy.elastic.stall import StepWatch

NUM_TRACEBACK_LINES = 30
RECOVERY_S = 1.0
"""The longest that a lost task's place stays empty so that the survivors can do a step first."""


def take_exit(draft: Draft, live: ElasticJob, task: Task, ended: TaskExit) -> None:
    """Decide what the end of one process means; its exit code is noted already."""
    if task.id in live.fenced:
        _free_fenced(draft, live, task, ended.facts)
    elif ended.error:
        _could_not_start(draft, live, task, ended)
    elif live.over or task.state is TaskState.LEAVING or task.id in live.finished:
        _leave(draft, live, task)
    elif ended.exit_code is None or ended.exit_code < 0 or task.id in live.raised:
        _lose(draft, live, task, ended)
    else:
        _end_by_itself(draft, live, task, ended.exit_code, ended.facts)


def _could_not_start(draft: Draft, live: ElasticJob, task: Task, ended: TaskExit) -> None:
    """Let a job fail of which a task cannot be started, unless others train on, or another machine can be tried."""
    error = ended.error
    if task.started_at < live.adopted_at and live.competes:
        _lose_while_away(draft, live, task, f"was not started: {error}")
        return
    if live.competes and (_is_survived(live, task, live.step) or can_do_without(draft, live, task.node_id)):
        _lose(draft, live, task, ended)
        return
    live = task_event(draft, live, task.id, TaskEvent.LOSE, error)
    if not live.competes:
        _draw_consequences(draft, live, task, error)
        return
    fail(draft, live, f"{task.id} could not be started: {error}")


def _leave(draft: Draft, live: ElasticJob, task: Task) -> None:
    live = task_event(draft, live, task.id, TaskEvent.EXIT)
    killed = live.killed.get(task.id)
    draft.say(
        EventKind.TASK_LEFT,
        f"{task.id} {killed} and has left {_slots(task)}" if killed else f"{task.id} has left {_slots(task)}",
        job_id=live.id,
        task_id=task.id,
    )
    _draw_consequences(draft, live, task, "it left")


def take_failure(draft: Draft, live: ElasticJob, task: Task, failed: Failed) -> None:
    """Take in that a worker's program raised. If others train on, the end of its process is a loss like others."""
    step = live.step if failed.step is None else failed.step
    if not _is_survived(live, task, step):
        fail(draft, live, failure(draft.settings, live, task, failed))
        return
    live = _blame(draft, live, task, step)
    live = draft.put(replace(live, raised={**live.raised, task.id: failed.error}))
    kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.messages_s)


def _is_survived(live: ElasticJob, task: Task, step: int) -> bool:
    """Tell whether the others go on without a worker that ended by its own fault at this step.

    Once at a step: what happens there again is the script's doing, or its data's. A newcomer's fault is its own.
    """
    gone = {task.id, *live.fenced, *live.raised}
    others = [t for t in live.running if t.id in live.joined and t.id not in gone]
    return bool(others) and (task.id not in live.joined or live.raised_at != step)


def _blame(draft: Draft, live: ElasticJob, task: Task, step: int) -> ElasticJob:
    if task.id not in live.joined:
        return live
    return draft.put(replace(live, raised_at=step))


def _lose(draft: Draft, live: ElasticJob, task: Task, ended: TaskExit) -> None:
    exit_code = ended.exit_code
    killed = live.killed.get(task.id)
    raised = live.raised.get(task.id)
    how = f"raised {raised}" if raised else killed or describe_exit(exit_code)
    how = f"could not be started: {ended.error}" if ended.error else how
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    _say_lost(draft, live, task, how, exit_code)
    number = -exit_code if exit_code is not None and exit_code < 0 and killed is None else None
    large = ended.facts.out_of_memory
    death = ProcessFailure(task_id=task.id, node_id=task.node_id, how=how, signal=number, too_large=large)
    live = _recovering(draft, live, task)
    live = count_loss(draft, live, task, loss_of(draft, live, task, death), ended.facts)
    _draw_consequences(draft, live, task, how)


def _recovering(draft: Draft, live: ElasticJob, task: Task) -> ElasticJob:
    """Let those who train on do a step before anybody starts in the place of a task that was lost."""
    if task.id not in live.joined or live.membership.current is None:
        return live
    return draft.put(replace(live, recovers_until=draft.now + RECOVERY_S))


def fence(draft: Draft, live: ElasticJob, task: Task, how: str, *, blame: bool) -> ElasticJob:
    """Take a task out of its job at once and kill its process: it gives no sign of life, so it may wake at any time.

    Its slots stay taken until the process is gone; then its step is known, and the loss is counted.

    Args:
        draft: of the decision.
        live: the job.
        task: has not ended.
        how: what is wrong with it, in words that follow its name.
        blame: count it as a loss of the job's.
    """
    if task.id in live.fenced:
        return live
    how = f"{how} and was killed by Pliant"
    live = kill(draft, live, task.id, how)
    if live.over or task.id in live.finished:
        return live
    death = ProcessFailure(task_id=task.id, node_id=task.node_id, how=how, hung=True)
    loss = loss_of(draft, live, task, death) if blame and task.state is not TaskState.LEAVING else None
    live = draft.put(replace(live, fenced={**live.fenced, task.id: loss}))
    live = task_event(draft, live, task.id, TaskEvent.LEAVE, how)
    _say_lost(draft, live, task, how, None)
    live = _recovering(draft, live, task)
    return _draw_consequences(draft, live, task, how)


def _say_lost(draft: Draft, live: ElasticJob, task: Task, how: str, exit_code: int | None) -> None:
    draft.say(
        EventKind.TASK_LOST,
        f"{task.id} of {live.label} {how}; its share goes on elsewhere and its slot is granted again",
        job_id=live.id,
        task_id=task.id,
        data={"exit_code": exit_code},
    )


def _free_fenced(draft: Draft, live: ElasticJob, task: Task, facts: ExitFacts) -> None:
    """Free the slots of a task that was lost before, and count its loss."""
    how, loss = live.killed[task.id], live.fenced[task.id]
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    if loss is not None and not live.over:
        live = count_loss(draft, live, task, loss, facts)
    if not live.running and not live.over:
        _draw_consequences(draft, live, replace(task, state=TaskState.LOST), how)


def _end_by_itself(draft: Draft, live: ElasticJob, task: Task, exit_code: int, facts: ExitFacts) -> None:
    script = live.job.spec.script
    others = [t for t in live.running if t.id != task.id and t.id in live.membership.active]
    if exit_code == 0 and live.trained and others:
        # The others know better whether training is over: each of them ends, or goes on without it.
        live = task_event(draft, live, task.id, TaskEvent.EXIT, "it ended by itself")
        _draw_consequences(draft, live, task, "it ended by itself")
        return
    if exit_code == 0 and live.trained and facts.saved_model:
        live = task_event(draft, live, task.id, TaskEvent.EXIT)
        complete(draft, live, f"{live.describe_end()}; it ended while the server was away")
        return
    if exit_code == 0 and _is_plain(live, facts):
        _complete_plain(draft, live, task)
        return
    step = live.step if facts.step is None else facts.step
    if exit_code and _is_survived(live, task, step):
        ended = TaskExit(task_id=task.id, exit_code=exit_code, facts=facts)
        _lose(draft, _blame(draft, live, task, step), task, ended)
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
            f"{script} ended (exit code 0) in {task.id} without training, though it was ready to train or another task "
            f"is; let every task iterate its pliant.train.Run or train its FabricModel"
        )
    fail(draft, live, reason + quote_stderr(draft.settings, task, facts))


def _is_plain(live: ElasticJob, facts: ExitFacts) -> bool:
    """Tell whether nothing shows that the script of a job wants to train elastically: no task of it ever could."""
    ready = any(task.state in (TaskState.WARM, TaskState.TRAINING) for task in live.running)
    return not (ready or live.trained or live.job.progress is not None or facts.step is not None)


def _complete_plain(draft: Draft, live: ElasticJob, task: Task) -> None:
    """End a job well whose script ended well without ever training elastically; its other tasks run the same again."""
    live = task_event(draft, live, task.id, TaskEvent.EXIT, "it ended by itself")
    num_others = len(live.running)
    others = f"; {num_others} more of its tasks, which ran the same, were ended" if num_others else ""
    reason = (
        f"{live.job.spec.script} ended (exit code 0) and never trained elastically: {task.id} ran it whole{others}; "
        f"submit a plain script with `--fixed 1`, or train with a pliant.train.Run or a FabricModel"
    )
    draft.say(EventKind.WARNING, f"{live.label}: {reason}", job_id=live.id, task_id=task.id)
    complete(draft, live, reason)


def _draw_consequences(draft: Draft, live: ElasticJob, task: Task, reason: str) -> ElasticJob:
    """Draw the consequences for the job of a process that is gone."""
    if live.over:
        return live
    if live.running:
        leader_gone = not live.membership.active or task.id == live.membership.active[0]
        if live.finished and leader_gone:
            return complete(draft, live, live.describe_end())
        live = _watch_anew(draft, live)
        return release_leavers(draft, coordinate(draft, live, Gone(task_id=task.id, reason=reason)))
    if live.finished:
        return complete(draft, live, live.describe_end())
    live = coordinate(draft, live, Gone(task_id=task.id, reason=reason))
    return vacate(draft, live, _reason_to_pause(live, task, reason))


def _watch_anew(draft: Draft, live: ElasticJob) -> ElasticJob:
    """If nobody trains any more, expect of those that start what is expected before a first step."""
    if live.watch.sign_at is None or any(task.state is TaskState.TRAINING for task in live.running):
        return live
    return draft.put(replace(live, watch=StepWatch(), stall=None))


def _reason_to_pause(live: ElasticJob, task: Task, reason: str) -> str:
    where = "from its newest checkpoint" if live.trained else "from the beginning"
    if task.state is TaskState.LEAVING and live.trained:
        until = "when it is released" if live.on_hold else "when slots free up"
        return f"its state is saved; it goes on {until} ({task.reason})"
    if task.state is TaskState.LEAVING:
        return task.reason
    return f"its last task was lost ({reason}); it goes on {where} when slots free up"


def failure(settings: ControlSettings, live: ElasticJob, task: Task, failed: Failed) -> str:
    """Return why a job has failed whose program raised: the error first, then the end of its traceback."""
    lines = lines_of(failed.traceback.rstrip())[-NUM_TRACEBACK_LINES:]
    tail = "\n" + "\n".join(lines) if lines else ""
    where = settings.folders(live.id).log(task.id, task.node_id) / "stderr"
    return f"{live.job.spec.script} raised {failed.error} (in {task.id}, see {where}){tail}"


def fail_unstarted(draft: Draft, live: ElasticJob, task: Task) -> None:
    """Let a job fail whose script did not begin to train in time."""
    limit = live.job.spec.start_timeout_s
    reason = (
        f"{live.job.spec.script} never started to train: {task.id} ran {limit:g} s, its start timeout, without "
        f"building a pliant.train.Run or FabricModel; mend the script, submit a plain one with `--fixed 1`, or "
        f"raise the start timeout"
    )
    fail_after_exits(draft, live, task, reason, facts=None)


def _slots(task: Task) -> str:
    numbers = ", ".join(str(slot) for slot in task.slots)
    return f"slot{'s' * (len(task.slots) != 1)} {numbers} of {task.node_id}"


def lose_vanished(draft: Draft, live: ElasticJob, task: Task, how: str) -> None:
    """Take in that a process is gone that ended while no server was there to see it, and that left no trace."""
    if live.over or task.state is TaskState.LEAVING or task.id in live.finished:
        _leave(draft, live, task)
    else:
        _lose_while_away(draft, live, task, how)


def _lose_while_away(draft: Draft, live: ElasticJob, task: Task, how: str) -> None:
    """Lose a task without blaming its job."""
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    draft.say(EventKind.TASK_LOST, f"{task.id} of {live.label} {how}", job_id=live.id, task_id=task.id)
    _draw_consequences(draft, live, task, how)
