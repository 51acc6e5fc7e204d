"""Who trains with whom: the membership coordinator of one job, a pure state machine.

`handle(membership, event, now)` returns the next state and the effects to perform. It knows nothing of sockets, stores
or processes; the control loop feeds it and carries out what it says. Everything may be told twice.

Invariants:
- generation numbers only grow; at most one generation is active and at most one is forming;
- a forming generation has only ready members; those who hold state come first;
- a task that nobody wants stays in a generation that forms after a loss, so that a committed step that only it holds is
  not lost, and in a planned one if no member of the one before is wanted, so that the newcomers get its state; it
  leaves with the next planned change;
- nobody recovers without a live task that may hold state: whoever was a member of a generation and, after a restart,
  whoever has not said hello yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from pliant.core.job import JobId, TaskId
from pliant.core.link import Abandon, Dismiss, Form, Hello, Left, Lost, Ready, Switched, ToTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The scheduler wants exactly these tasks to stay (and those it has ordered to join). Empty: everybody leaves."""

    tasks: frozenset[TaskId]
    cause: str = ""
    """Why, in words; told to people with the generation that follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A task said something. Messages that do not concern membership are ignored."""

    task_id: TaskId
    message: Hello | Ready | Switched | Lost | Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A task's process has exited, for whatever reason."""

    task_id: TaskId
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed."""


MembershipEvent = Wanted | Heard | Gone | Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send this message to this task."""

    task_id: TaskId
    message: ToTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A generation was announced; record it as forming. (The `Form` messages are effects of their own.)"""

    generation: int
    members: tuple[TaskId, ...]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """A generation trains; the one before it is retired."""

    generation: int
    members: tuple[TaskId, ...]
    from_size: int
    """Size of the generation that trained before; 0 if none did."""
    step: int
    pause_s: float
    redone_steps: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """A generation was given up."""

    generation: int
    reason: str


Effect = Send | Announced | Activated | Abandoned


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A generation that forms or trains."""

    number: int
    members: tuple[TaskId, ...]
    cause: str = ""
    dead: bool = False
    """Abandoned: who stands in it waits for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of one live task."""

    ready: bool = False
    ready_at: float = 0.0
    host: str = ""
    port: int = 0
    holds_state: bool = False
    """It trained once, so it has a state that a recovery may need."""
    left: bool = False
    """It said that it left; its process is about to exit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The coordinator's state for one job."""

    job_id: JobId
    number: int = 0
    """The highest generation number ever announced."""
    current: Group | None = None
    """The generation that trains, or that trained last if it is dead."""
    forming: Group | None = None
    tasks: Mapping[TaskId, Standing] = field(default_factory=dict)
    wanted: frozenset[TaskId] = field(default_factory=frozenset)
    cause: str = ""
    num_failures: int = 0
    """Generations in a row that were announced and never trained."""
    retry_at: float = 0.0
    gather_s: float = 0.3
    """A newcomer that is ready waits this long for others that were ordered, so that all join in one change."""
    wake_at: float | None = None
    """Feed a `Tick` at this instant at the latest; None if time alone changes nothing."""

    @property
    def active(self) -> tuple[TaskId, ...]:
        """Members of the generation that trains, in rank order; empty if none does."""
        return self.current.members if self.current is not None and not self.current.dead else ()


def restore(
    job_id: JobId,
    *,
    number: int,
    active: Group | None,
    forming: Group | None,
    wanted: frozenset[TaskId],
    leaving: frozenset[TaskId] = frozenset(),
) -> Membership:
    """Rebuild the state from what the store remembers; the live tasks will say `Hello`.

    `number` is the highest generation ever recorded. Every task of `wanted`, of `leaving` (live ones that are not
    wanted any more) and of the generations is believed to live until a `Gone` says otherwise, and to hold state until
    its `Hello` says otherwise.
    """
    members = (*(active.members if active else ()), *(forming.members if forming else ()), *sorted(wanted | leaving))
    return Membership(
        job_id=job_id,
        number=number,
        current=active,
        forming=forming,
        tasks={task: Standing(holds_state=True) for task in members},
        wanted=wanted,
    )


def handle(membership: Membership, event: MembershipEvent, now: float) -> tuple[Membership, tuple[Effect, ...]]:
    """Return the next state and what to do, in order."""
    effects: list[Effect] = []
    match event:
        case Wanted():
            membership = _want(membership, event)
        case Gone():
            membership = _gone(membership, event, now, effects)
        case Heard():
            membership = _heard(membership, event, now, effects)
        case Tick():
            pass
        case _:
            assert_never(event)
    return _settle(membership, now, effects), tuple(effects)


def _heard(membership: Membership, event: Heard, now: float, effects: list[Effect]) -> Membership:
    task_id = event.task_id
    match event.message:
        case Left():
            return _stand(membership, task_id, replace(_standing(membership, task_id), left=True))
        case Hello() as hello:
            return _hello(membership, task_id, hello, now, effects)
        case Ready() as ready:
            return _ready(membership, task_id, ready.host, ready.port, now)
        case Switched() as switched:
            return _switched(membership, task_id, switched, now, effects)
        case Lost() as broken:
            return _broken(membership, task_id, broken, now, effects)
        case _:
            assert_never(event.message)


def _stand(membership: Membership, task_id: TaskId, standing: Standing) -> Membership:
    return replace(membership, tasks={**membership.tasks, task_id: standing})


def _standing(membership: Membership, task_id: TaskId) -> Standing:
    return membership.tasks.get(task_id, Standing())


def _want(membership: Membership, event: Wanted) -> Membership:
    known = {task: _standing(membership, task) for task in sorted(event.tasks)}
    return replace(membership, wanted=event.tasks, cause=event.cause, tasks={**membership.tasks, **known})


def _ready(membership: Membership, task_id: TaskId, host: str, port: int, now: float) -> Membership:
    before = _standing(membership, task_id)
    ready_at = before.ready_at if before.ready else now
    return _stand(membership, task_id, replace(before, ready=True, ready_at=ready_at, host=host, port=port))


def _hello(membership: Membership, task_id: TaskId, hello: Hello, now: float, effects: list[Effect]) -> Membership:
    """Take note of where a task stands after a connection was made, and tell it what it may have missed."""
    before = _standing(membership, task_id)
    may_hold = hello.step is not None or hello.lost
    membership = _stand(membership, task_id, replace(before, holds_state=may_hold))
    if hello.ready:
        membership = _ready(membership, task_id, hello.host, hello.port, now)
    forming = membership.forming
    if forming is not None and hello.generation == forming.number:
        membership = _activate(membership, hello.step or 0, 0.0, 0, effects)
    elif forming is not None and hello.failed == forming.number:
        membership = _abandon_forming(membership, f"{task_id} reports that it failed", now, effects)
    if hello.lost and _is_current(membership, hello.generation):
        membership = _lose_current(membership, f"{task_id} reports that it was lost", now, effects)
    elif hello.generation is not None and _is_over(membership, hello.generation):
        effects.append(Send(task_id=task_id, message=Abandon(generation=hello.generation, reason="it is over")))
        membership = _mark_overtaken(membership, hello.generation, now, effects)
    current, forming = membership.current, membership.forming
    if current is not None and not current.dead and task_id in current.members and hello.generation != current.number:
        _send_form(membership, current, (task_id,), effects)
    if forming is not None and task_id in (concerned := _concerned(membership, forming)):
        knows_where = task_id in forming.members[:1] and not before.ready
        _send_form(membership, forming, concerned if knows_where else (task_id,), effects)
    return membership


def _switched(
    membership: Membership, task_id: TaskId, message: Switched, now: float, effects: list[Effect]
) -> Membership:
    membership = _stand(membership, task_id, replace(_standing(membership, task_id), holds_state=True))
    forming = membership.forming
    if forming is not None and message.generation == forming.number:
        if not message.leader:
            return membership
        return _activate(membership, message.step, message.pause_s, message.redone_steps, effects)
    if _is_over(membership, message.generation):
        effects.append(Send(task_id=task_id, message=Abandon(generation=message.generation, reason="it is over")))
    return _mark_overtaken(membership, message.generation, now, effects)


def _activate(
    membership: Membership, step: int, pause_s: float, redone_steps: int, effects: list[Effect]
) -> Membership:
    forming, before = membership.forming, membership.current
    assert forming is not None
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
    membership = _presume_state(_forget_outsiders(membership, forming), forming)
    return replace(membership, current=forming, forming=None, num_failures=0, retry_at=0.0)


def _forget_outsiders(membership: Membership, group: Group) -> Membership:
    """Believe of nobody whom a generation that trains leaves out that it holds what the members do not."""
    tasks = {
        task: replace(standing, holds_state=False) if standing.ready and task not in group.members else standing
        for task, standing in membership.tasks.items()
    }
    return replace(membership, tasks=tasks)


def _presume_state(membership: Membership, group: Group) -> Membership:
    """Believe of all members of a generation that they entered it, whether or not they have said so yet."""
    tasks = {
        task: replace(standing, holds_state=True) if task in group.members else standing
        for task, standing in membership.tasks.items()
    }
    return replace(membership, tasks=tasks)


def _broken(membership: Membership, task_id: TaskId, message: Lost, now: float, effects: list[Effect]) -> Membership:
    current, forming = membership.current, membership.forming
    reason = f"{task_id} reports: {message.error}"
    if forming is not None and message.generation == forming.number:
        membership = _abandon_forming(membership, reason, now, effects)
    if current is None or current.dead:
        return membership
    # Who trained in the current generation, or in a later one, and stands still: then nobody trains in it any more.
    # A newcomer that fails takes nothing but the forming generation with it.
    if message.generation == current.number or (message.trained is not None and message.trained >= current.number):
        return _lose_current(membership, reason, now, effects)
    return membership


def _gone(membership: Membership, event: Gone, now: float, effects: list[Effect]) -> Membership:
    task_id = event.task_id
    standing = membership.tasks.get(task_id)
    if standing is None:
        return membership
    tasks = {task: known for task, known in membership.tasks.items() if task != task_id}
    # What failed with it says nothing of those who remain: they try at once.
    membership = replace(membership, tasks=tasks, wanted=membership.wanted - {task_id}, num_failures=0, retry_at=0.0)
    current, forming = membership.current, membership.forming
    reason = f"lost {task_id}" + (f" ({event.reason})" if event.reason else "")
    if current is not None and not current.dead and task_id in current.members and not standing.left:
        membership = _lose_current(membership, reason, now, effects)
    elif forming is not None and task_id in forming.members:
        membership = _abandon_forming(membership, reason, now, effects, failed=False)
    if membership.current is not None and not any(task in tasks for task in membership.current.members):
        membership = _forget_empty(membership, effects)
    return membership


def _forget_empty(membership: Membership, effects: list[Effect]) -> Membership:
    """Nobody of the current generation lives: what comes next starts from a checkpoint or from another's state."""
    if membership.forming is not None and not membership.forming.members:
        effects.append(Abandoned(generation=membership.forming.number, reason="all have left"))
        membership = replace(membership, forming=None)
    return replace(membership, current=None)


def _lose_current(membership: Membership, reason: str, now: float, effects: list[Effect]) -> Membership:
    """Give up the current generation, and with it the one that forms: some may stand in either."""
    current = membership.current
    assert current is not None
    effects.append(Abandoned(generation=current.number, reason=reason))
    membership = replace(membership, current=replace(current, dead=True), cause=reason)
    effects.extend(
        Send(task_id=task, message=Abandon(generation=current.number, reason=reason))
        for task in current.members
        if task in membership.tasks
    )
    return _abandon_forming(membership, reason, now, effects, failed=False)


def _abandon_forming(
    membership: Membership, reason: str, now: float, effects: list[Effect], *, failed: bool = True
) -> Membership:
    forming = membership.forming
    if forming is None:
        return membership
    effects.append(Abandoned(generation=forming.number, reason=reason))
    effects.extend(
        Send(task_id=task, message=Abandon(generation=forming.number, reason=reason))
        for task in _concerned(membership, forming)
    )
    membership = _presume_state(membership, forming)
    num_failures = membership.num_failures + 1 if failed else membership.num_failures
    delay = min(5.0, 0.1 * 2**num_failures) if num_failures > 1 else 0.0
    return replace(membership, forming=None, num_failures=num_failures, retry_at=now + delay)


def _mark_overtaken(membership: Membership, generation: int, now: float, effects: list[Effect]) -> Membership:
    """A task stands in an abandoned generation that came after the current one: then nobody trains in that any more."""
    current = membership.current
    if current is None or current.dead or generation <= current.number or generation > membership.number:
        return membership
    if membership.forming is not None and membership.forming.number == generation:
        return membership
    return _lose_current(membership, f"generation {generation} was entered and given up", now, effects)


def _is_current(membership: Membership, generation: int | None) -> bool:
    current = membership.current
    return current is not None and not current.dead and current.number == generation


def _is_over(membership: Membership, generation: int) -> bool:
    live = {group.number for group in (membership.current, membership.forming) if group is not None and not group.dead}
    return generation not in live


def _concerned(membership: Membership, group: Group) -> tuple[TaskId, ...]:
    """Members of a forming generation, and live members of the current one whom it leaves out."""
    current = membership.current.members if membership.current is not None else ()
    both = dict.fromkeys((*group.members, *current))
    return tuple(task for task in both if task in membership.tasks and not membership.tasks[task].left)


def _send_form(membership: Membership, group: Group, to: tuple[TaskId, ...], effects: list[Effect]) -> None:
    """Announce a generation to these tasks; after a restart not before its first member has said where it listens."""
    first = _standing(membership, group.members[0]) if group.members else Standing(ready=True)
    if first.ready:
        form = Form(generation=group.number, members=group.members, host=first.host, port=first.port, cause=group.cause)
        effects.extend(Send(task_id=task, message=form) for task in to)


def _settle(membership: Membership, now: float, effects: list[Effect]) -> Membership:
    """Announce the next generation if there is one to announce; say when to look again."""
    membership = replace(membership, wake_at=None)
    if membership.forming is not None:
        return membership
    if membership.retry_at > now:
        return replace(membership, wake_at=membership.retry_at)
    if membership.current is None or membership.current.dead:
        return _recover(membership, effects)
    return _change(membership, now, effects)


def _recover(membership: Membership, effects: list[Effect]) -> Membership:
    """Form a generation of all who hold state; if nobody does, of the wanted ones that are ready."""
    before = membership.current.members if membership.current is not None else ()
    holders = {task: s for task, s in membership.tasks.items() if s.holds_state and not s.left}
    if not all(s.ready for s in holders.values()):
        return membership  # the server has restarted; each says hello or is gone; without it there may be two trainings
    members = [task for task in before if task in holders and holders[task].ready]
    members += [task for task, s in holders.items() if s.ready and task not in members]
    if not members:
        members = [task for task, s in membership.tasks.items() if s.ready and task in membership.wanted and not s.left]
        members.sort(key=lambda task: membership.tasks[task].ready_at)
    if not members:
        return membership
    return _announce(membership, tuple(members), effects)


def _change(membership: Membership, now: float, effects: list[Effect]) -> Membership:
    """Bring the members to the wanted ones that are ready, at once for leavers, gathering newcomers a moment."""
    current = membership.current
    assert current is not None
    stay = [task for task in current.members if task in membership.wanted]
    if not all(membership.tasks[task].ready for task in stay):
        return membership  # the server has restarted; each of them will say hello, or be gone
    outside = {task: s for task, s in membership.tasks.items() if task not in current.members and not s.left}
    newcomers = sorted(
        (task for task, s in outside.items() if s.ready and task in membership.wanted),
        key=lambda task: outside[task].ready_at,
    )
    late = [task for task, s in outside.items() if not s.ready and task in membership.wanted]
    effects.extend(
        Send(task_id=task, message=Dismiss(reason="the scheduler wants it no more"))
        for task, s in outside.items()
        if s.ready and task not in membership.wanted and not s.holds_state
    )
    # Who stood in an abandoned generation may be ahead: it comes along once, and leaves with the next change.
    doubtful = [task for task, s in outside.items() if s.ready and s.holds_state and task not in membership.wanted]
    joining = [*newcomers, *doubtful]
    leavers = len(stay) < len(current.members)
    if not stay and joining:
        # One stays until the others have its state, and leaves with the next change.
        stay = [task for task in current.members if task in membership.tasks and not membership.tasks[task].left][:1]
        if not stay or not membership.tasks[stay[0]].ready:
            return membership
    elif not stay and membership.wanted:
        return membership
    if newcomers and late and not leavers:
        gathered_at = outside[newcomers[0]].ready_at + membership.gather_s
        if now < gathered_at:
            return replace(membership, wake_at=gathered_at)
    if not joining and not leavers:
        return membership
    return _announce(membership, (*stay, *joining), effects)


def _announce(membership: Membership, members: tuple[TaskId, ...], effects: list[Effect]) -> Membership:
    group = Group(number=membership.number + 1, members=members, cause=membership.cause)
    membership = replace(membership, number=group.number, forming=group)
    effects.append(Announced(generation=group.number, members=members, cause=group.cause))
    _send_form(membership, group, _concerned(membership, group), effects)
    return membership
