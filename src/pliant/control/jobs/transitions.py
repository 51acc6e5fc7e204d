"""The only places where a job, a task or a generation changes state, each by the table of `core.lifecycle`.

All functions note what they do in a draft. None performs anything. They are the same for every kind of workload.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pliant.control.jobs.draft import Draft, DrainTask, KillTask, L, SendMessage
from pliant.control.jobs.kind import Kind
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId, Task, TaskId
from pliant.core.lifecycle import (
    JOB_LIFECYCLE,
    TASK_LIFECYCLE,
    JobEvent,
    JobState,
    TaskEvent,
    TaskState,
    advance,
    is_final,
)
from pliant.core.link import Dismiss

KILL_AGAIN_S = 5.0
"""A process that is still there so long after a SIGKILL is sent another."""
KILLED_WITH_JOB = "was killed by Pliant because its job has failed"
_NO_ROOM = ("No space left on device", "Disk quota exceeded")
"""What the system says for want of room on a disk."""
WORDS: Mapping[JobState, str] = {
    JobState.PENDING: "waits for slots",
    JobState.STARTING: "starts",
    JobState.RUNNING: "trains",
    JobState.PAUSED: "is paused",
    JobState.STOPPING: "is stopping",
    JobState.COMPLETED: "has completed",
    JobState.FAILED: "has failed",
    JobState.STOPPED: "was stopped",
}


SERVING_WORDS: Mapping[JobState, str] = {
    JobState.STARTING: "loads its model",
    JobState.RUNNING: "serves",
    JobState.PAUSED: "holds no kernel",
}
"""The same for a version of an endpoint, where they differ."""


def job_event(draft: Draft, live: L, event: JobEvent, reason: str) -> L:
    """Move a job along its lifecycle, and note an event if its state is another now."""
    old, new = live.job.state, advance(JOB_LIFECYCLE, live.job.state, event)
    if old is new:
        return live
    final = is_final(JOB_LIFECYCLE, new)
    job = replace(live.job, state=new, reason=reason, ended_at=draft.now if final else None)
    if final:
        job = replace(job, why="", hold="")
    headline = reason.splitlines()[0] if reason else ""
    words = (WORDS if live.job.spec.endpoint is None else {**WORDS, **SERVING_WORDS})[new]
    draft.say(
        EventKind.JOB_STATE,
        f"{live.label} {words}" + (f": {headline}" if headline else ""),
        job_id=live.id,
        data={
            "from": str(old),
            "to": str(new),
            **({"num_slots": live.num_slots} if final else {}),
            **({"digest": job.digest} if final and job.digest else {}),
        },
    )
    return draft.put(replace(live, job=job))


def task_event(draft: Draft, live: L, task_id: TaskId, event: TaskEvent, reason: str = "") -> L:
    """Move a task along its lifecycle."""
    return put_task(draft, live, advanced(draft, live.tasks[task_id], event, reason))


def advanced(draft: Draft, task: Task, event: TaskEvent, reason: str = "") -> Task:
    """Return a task moved along its lifecycle."""
    state = advance(TASK_LIFECYCLE, task.state, event)
    ended_at = draft.now if is_final(TASK_LIFECYCLE, state) else task.ended_at
    return replace(task, state=state, reason=reason or task.reason, ended_at=ended_at)


def put_task(draft: Draft, live: L, task: Task) -> L:
    """Note the new value of a task."""
    return put_tasks(draft, live, (task,))


def put_tasks(draft: Draft, live: L, tasks: Iterable[Task]) -> L:
    """Note the new values of tasks, all at once: one by one each would cost as much as all of the job's."""
    return draft.put(replace(live, tasks={**live.tasks, **{task.id: task for task in tasks}}))


def kill_later(draft: Draft, live: L, task_id: TaskId, at: float) -> L:
    """Set the instant at which a process is killed if it is still there, or keep the earlier one."""
    return kill_all_later(draft, live, (task_id,), at)


def kill_all_later(draft: Draft, live: L, task_ids: Iterable[TaskId], at: float) -> L:
    """Set the instant at which processes are killed if they are still there; each keeps an earlier one."""
    kill_at = {task_id: min(at, live.kill_at.get(task_id, at)) for task_id in task_ids}
    return draft.put(replace(live, kill_at={**live.kill_at, **kill_at})) if kill_at else live


def kill(draft: Draft, live: L, task_id: TaskId, how: str) -> L:
    """Kill a process, perhaps once more; the reason of the first time, in words that follow its name, is kept."""
    return kill_all(draft, live, (task_id,), how)


def kill_all(draft: Draft, live: L, task_ids: Sequence[TaskId], how: str) -> L:
    """Kill processes, each perhaps once more; see `kill`."""
    for task_id in task_ids:
        draft.act(KillTask(task_id=task_id))
    killed = {**dict.fromkeys(task_ids, how), **live.killed}
    kill_at = {**live.kill_at, **dict.fromkeys(task_ids, draft.now + KILL_AGAIN_S)}
    return draft.put(replace(live, killed=killed, kill_at=kill_at)) if task_ids else live


def leave(draft: Draft, kind: Kind[L], live: L, task_ids: tuple[TaskId, ...], cause: str) -> L:
    """Ask tasks to leave, each at its next step boundary; those that have nothing to hand over go at once."""
    leaving = [advanced(draft, live.tasks[task_id], TaskEvent.LEAVE, cause) for task_id in task_ids]
    live = put_tasks(draft, live, leaving)
    return release_leavers(draft, kind.regroup(draft, live, cause))


def release_leavers(draft: Draft, live: L) -> L:
    """Let go of leaving tasks that neither train nor hold a state nor are about to: nobody waits for them."""
    released = []
    for task in live.running:
        if task.state is not TaskState.LEAVING or live.is_needed(task.id) or task.id in live.kill_at:
            continue
        draft.act(SendMessage(task_id=task.id, message=Dismiss(reason=task.reason or "it is not needed any more")))
        draft.act(DrainTask(task_id=task.id))
        released.append(task.id)
    return kill_all_later(draft, live, released, draft.now + draft.settings.timeouts.leave_s)


def kill_late(draft: Draft, live: L, task_id: TaskId) -> L:
    """Kill a process that was to be gone by now."""
    return kill(draft, live, task_id, "did not end in time, was killed by Pliant")


def complete(draft: Draft, live: L, reason: str) -> L:
    """End a job well: who trained exits by itself, who never joined is dismissed; all get a deadline."""
    live = job_event(draft, live, JobEvent.COMPLETE, reason)
    for task in live.running:
        if not live.ends_by_itself(task.id):
            draft.act(SendMessage(task_id=task.id, message=Dismiss(reason="the training has completed")))
            draft.act(DrainTask(task_id=task.id))
    running = [task.id for task in live.running]
    live = kill_all_later(draft, live, running, draft.now + draft.settings.timeouts.leave_s)
    return draft.put(live.close())


def fail(draft: Draft, live: L, reason: str) -> L:
    """End a job that cannot go on; all its processes are killed."""
    live = job_event(draft, live, JobEvent.FAIL, _with_way_on(live.job, reason))
    live = kill_all(draft, live, [task.id for task in live.running], KILLED_WITH_JOB)
    return draft.put(live.close())


def way_on(job: Job) -> str:
    """Return how a training that failed for want of room goes on, in words that follow the reason."""
    if job.spec.fixed:
        return ""
    return f"; when there is room, `pliant submit --resume-from {job.id}` goes on from its newest checkpoint"


def _with_way_on(job: Job, reason: str) -> str:
    first, line_end, more = reason.partition("\n")
    return f"{first}{way_on(job)}{line_end}{more}" if any(words in reason for words in _NO_ROOM) else reason


def stop(draft: Draft, kind: Kind[L], live: L, reason: str) -> L:
    """End a job because a person asked: at the next step boundary, at once if it holds no slots."""
    live = job_event(draft, live, JobEvent.STOP, reason)
    if not live.running:
        return live
    live = leave(draft, kind, live, tuple(task.id for task in live.staying), reason)
    running = [task.id for task in live.running]
    return kill_all_later(draft, live, running, draft.now + draft.settings.timeouts.stop_s)


def vacate(draft: Draft, live: L, reason: str) -> L:
    """Take note that the last process of a job is gone."""
    live = draft.put(live.close())
    if live.job.state is JobState.STOPPING:
        return job_event(draft, live, JobEvent.VANISH, live.job.reason)
    if live.job.state in (JobState.STARTING, JobState.RUNNING):
        return job_event(draft, live, JobEvent.VACATE, reason)
    return live


def dismiss_unknown(draft: Draft, job_id: JobId, task_id: TaskId) -> None:
    """Send away a process that this server does not know, or whose job or life is over."""
    draft.act(
        SendMessage(task_id=task_id, message=Dismiss(reason=f"{task_id} is no live task of {job_id} on this server"))
    )
