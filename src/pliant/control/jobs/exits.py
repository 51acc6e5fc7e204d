"""What comes from tasks: messages, exits, silence. Each finds its job here; what it means, the job's kind decides."""

from dataclasses import replace

from pliant.api.unsent import unpack
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.failure import conclude, describe_exit, note_facts
from pliant.control.jobs.inbox import Received
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.live import LiveJob, job_of
from pliant.control.jobs.transitions import dismiss_unknown, fail, put_task, task_event, way_on
from pliant.core.errors import InvalidInput
from pliant.core.event import EventKind
from pliant.core.job import JobId, Task, TaskId
from pliant.core.lifecycle import JobState, TaskEvent, TaskState
from pliant.core.link import (
    EpochFinished,
    Finished,
    FromTask,
    Hello,
    Histograms,
    Note,
    Params,
    Report,
    Saved,
    SaveFailed,
)
from pliant.core.ports import TaskExit, TaskNote
from pliant.files.untrusted.names import shown

_Telling = Report | EpochFinished | SaveFailed | Note | Histograms | Params | Finished
"""Nothing is decided by these once a job has completed."""


def take_exit(draft: Draft, kinds: Kinds, job_id: JobId, ended: TaskExit) -> None:
    """Take in the end of one process. Ignore that of a process that is unknown or has already ended."""
    if (found := _running(draft, job_id, ended.task_id)) is None:
        return
    live, task = found
    live = put_task(draft, live, replace(task, exit_code=ended.exit_code))
    if ended.cause:
        live = draft.put(replace(live, killed={**live.killed, task.id: ended.cause}))
    live = note_facts(draft, live, task, ended.facts)
    if ended.is_unfit and live.competes and task.state is not TaskState.LEAVING and fits_elsewhere(draft, live, task):
        _turn_away(draft, kinds, live, task, ended.error)
    elif ended.facts.over_disk and ended.exit_code != 0 and live.competes:
        _fail_over_disk(draft, live, task, ended)
    else:
        kinds.of(live.job).take_exit(draft, live, live.tasks[task.id], ended)
    _conclude_if_gone(draft, job_id)


def fits_elsewhere(draft: Draft, live: LiveJob, task: Task) -> bool:
    """Tell whether the minimum of a job fits on the machines that it may use, but for that of a task."""
    nodes = [node for node in draft.nodes() if node.id not in live.excluded and node.id != task.node_id]
    return sum(len(node.slots) // live.job.spec.slots_per_task for node in nodes) >= max(1, live.job.min_tasks)


def _turn_away(draft: Draft, kinds: Kinds, live: LiveJob, task: Task, error: str) -> None:
    """Start a task elsewhere that its machine cannot start, and nothing of its job there any more."""
    text = f"{live.label}: {task.node_id} is avoided from now on, for this job only: {error}"
    draft.say(EventKind.WARNING, text, job_id=live.id, task_id=task.id, data={"node_id": task.node_id})
    live = draft.put(replace(live, excluded=live.excluded | {task.node_id}))
    kinds.of(live.job).lose_vanished(draft, live, task, f"could not be started on {task.node_id}")


def _fail_over_disk(draft: Draft, live: LiveJob, task: Task, ended: TaskExit) -> None:
    """Let a job fail that holds too much of a disk, of whatever kind it is: started again it would be ended again."""
    how = ended.cause or describe_exit(ended.exit_code)
    live = task_event(draft, live, task.id, TaskEvent.LOSE, how)
    draft.say(EventKind.TASK_LOST, f"{task.id} of {live.label} {how}", job_id=live.id, task_id=task.id)
    fail(draft, live, f"{task.id} {how}; its files are as they were, see `pliant result {live.id}`{way_on(live.job)}")


def lose_vanished(draft: Draft, kinds: Kinds, job_id: JobId, task_id: TaskId) -> None:
    """Take in that a process is gone that ended while no server was there to see it, and that left no trace."""
    if (found := _running(draft, job_id, task_id)) is not None:
        live, task = found
        kinds.of(live.job).lose_vanished(draft, live, task, "vanished while the server was away")
        _conclude_if_gone(draft, job_id)


def fence(draft: Draft, kinds: Kinds, job_id: JobId, task_id: TaskId, how: str) -> None:
    """Take in that a task gives no sign of life; `how` says so, in words that follow its name."""
    if (found := _running(draft, job_id, task_id)) is not None:
        live, task = found
        kinds.of(live.job).fence(draft, live, task, how)


def take_note(draft: Draft, note: TaskNote) -> None:
    """Take in what the owner of a task is to know of it."""
    if (found := _running(draft, job_of(note.task_id), note.task_id)) is not None:
        live, task = found
        message = f"{task.id} of {live.label} {note.words}"
        draft.say(EventKind.WARNING, message, job_id=live.id, task_id=task.id)


def receive(draft: Draft, kinds: Kinds, item: Received) -> None:
    """Take in one message. Dismiss a task that says hello and is no live task of a live job; ignore all else of it.

    But for what it tells of a job that has completed by what others said, whose messages came sooner: where all of them
    ended while no server was there, the first that is heard of need not be the one that led.
    """
    job_id = job_of(item.task_id)
    found = _running(draft, job_id, item.task_id)
    if found is None or (found[0].over and not _still_tells(found[0], item.message)):
        if isinstance(item.message, Hello):
            dismiss_unknown(draft, job_id, item.task_id)
        return
    live, task = found
    if item.number:
        live = draft.put(replace(live, received={**live.received, task.id: item.number}))
    kinds.of(live.job).receive(draft, live, task, item.message, item.number)


def _still_tells(live: LiveJob, message: FromTask) -> bool:
    """Tell whether a message to a job that is over says what people read: what is saved, or of one that completed."""
    return isinstance(message, Saved) or (live.job.state is JobState.COMPLETED and isinstance(message, _Telling))


def take_unsent(draft: Draft, kinds: Kinds, job_id: JobId, ended: TaskExit) -> None:
    """Take in the messages that a task has left, as if they had come over its link, before its exit is judged.

    In one transaction with that: so they are taken in once, whenever a server dies, and never of a task that had ended.
    Those that this server has had over the link come no second time; one before it may have had some of them, as it is
    with a link that was lost. What is no file of this task's messages is ignored with a note.
    """
    facts = ended.facts
    found = _running(draft, job_id, ended.task_id) if facts.unsent or facts.unread else None
    if found is None or not kinds.of(found[0].job).speaks:
        return
    live, task = found
    try:
        messages = unpack(facts.unsent, task.id) if facts.unsent else ()
        why = facts.unread
    except InvalidInput as error:
        messages, why = (), str(error)
    for number, message in messages:
        if number > live.received.get(task.id, 0):
            receive(draft, kinds, Received(task_id=task.id, message=message, number=number))
    if why:
        text = f"what {task.id} of {live.label} left in its LOG_DIR for the server is not taken: {shown(why)}"
        draft.say(EventKind.WARNING, text, job_id=live.id, task_id=task.id)


def _running(draft: Draft, job_id: JobId, task_id: TaskId) -> tuple[LiveJob, Task] | None:
    live = draft.job(job_id)
    task = live.tasks.get(task_id) if live is not None else None
    return None if live is None or task is None or task.ended else (live, task)


def _conclude_if_gone(draft: Draft, job_id: JobId) -> None:
    live = draft.job(job_id)
    if live is not None and live.failing is not None and not live.running:
        conclude(draft, live)
