"""What is given up with a generation that cannot go on: the part of the coordinator that deals with losses.

A generation is abandoned whole. Its members may be a step apart then, and each of them may hold the newest state; so
all of them are believed to hold one until they say otherwise (`presume_state`), and the next generation needs them all.
"""

from dataclasses import replace

from pliant.core.job import TaskId
from pliant.core.link import Abandon
from pliant.policy.elastic.membership import Abandoned, Effect, Membership, Send, presume_state


def abandon_current(membership: Membership, reason: str, now: float, effects: list[Effect]) -> Membership:
    """Give up the generation that trains, and with it the one that forms: its members may be in either."""
    current = membership.current
    assert current is not None
    effects.append(Abandoned(generation=current.number, reason=reason))
    effects.extend(
        Send(task_id=task, message=Abandon(generation=current.number, reason=reason))
        for task in current.members
        if task in membership.tasks
    )
    membership = replace(membership, current=replace(current, dead=True), cause=reason)
    return abandon_forming(membership, reason, now, effects, failed=False)


def abandon_forming(
    membership: Membership, reason: str, now: float, effects: list[Effect], *, failed: bool = True
) -> Membership:
    """Give up the generation that forms, if there is one; after it has `failed` again and again, wait with the next.

    One failure is retried at once. The delay is 0.4 s after the second in a row, then doubles up to 5 s.
    """
    forming = membership.forming
    if forming is None:
        return membership
    effects.append(Abandoned(generation=forming.number, reason=reason))
    effects.extend(
        Send(task_id=task, message=Abandon(generation=forming.number, reason=reason))
        for task in membership.concerned_by(forming)
    )
    membership = presume_state(membership, forming)
    num_failures = membership.num_failures + 1 if failed else membership.num_failures
    delay = min(5.0, 0.1 * 2**num_failures) if num_failures > 1 else 0.0
    return replace(membership, forming=None, num_failures=num_failures, retry_at=now + delay)


def abandon_overtaken(membership: Membership, generation: int, now: float, effects: list[Effect]) -> Membership:
    """Give up the current generation if a task has entered a later one that was abandoned: then nobody trains in it."""
    current = membership.current
    if current is None or current.dead or generation <= current.number or generation > membership.number:
        return membership
    if membership.forming is not None and membership.forming.number == generation:
        return membership
    return abandon_current(membership, f"generation {generation} was entered and given up", now, effects)


def forget_task(membership: Membership, task_id: TaskId, reason: str, now: float, effects: list[Effect]) -> Membership:
    """Take in that a process is gone: give up what cannot go on without it."""
    status = membership.tasks.get(task_id)
    if status is None:
        return membership
    tasks = {task: known for task, known in membership.tasks.items() if task != task_id}
    # Generations that failed perhaps failed because of it. Those who remain try at once.
    membership = replace(membership, tasks=tasks, wanted=membership.wanted - {task_id}, num_failures=0, retry_at=0.0)
    forming = membership.forming
    if task_id in membership.active and not status.left:
        membership = abandon_current(membership, reason, now, effects)
    elif forming is not None and task_id in forming.members:
        membership = abandon_forming(membership, reason, now, effects, failed=False)
    if membership.current is not None and not any(task in tasks for task in membership.current.members):
        membership = _forget_current(membership, effects)
    return membership


def _forget_current(membership: Membership, effects: list[Effect]) -> Membership:
    """Nobody of the current generation lives: what comes next starts from a checkpoint or from another's state."""
    forming = membership.forming
    if forming is not None and not forming.members:
        effects.append(Abandoned(generation=forming.number, reason="all have left"))
        membership = replace(membership, forming=None)
    return replace(membership, current=None)
