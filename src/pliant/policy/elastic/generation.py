"""The next generation: whether there is one to announce, who its members are, and who is told (`announce_next`).

It depends on the membership and the time alone, not on what happened last: it can be asked at any moment, and twice.
`membership` says what the rules are. Invariant: whoever is announced as a member is live and ready.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pliant.core.job import TaskId
from pliant.core.link import Dismiss, Form
from pliant.policy.elastic.membership import Announced, Effect, GenerationView, Membership, Send, TaskStatus


def announce_next(membership: Membership, now: float, effects: list[Effect]) -> Membership:
    """Announce the next generation if there is one to announce; else say when to look again, if time changes that."""
    if membership.wake_at is not None:
        membership = replace(membership, wake_at=None)
    if membership.forming is not None:
        return membership
    if membership.retry_at > now:
        return replace(membership, wake_at=membership.retry_at)
    if membership.current is None or membership.current.dead:
        return _recover(membership, effects)
    return _change(membership, membership.current, now, effects)


def send_form(membership: Membership, generation: GenerationView, to: Sequence[TaskId], effects: list[Effect]) -> None:
    """Tell these tasks of a generation, unless it is not known where it meets.

    That is at its first member's. After a restart of the server it is known when this one has said hello.
    """
    first = membership.status_of(generation.members[0]) if generation.members else TaskStatus(ready=True)
    if first.ready:
        members = (membership.status_of(task) for task in generation.members)
        form = Form(
            generation=generation.number,
            members=generation.members,
            host=first.host,
            port=first.port,
            addresses=tuple((status.host, status.port) for status in members),
            cause=generation.cause,
        )
        effects.extend(Send(task_id=task, message=form) for task in to)


def _announce(membership: Membership, members: Sequence[TaskId], effects: list[Effect]) -> Membership:
    generation = GenerationView(number=membership.number + 1, members=tuple(members), cause=membership.cause)
    membership = replace(membership, number=generation.number, forming=generation)
    effects.append(Announced(generation=generation.number, members=generation.members, cause=generation.cause))
    send_form(membership, generation, membership.concerned_by(generation), effects)
    return membership


# -- nobody trains ----------------------------------------------------------------------------------------------------


def _recover(membership: Membership, effects: list[Effect]) -> Membership:
    """Form a generation of all who hold state; if nobody does, of the wanted ones that are ready."""
    holders = {task: s for task, s in membership.tasks.items() if s.holds_state and not s.left}
    if not all(s.ready for s in holders.values()):
        # The server has restarted. Each of them will say hello, or be gone; without it there might be two trainings.
        return membership
    before = membership.current.members if membership.current is not None else ()
    members = [task for task in before if task in holders]
    members += [task for task in holders if task not in members]
    if not members:
        tasks = membership.tasks.items()
        members = _by_readiness({task: s for task, s in tasks if s.ready and not s.left and task in membership.wanted})
    return _announce(membership, members, effects) if members else membership


# -- a generation trains ----------------------------------------------------------------------------------------------


def _change(membership: Membership, current: GenerationView, now: float, effects: list[Effect]) -> Membership:
    """Bring the members to the wanted tasks that are ready: leavers go at once, newcomers are gathered a moment."""
    stay = [task for task in current.members if task in membership.wanted]
    if not all(membership.tasks[task].ready for task in stay):
        return membership  # the server has restarted; each of them will say hello, or be gone
    outside = {task: s for task, s in membership.tasks.items() if task not in current.members and not s.left}
    effects.extend(_dismissals(membership, outside))
    newcomers = _by_readiness({task: s for task, s in outside.items() if s.ready and task in membership.wanted})
    joining = [*newcomers, *_possibly_ahead(membership, outside)]
    has_leavers = len(stay) < len(current.members)
    if not stay and (joining or membership.wanted):
        stay = _keeper(membership, current) if joining else []
        if not stay:
            return membership
    if newcomers and not has_leavers:
        gathered_at = _gathered_at(membership, outside, newcomers[0])
        if now < gathered_at:
            return replace(membership, wake_at=gathered_at)
    return _announce(membership, [*stay, *joining], effects) if joining or has_leavers else membership


def _dismissals(membership: Membership, outside: Mapping[TaskId, TaskStatus]) -> list[Effect]:
    """Send away who is ready to join and not wanted any more; who may hold a state is still needed."""
    reason = "the scheduler wants it no more"
    return [
        Send(task_id=task, message=Dismiss(reason=reason))
        for task, status in outside.items()
        if status.ready and task not in membership.wanted and not status.holds_state
    ]


def _possibly_ahead(membership: Membership, outside: Mapping[TaskId, TaskStatus]) -> list[TaskId]:
    """Return unwanted tasks that entered a generation which was then abandoned: they may be ahead of the members.

    They come along once, so that nothing they have committed is lost, and leave with the next change.
    """
    return [task for task, s in outside.items() if s.ready and s.holds_state and task not in membership.wanted]


def _keeper(membership: Membership, current: GenerationView) -> list[TaskId]:
    """Return the member that stays until the newcomers have its state, though all are to go; none if it is not ready.

    It leaves with the next change.
    """
    live = [task for task in current.members if task in membership.tasks and not membership.tasks[task].left]
    return [task for task in live[:1] if membership.tasks[task].ready]


def _gathered_at(membership: Membership, outside: Mapping[TaskId, TaskStatus], first: TaskId) -> float:
    """Return until when the first newcomer that is ready waits for those that were ordered and are not."""
    late = any(not status.ready and task in membership.wanted for task, status in outside.items())
    return outside[first].ready_at + membership.gather_s if late else outside[first].ready_at


def _by_readiness(tasks: Mapping[TaskId, TaskStatus]) -> list[TaskId]:
    return sorted(tasks, key=lambda task: tasks[task].ready_at)
