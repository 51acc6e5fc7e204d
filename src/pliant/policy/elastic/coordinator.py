"""Takes in what happens to a job's tasks (`handle`): a pure state machine; `membership` tells how it works.

`handle(membership, event, now)` returns the next state and the effects to perform; the control loop feeds it and
carries out what it says. Every event may come twice, and a message may come late. What it says of a generation counts
only if this is the one that forms or trains; it may still prove that a task is somewhere nobody knew of.
"""

from dataclasses import replace
from typing import assert_never

from pliant.core.job import TaskId
from pliant.core.link import Abandon, Hello, Left, Lost, Ready, Switched
from pliant.policy.elastic.generation import announce_next, send_form
from pliant.policy.elastic.loss import abandon_current, abandon_forming, abandon_overtaken, forget_task
from pliant.policy.elastic.membership import (
    Activated,
    Effect,
    GenerationView,
    Gone,
    Membership,
    MembershipEvent,
    Send,
    Severed,
    TaskMessage,
    Tick,
    Wanted,
    presume_state,
    put_status,
)


def handle(membership: Membership, event: MembershipEvent, now: float) -> tuple[Membership, tuple[Effect, ...]]:
    """Return the next state and what to do, in order."""
    effects: list[Effect] = []
    match event:
        case Wanted():
            membership = _want(membership, event)
        case Gone():
            reason = f"lost {event.task_id}" + (f" ({event.reason})" if event.reason else "")
            membership = forget_task(membership, event.task_id, reason, now, effects)
        case Severed():
            for task_id in event.tasks:
                membership = forget_task(membership, task_id, event.reason, now, effects)
        case TaskMessage():
            membership = _receive(membership, event, now, effects)
        case Tick():
            pass
        case _:
            assert_never(event)
    return announce_next(membership, now, effects), tuple(effects)


def _want(membership: Membership, event: Wanted) -> Membership:
    known = {task: membership.status_of(task) for task in sorted(event.tasks)}
    return replace(membership, wanted=event.tasks, cause=event.cause, tasks={**membership.tasks, **known})


def _receive(membership: Membership, event: TaskMessage, now: float, effects: list[Effect]) -> Membership:
    task_id = event.task_id
    match event.message:
        case Left():
            return put_status(membership, task_id, replace(membership.status_of(task_id), left=True))
        case Hello() as hello:
            return _take_hello(membership, task_id, hello, now, effects)
        case Ready() as ready:
            return _note_ready(membership, task_id, ready.host, ready.port, now)
        case Switched() as switched:
            return _take_switched(membership, task_id, switched, now, effects)
        case Lost() as lost:
            return _take_lost(membership, task_id, lost, now, effects)
        case _:
            assert_never(event.message)


def _note_ready(membership: Membership, task_id: TaskId, host: str, port: int, now: float) -> Membership:
    before = membership.status_of(task_id)
    ready_at = before.ready_at if before.ready else now
    return put_status(membership, task_id, replace(before, ready=True, ready_at=ready_at, host=host, port=port))


# -- hello: a connection was made, and what either side said before may have been lost --------------------------------


def _take_hello(membership: Membership, task_id: TaskId, hello: Hello, now: float, effects: list[Effect]) -> Membership:
    """Learn from a hello where a task stands, then tell it what it may have missed."""
    was_ready = membership.status_of(task_id).ready
    may_hold = hello.step is not None or hello.lost
    membership = put_status(membership, task_id, replace(membership.status_of(task_id), holds_state=may_hold))
    if hello.ready:
        membership = _note_ready(membership, task_id, hello.host, hello.port, now)
    membership = _learn_from_hello(membership, task_id, hello, now, effects)
    _repeat_forms(membership, task_id, hello, effects, was_ready=was_ready)
    return membership


def _learn_from_hello(
    membership: Membership, task_id: TaskId, hello: Hello, now: float, effects: list[Effect]
) -> Membership:
    """Take in what a message would have said that perhaps never came."""
    forming = membership.forming
    if forming is not None and hello.generation == forming.number:
        membership = _activate(membership, forming, effects, step=hello.step or 0)
    elif forming is not None and hello.failed == forming.number:
        membership = abandon_forming(membership, f"{task_id} reports that it failed", now, effects)
    if hello.lost and membership.trains_in(hello.generation):
        return abandon_current(membership, f"{task_id} reports that it was lost", now, effects)
    if hello.generation is not None and membership.is_over(hello.generation):
        return _say_over(membership, task_id, hello.generation, now, effects)
    return membership


def _repeat_forms(
    membership: Membership, task_id: TaskId, hello: Hello, effects: list[Effect], *, was_ready: bool
) -> None:
    """Send the forms of the current and of the forming generation again to a task that may not have them."""
    current, forming = membership.current, membership.forming
    if current is not None and task_id in membership.active and hello.generation != current.number:
        send_form(membership, current, (task_id,), effects)
    if forming is not None and task_id in (concerned := membership.concerned_by(forming)):
        # After a restart nobody was told where it meets before the first member has said so: now all are.
        knows_where = task_id in forming.members[:1] and not was_ready
        send_form(membership, forming, concerned if knows_where else (task_id,), effects)


def _say_over(
    membership: Membership, task_id: TaskId, generation: int, now: float, effects: list[Effect]
) -> Membership:
    """Tell a task that the generation it is in is over, and draw the conclusion from its being there."""
    effects.append(Send(task_id=task_id, message=Abandon(generation=generation, reason="it is over")))
    return abandon_overtaken(membership, generation, now, effects)


# -- the generation that forms trains, or fails -----------------------------------------------------------------------


def _take_switched(
    membership: Membership, task_id: TaskId, message: Switched, now: float, effects: list[Effect]
) -> Membership:
    membership = put_status(membership, task_id, replace(membership.status_of(task_id), holds_state=True))
    forming = membership.forming
    if forming is not None and message.generation == forming.number:
        if not message.leader:
            return membership
        pause_s, redone_steps = message.pause_s, message.redone_steps
        return _activate(membership, forming, effects, step=message.step, pause_s=pause_s, redone_steps=redone_steps)
    if membership.is_over(message.generation):
        return _say_over(membership, task_id, message.generation, now, effects)
    return membership


def _activate(
    membership: Membership,
    forming: GenerationView,
    effects: list[Effect],
    *,
    step: int,
    pause_s: float = 0.0,
    redone_steps: int = 0,
) -> Membership:
    """Retire the current generation: the one that formed trains."""
    before = membership.current
    effects.append(
        Activated(
            generation=forming.number,
            members=forming.members,
            from_size=len(before.members) if before else 0,
            step=step,
            pause_s=pause_s,
            redone_steps=redone_steps,
            cause=forming.cause,
        )
    )
    membership = presume_state(_forget_outsiders(membership, forming), forming)
    return replace(membership, current=forming, forming=None, num_failures=0, retry_at=0.0)


def _forget_outsiders(membership: Membership, generation: GenerationView) -> Membership:
    """Believe of nobody whom a generation that trains leaves out that it holds what the members do not.

    Of a task that has not said where it is since a restart of the server, that is not known.
    """
    tasks = {
        task: replace(status, holds_state=False) if status.ready and task not in generation.members else status
        for task, status in membership.tasks.items()
    }
    return replace(membership, tasks=tasks)


def _take_lost(membership: Membership, task_id: TaskId, message: Lost, now: float, effects: list[Effect]) -> Membership:
    forming = membership.forming
    reason = f"{task_id} reports: {message.error}"
    if forming is not None and message.generation == forming.number:
        membership = abandon_forming(membership, reason, now, effects)
    current = membership.current
    if current is None or current.dead:
        return membership
    # Who trained in the current generation, or in a later one, and stands still: then nobody trains in it any more.
    # A newcomer that fails takes nothing but the forming generation with it.
    if message.generation == current.number or (message.trained is not None and message.trained >= current.number):
        return abandon_current(membership, reason, now, effects)
    return membership
