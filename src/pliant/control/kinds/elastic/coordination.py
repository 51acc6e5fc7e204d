"""Between an elastic training and its coordinator (`policy.elastic.membership`): events in, effects into the draft."""

from dataclasses import replace
from typing import assert_never

from pliant.control.jobs.draft import Draft, SendMessage
from pliant.control.jobs.transitions import (
    job_event,
    kill_later,
    release_leavers,
    task_event,
)
from pliant.control.kinds.elastic.job import ElasticJob
from pliant.core.event import EventKind
from pliant.core.job import Generation, Task, TaskId
from pliant.core.lifecycle import (
    GENERATION_LIFECYCLE,
    GenerationEvent,
    GenerationState,
    JobEvent,
    JobState,
    TaskEvent,
    TaskState,
    advance,
    is_final,
)
from pliant.core.link import Form, ToTask
from pliant.policy.elastic.coordinator import handle
from pliant.policy.elastic.membership import (
    Abandoned,
    Activated,
    Announced,
    Effect,
    MembershipEvent,
    Send,
    Wanted,
)


def regroup(draft: Draft, live: ElasticJob, cause: str) -> ElasticJob:
    """Let the coordinator know which tasks the scheduler wants to stay."""
    return coordinate(draft, live, Wanted(tasks=frozenset(task.id for task in live.staying), cause=cause))


def leave(draft: Draft, live: ElasticJob, task: Task, cause: str) -> ElasticJob:
    """Let a task leave at its next step boundary that itself says it must go."""
    live = task_event(draft, live, task.id, TaskEvent.LEAVE, cause)
    return release_leavers(draft, regroup(draft, live, cause))


def coordinate(draft: Draft, live: ElasticJob, event: MembershipEvent) -> ElasticJob:
    """Let the coordinator of a job take in an event, and carry its effects into the draft."""
    membership, effects = handle(live.membership, event, draft.now)
    live = draft.put(replace(live, membership=membership))
    for effect in effects:
        live = _effect(draft, live, effect)
    return live


def _effect(draft: Draft, live: ElasticJob, effect: Effect) -> ElasticJob:
    match effect:
        case Send():
            draft.act(SendMessage(task_id=effect.task_id, message=_completed(draft, live, effect.message)))
            return live
        case Announced():
            return _announce(draft, live, effect)
        case Activated():
            return _activate(draft, live, effect)
        case Abandoned():
            return _abandon(draft, live, effect)
        case _:
            assert_never(effect)


def _completed(draft: Draft, live: ElasticJob, message: ToTask) -> ToTask:
    """Return a message with what the coordinator does not know: whether the job ends, whether state is encrypted."""
    if not isinstance(message, Form):
        return message
    is_end = not message.members and live.job.state is JobState.STOPPING
    return replace(message, is_end=is_end, encrypts=draft.settings.encrypt_state)


def _announce(draft: Draft, live: ElasticJob, effect: Announced) -> ElasticJob:
    live = live.end_generations(GenerationState.FORMING, GenerationEvent.ABANDON)
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
    return draft.put(replace(live.with_generation(generation), job=job))


def _activate(draft: Draft, live: ElasticJob, effect: Activated) -> ElasticJob:
    live = live.end_generations(GenerationState.ACTIVE, GenerationEvent.RETIRE)
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
    step = max(live.step, effect.step)
    live = draft.put(replace(live.with_generation(generation), job=job, trained=True, step=step))
    _say_switched(draft, live, effect)
    live = _join(draft, live, effect.members)
    if live.competes or live.job.state is JobState.STOPPING:
        live = job_event(draft, live, JobEvent.TRAIN, "")
    return live


def _say_switched(draft: Draft, live: ElasticJob, effect: Activated) -> None:
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


def _join(draft: Draft, live: ElasticJob, members: tuple[TaskId, ...]) -> ElasticJob:
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


def _abandon(draft: Draft, live: ElasticJob, effect: Abandoned) -> ElasticJob:
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
    return draft.put(live.end_generation(generation, GenerationEvent.ABANDON))
