"""The only places where a job, a task or a generation changes state, each by the table of `core.lifecycle`.

All functions note what they do in a draft. None performs anything.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from pliant.control.jobs.draft import Draft, DrainTask, KillTask, SendMessage
from pliant.control.jobs.live import LiveJob
from pliant.core.event import EventKind
from pliant.core.job import Generation, JobId, Task, TaskId
from pliant.core.lifecycle import (
    GENERATION_LIFECYCLE,
    JOB_LIFECYCLE,
    TASK_LIFECYCLE,
    GenerationEvent,
    GenerationState,
    JobEvent,
    JobState,
    TaskEvent,
    TaskState,
    advance,
    is_final,
)
from pliant.core.link import Dismiss
from pliant.policy.elastic.coordinator import handle
from pliant.policy.elastic.membership import Abandoned, Activated, Announced, Effect, MembershipEvent, Send, Wanted

KILL_AGAIN_S = 5.0
"""A process that is still there so long after a SIGKILL is sent another."""
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


def job_event(draft: Draft, live: LiveJob, event: JobEvent, reason: str) -> LiveJob:
    """Move a job along its lifecycle and tell people if its state is another now."""
    old, new = live.job.state, advance(JOB_LIFECYCLE, live.job.state, event)
    if old is new:
        return live
    final = is_final(JOB_LIFECYCLE, new)
    job = replace(live.job, state=new, reason=reason, ended_at=draft.now if final else None)
    if final:
        job = replace(job, why="")
    headline = reason.splitlines()[0] if reason else ""
    draft.say(
        EventKind.JOB_STATE,
        f"{live.label} {WORDS[new]}" + (f": {headline}" if headline else ""),
        job_id=live.id,
        data={"from": str(old), "to": str(new), **({"digest": job.digest} if final and job.digest else {})},
    )
    return draft.put(replace(live, job=job))


def task_event(draft: Draft, live: LiveJob, task_id: TaskId, event: TaskEvent, reason: str = "") -> LiveJob:
    """Move a task along its lifecycle."""
    task = live.tasks[task_id]
    state = advance(TASK_LIFECYCLE, task.state, event)
    task = replace(task, state=state, reason=reason or task.reason)
    if is_final(TASK_LIFECYCLE, state):
        task = replace(task, ended_at=draft.now)
    return put_task(draft, live, task)


def put_task(draft: Draft, live: LiveJob, task: Task) -> LiveJob:
    """Note the new value of a task."""
    return draft.put(replace(live, tasks={**live.tasks, task.id: task}))


def kill_later(draft: Draft, live: LiveJob, task_id: TaskId, at: float) -> LiveJob:
    """Set the instant at which a process is killed if it is still there, or keep the earlier one."""
    at = min(at, live.kill_at.get(task_id, at))
    return draft.put(replace(live, kill_at={**live.kill_at, task_id: at}))


def kill(draft: Draft, live: LiveJob, task_id: TaskId, how: str) -> LiveJob:
    """Kill a process, and remember why: `how` follows the task's name when its end is told. It may be killed twice."""
    draft.act(KillTask(task_id=task_id))
    killed = {**live.killed, task_id: live.killed.get(task_id, how)}
    kill_at = {**live.kill_at, task_id: draft.now + KILL_AGAIN_S}
    return draft.put(replace(live, killed=killed, kill_at=kill_at))


def leave(draft: Draft, live: LiveJob, task_ids: tuple[TaskId, ...], cause: str) -> LiveJob:
    """Tell tasks to leave at their next step boundary; those that never trained go at once."""
    for task_id in task_ids:
        live = task_event(draft, live, task_id, TaskEvent.LEAVE, cause)
    return want(draft, live, cause)


def want(draft: Draft, live: LiveJob, cause: str) -> LiveJob:
    """Tell the coordinator whom the scheduler wants; a fixed job has none."""
    if live.job.spec.fixed:
        return release_leavers(draft, live)
    live = feed(draft, live, Wanted(tasks=frozenset(task.id for task in live.staying), cause=cause))
    return release_leavers(draft, live)


def release_leavers(draft: Draft, live: LiveJob) -> LiveJob:
    """Let go of leaving tasks that neither train nor hold a state nor are about to: nobody waits for them."""
    forming = live.membership.forming
    for task in live.running:
        standing = live.membership.tasks.get(task.id)
        needed = (standing is not None and standing.holds_state) or (forming is not None and task.id in forming.members)
        if task.state is not TaskState.LEAVING or needed or task.id in live.kill_at:
            continue
        draft.act(SendMessage(task_id=task.id, message=Dismiss(reason=task.reason or "it is not needed any more")))
        draft.act(DrainTask(task_id=task.id))
        live = kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.leave_s)
    return live


def feed(draft: Draft, live: LiveJob, event: MembershipEvent) -> LiveJob:
    """Feed the coordinator of a job and carry its effects into the draft."""
    membership, effects = handle(live.membership, event, draft.now)
    live = draft.put(replace(live, membership=membership))
    for effect in effects:
        live = _effect(draft, live, effect)
    return live


def _effect(draft: Draft, live: LiveJob, effect: Effect) -> LiveJob:
    match effect:
        case Send():
            draft.act(SendMessage(task_id=effect.task_id, message=effect.message))
            return live
        case Announced():
            return _announced(draft, live, effect)
        case Activated():
            return _activated(draft, live, effect)
        case Abandoned():
            return _abandoned(draft, live, effect)
        case _:
            assert_never(effect)


def _announced(draft: Draft, live: LiveJob, effect: Announced) -> LiveJob:
    live = _end_generations(draft, live, GenerationState.FORMING, GenerationEvent.ABANDON)
    generation = Generation(
        job_id=live.id,
        number=effect.generation,
        members=effect.members,
        state=GenerationState.FORMING,
        announced_at=draft.now,
        cause=effect.cause,
    )
    size = len(effect.members)
    what = (
        f"{size} task{'s connect' if size != 1 else ' connects'}" if size else "all tasks leave and the state is saved"
    )
    draft.say(
        EventKind.GENERATION_FORMING,
        f"{live.label}: generation {effect.generation} forms, {what}" + (f" ({effect.cause})" if effect.cause else ""),
        job_id=live.id,
        data={"generation": effect.generation, "size": size},
    )
    job = replace(live.job, generation=effect.generation)
    return draft.put(
        replace(live, job=job, generations={**live.generations, generation.number: generation}),
    )


def _activated(draft: Draft, live: LiveJob, effect: Activated) -> LiveJob:
    live = _end_generations(draft, live, GenerationState.ACTIVE, GenerationEvent.RETIRE)
    forming = live.generations[effect.generation]
    generation = replace(
        forming,
        state=advance(GENERATION_LIFECYCLE, forming.state, GenerationEvent.SWITCH),
        switched_at=draft.now,
        step=effect.step,
        pause_s=effect.pause_s,
        redone_steps=effect.redone_steps,
    )
    job = replace(live.job, num_redone_steps=live.job.num_redone_steps + effect.redone_steps)
    live = draft.put(
        replace(
            live,
            job=job,
            trained=True,
            step=max(live.step, effect.step),
            generations={**live.generations, generation.number: generation},
        )
    )
    _say_switched(draft, live, effect)
    live = _join(draft, live, effect.members)
    if live.competes or live.job.state is JobState.STOPPING:
        live = job_event(draft, live, JobEvent.TRAIN, "")
    return live


def _say_switched(draft: Draft, live: LiveJob, effect: Activated) -> None:
    size, pause_ms = len(effect.members), round(effect.pause_s * 1000, 1)
    redone = f", {effect.redone_steps} step computed again" if effect.redone_steps else ""
    change = f" (was {effect.from_size}); it stood still for {pause_ms:g} ms{redone}" if effect.from_size else ""
    draft.say(
        EventKind.GENERATION_SWITCHED,
        f"{live.label} trains on {size} task{'s' * (size != 1)} from step {effect.step} on{change}",
        job_id=live.id,
        data={
            "generation": effect.generation,
            "size": size,
            "from_size": effect.from_size,
            "step": effect.step,
            "pause_ms": pause_ms,
            "redone_steps": effect.redone_steps,
        },
    )


def _join(draft: Draft, live: LiveJob, members: tuple[TaskId, ...]) -> LiveJob:
    """Members train; live tasks that were left out have nothing left to do."""
    for task in live.running:
        if task.id in members:
            if task.state is TaskState.STARTING:
                live = task_event(draft, live, task.id, TaskEvent.READY)
            live = task_event(draft, live, task.id, TaskEvent.JOIN)
            live = draft.put(replace(live, joined={task.id: live.step, **live.joined}))
        elif task.state is TaskState.LEAVING:
            live = kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.leave_s)
    return live


def _abandoned(draft: Draft, live: LiveJob, effect: Abandoned) -> LiveJob:
    generation = live.generations.get(effect.generation)
    if generation is None or is_final(GENERATION_LIFECYCLE, generation.state):
        return live
    if generation.members:
        draft.say(
            EventKind.GENERATION_ABANDONED,
            f"{live.label}: generation {effect.generation} is given up: {effect.reason}",
            job_id=live.id,
            data={"generation": effect.generation},
        )
    return _put_generation(draft, live, generation, GenerationEvent.ABANDON)


def _put_generation(draft: Draft, live: LiveJob, generation: Generation, event: GenerationEvent) -> LiveJob:
    ended = replace(generation, state=advance(GENERATION_LIFECYCLE, generation.state, event))
    return draft.put(replace(live, generations={**live.generations, ended.number: ended}))


def _end_generations(draft: Draft, live: LiveJob, state: GenerationState, event: GenerationEvent) -> LiveJob:
    for generation in live.generations.values():
        if generation.state is state:
            live = _put_generation(draft, live, generation, event)
    return live


def end_generations(draft: Draft, live: LiveJob) -> LiveJob:
    """Close what is open of a job's generations; it has ended or holds no slots any more."""
    live = _end_generations(draft, live, GenerationState.ACTIVE, GenerationEvent.RETIRE)
    return _end_generations(draft, live, GenerationState.FORMING, GenerationEvent.ABANDON)


def complete(draft: Draft, live: LiveJob, reason: str) -> LiveJob:
    """End a job well: who trained exits by itself, who never joined is dismissed; all get a deadline."""
    active = live.membership.active
    live = job_event(draft, live, JobEvent.COMPLETE, reason)
    for task in live.running:
        if task.id not in active:
            draft.act(SendMessage(task_id=task.id, message=Dismiss(reason="the training has completed")))
            draft.act(DrainTask(task_id=task.id))
        live = kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.leave_s)
    return end_generations(draft, live)


def fail(draft: Draft, live: LiveJob, reason: str) -> LiveJob:
    """End a job that cannot go on; all its processes are killed."""
    live = job_event(draft, live, JobEvent.FAIL, reason)
    for task in live.running:
        live = kill(draft, live, task.id, "was killed by Pliant because its job has failed")
    return end_generations(draft, live)


def stop(draft: Draft, live: LiveJob, reason: str) -> LiveJob:
    """End a job because a person asked: at the next step boundary, at once if it holds no slots."""
    live = job_event(draft, live, JobEvent.STOP, reason)
    if not live.running:
        return live
    live = leave(draft, live, tuple(task.id for task in live.staying), reason)
    for task in live.running:
        live = kill_later(draft, live, task.id, draft.now + draft.settings.timeouts.stop_s)
    return live


def vacated(draft: Draft, live: LiveJob, reason: str) -> LiveJob:
    """The last process of a job is gone."""
    live = end_generations(draft, live)
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
