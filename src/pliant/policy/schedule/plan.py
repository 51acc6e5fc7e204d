"""The scheduler: `plan` decides who gets how many slots, and where, and says why. A pure function.

Theory of operation
===================
Workloads whose tasks hold a part of a slot are put together first, so that whole slots are left to decide on, and what
they get together is shared out among them at last (`shared`). In between:

0. Queues that share no node are decided on apart, each set of them on a pool of its own (`pool`).
1. Pass 1 (`admit`) grants minimums in the order of the policies (`order`), each queue within what it is entitled to
   (`entitle`).
2. Pass 2 works out what each workload deserves of its queue's slots (`share`) and finds places for that (`grow`).
3. What is reserved on idle slots starts now; the rest starts in later plans, as slots fall idle.

Example: 8 slots, fairshare, a alone with 1 to 8 tasks, then b, an equal of it. Decision by decision, as tasks leave:

    a arrives               a starts 1, its minimum             a 1
    next                    a starts 7 more                     a 8
    b arrives               4 tasks of a leave, b starts none   a 8   (targets 4 and 4)
    one of them has left    b starts 1, its minimum             a 7   b 1
    the others have left    b starts 3 more                     a 4   b 4

Nothing is remembered from one decision to the next but what the snapshot shows: the same targets are worked out anew
every time. So it does no harm if a plan is lost, carried out twice, or carried out in part.

Laws: a slot is started on only if no process holds it, and once at most. A workload's target is 0 or within its bounds.
A grant either starts tasks or tells tasks to leave. No workload is given more slots of a node than its queue's group
has. Nobody takes a task of a queue without preemption. The same snapshot in any order gives the same plan, and applying
plans to unchanged demand comes to rest.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from pliant.core.job import JobId
from pliant.core.plan import Grant, Placement, Plan, Policy, PolicyName, Snapshot
from pliant.policy.schedule.admit import admit, admit_to_idle
from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.entitle import QueueDemand, entitle
from pliant.policy.schedule.grow import Victims, grow, settle_minimums, use_up
from pliant.policy.schedule.order import age, natural, precedence
from pliant.policy.schedule.place import num_startable, release_over_limit, start
from pliant.policy.schedule.pool import SlotPool, lay_out, split
from pliant.policy.schedule.queue import QueueState
from pliant.policy.schedule.reason import explain
from pliant.policy.schedule.share import Demand, Shares, fill, serve_in_order
from pliant.policy.schedule.shared import has_parts, plan_with_parts


def plan(snapshot: Snapshot, policy: Policy, now: float) -> Plan:
    """Return what every workload of the snapshot shall have, with a sentence that says why.

    Args:
        snapshot: what there is. Without queues all workloads share all slots by the policy's name.
        policy: its name, if there are no queues, and the cool-down of all.
        now: seconds, as all instants of the snapshot.
    """
    if has_parts(snapshot):
        made = plan_with_parts(snapshot, policy, now, lambda folded: _plan_whole(folded, policy, now))
    else:
        made = _plan_whole(snapshot, policy, now)
    return _say_excluded(made, snapshot) if snapshot.excluded else made


def _say_excluded(made: Plan, snapshot: Snapshot) -> Plan:
    """Add what is excluded to the sentences of those who could use more than they get."""
    reasons = dict(made.reasons)
    for workload in snapshot.workloads:
        grant, words = made.grants.get(workload.id), snapshot.excluded.get(workload.queue)
        if words and grant is not None and grant.num_tasks < workload.max_tasks and workload.id in reasons:
            reasons[workload.id] += f"; {words}"
    return replace(made, reasons=reasons)


def _plan_whole(snapshot: Snapshot, policy: Policy, now: float) -> Plan:
    """Plan for workloads of whole slots."""
    if not snapshot.workloads:
        return Plan(grants={}, reasons={})
    made = [_decide(part, policy, now) for part in split(snapshot, policy)]
    return made[0] if len(made) == 1 else _merge(made)


def _merge(plans: Sequence[Plan]) -> Plan:
    return Plan(
        grants={job_id: grant for plan in plans for job_id, grant in plan.grants.items()},
        reasons={job_id: reason for plan in plans for job_id, reason in plan.reasons.items()},
        wake_at=min((plan.wake_at for plan in plans if plan.wake_at is not None), default=None),
        deserved={name: num for plan in plans for name, num in plan.deserved.items()},
    )


def _decide(part: Snapshot, policy: Policy, now: float) -> Plan:
    """Decide for queues that share nodes with each other and with nobody else."""
    pool, queues, order, occupied = _admit(part, policy, now)
    urgency: dict[int, tuple[int, Shares | None, int]] = {}
    for number, queue in enumerate(queues):
        partners, shares = _share(queue, pool)
        fair = shares if queue.view.policy is PolicyName.FAIRSHARE else None
        urgency.update((candidate.rank, (number, fair, i)) for i, candidate in enumerate(partners))
    victims = Victims(pool, order)
    settle_minimums(pool, order, victims, occupied)
    complete = grow(pool, order, victims)
    use_up(pool, order, lambda candidate: _urgency(candidate, *urgency[candidate.rank]))
    admit_to_idle(queues, pool)
    starts = _start(order, pool)
    return Plan(
        grants={candidate.workload.id: _grant(candidate, starts.get(candidate.workload.id, ())) for candidate in order},
        reasons=_reasons(queues, order, pool, complete=complete),
        wake_at=_wake_at(order, policy, complete=complete),
        deserved={queue.view.name: _deserved(queue, pool) for queue in queues},
    )


class _Admission(NamedTuple):
    pool: SlotPool
    queues: Sequence[QueueState]
    order: Sequence[Candidate]
    occupied: Sequence[tuple[Candidate, int]]


def _admit(part: Snapshot, policy: Policy, now: float) -> _Admission:
    """Lay out the pool and grant minimums on it."""
    given: dict[str, tuple[int | None, int | None]] = {}
    reconsidered: set[JobId] = set()
    while True:
        pool, candidates = lay_out(part)
        release_over_limit(pool, candidates)
        queues = _line_up(part, candidates, policy, now)
        order = [candidate for queue in queues for candidate in queue.order]
        for rank, candidate in enumerate(order):
            candidate.rank = rank
        for queue in queues:
            queue.given = given.get(queue.view.name)
        occupied = admit(queues, pool, partial(_entitle, queues, pool), reconsidered)
        if occupied is not None:
            return _Admission(pool=pool, queues=queues, order=order, occupied=occupied)
        given = {queue.view.name: (queue.budget, queue.newcomers) for queue in queues}


def _line_up(part: Snapshot, candidates: list[Candidate], policy: Policy, now: float) -> list[QueueState]:
    """Return the queues, each with its candidates in its policy's order; fill in their age and what the time says of
    them.

    Queues of more weight come first; that matters only where the nodes have no places for what all are entitled to.
    """
    candidates.sort(key=lambda candidate: age(candidate.workload))
    by_queue: dict[str, list[Candidate]] = {}
    for number, candidate in enumerate(candidates):
        workload = candidate.workload
        candidate.age = number
        candidate.in_backoff = workload.held_until is not None and now < workload.held_until
        candidate.in_cooldown = workload.resized_at is not None and now < workload.resized_at + policy.cooldown_s
        if candidate.is_protected:
            candidate.minimum = max(workload.min_tasks, min(candidate.num_held, workload.max_tasks))
        by_queue.setdefault(workload.queue, []).append(candidate)
    queues = []
    for view in sorted(part.queues, key=lambda queue: (-queue.weight, natural(queue.name))):
        own = by_queue[view.name]
        own.sort(key=_precedence)
        may_pause = view.policy is not PolicyName.FAIRSHARE and view.preemption
        queues.append(QueueState(view=view, group=own[0].group, order=own, may_pause=may_pause))
    return queues


def _precedence(candidate: Candidate) -> tuple[int, int]:
    if candidate.is_protected and candidate.num_held:
        return -1, -candidate.workload.priority
    return precedence(candidate.queue.policy, candidate.workload, candidate.num_held)


def _entitle(queues: Sequence[QueueState], pool: SlotPool) -> None:
    """Set what every queue is entitled to, if more than one wants slots."""
    wanting = sorted((queue for queue in queues if queue.demand), key=lambda queue: natural(queue.view.name))
    if len(wanting) < 2:
        return
    demands = [_queue_demand(queue) for queue in wanting]
    for i, slots in enumerate(entitle(demands, pool.num_slots_of)):
        queue = wanting[i]
        queue.budget = queue.newcomers = slots
        # It has its floor, perhaps only because of minimums that it holds. An urgent newcomer could have these paused
        # and take their place, so it is measured by what the weights alone give the queue.
        if queue.may_pause and slots == queue.floor:
            others = (*demands[:i], demands[i]._replace(low=0), *demands[i + 1 :])
            queue.newcomers = entitle(others, pool.num_slots_of)[i]


def _queue_demand(queue: QueueState) -> QueueDemand:
    high = max(queue.wanted, queue.floor)
    return QueueDemand(weight=queue.view.weight, low=queue.floor, high=high, group=queue.group)


def _share(queue: QueueState, pool: SlotPool) -> tuple[list[Candidate], Shares]:
    """Set the share of every admitted workload of a queue; return them in the order of the shares, with the shares."""
    fair = queue.view.policy is PolicyName.FAIRSHARE
    partners = [candidate for candidate in queue.order if candidate.admitted]
    if fair:
        partners.sort(key=lambda candidate: candidate.age)
    demands = [_demand(candidate) for candidate in partners]
    unit = math.gcd(*(demand.size for demand in demands)) or 1
    total = pool.num_slots_of([queue.group], unit)
    if queue.budget is not None:
        total = min(total, queue.budget)
    shares = fill(demands, total) if fair else serve_in_order(demands, total)
    for candidate, deserved, tasks in zip(partners, shares.deserved, shares.tasks, strict=True):
        candidate.share = tasks
        candidate.in_ratio = deserved == shares.level * candidate.workload.priority
    return partners, shares


def _demand(candidate: Candidate) -> Demand:
    workload = candidate.workload
    if candidate.in_backoff:
        return Demand(workload.priority, candidate.size, min(candidate.minimum, candidate.num_held), candidate.num_held)
    return Demand(workload.priority, candidate.size, candidate.minimum, workload.max_tasks)


def _urgency(candidate: Candidate, number: int, shares: Shares | None, at: int) -> tuple[int, ...]:
    """Return who comes first for slots that nobody deserving can use (least first)."""
    if shares is None:
        return number, candidate.rank, 0
    return number, -shares.shortfall(at, candidate.size, candidate.target), candidate.age


def _deserved(queue: QueueState, pool: SlotPool) -> int:
    return min(queue.usable, pool.num_slots_of([queue.group])) if queue.deserved is None else queue.deserved


def _reasons(
    queues: Sequence[QueueState], order: Sequence[Candidate], pool: SlotPool, *, complete: bool
) -> dict[JobId, str]:
    competing = [queue for queue in queues if queue.deserved is not None]
    reasons: dict[JobId, str] = {}
    for queue in queues:
        others = [other for other in competing if other is not queue]
        reasons.update(explain(queue, others=others, everybody=order, pool=pool, complete=complete))
    return reasons


def _start(order: Sequence[Candidate], pool: SlotPool) -> dict[JobId, list[Placement]]:
    """Start what is reserved on idle slots: first those who have no tasks yet, with their minimum and all of it at
    once.

    Nobody starts tasks while others of its own leave, so that a change of its size is one change.
    """
    ready = [candidate for candidate in order if candidate.num_reserved and not candidate.leave]
    given_up = set(chain.from_iterable(candidate.workload.given_up for candidate in ready))
    starts = {}
    for candidate in ready:
        if not candidate.num_held and num_startable(pool, candidate) >= candidate.minimum:
            starts[candidate.workload.id] = start(pool, candidate, candidate.minimum, given_up)
    for candidate in ready:
        if candidate.num_held:
            starts[candidate.workload.id] = start(pool, candidate, candidate.num_reserved, given_up)
    return starts


def _grant(candidate: Candidate, start: Sequence[Placement]) -> Grant:
    target = max(candidate.target, candidate.minimum) if candidate.admitted else 0
    leave = tuple(task.id for task in candidate.leave)
    return Grant(workload_id=candidate.workload.id, num_tasks=target, leave=leave, start=tuple(start))


def _wake_at(order: Sequence[Candidate], policy: Policy, *, complete: bool) -> float | None:
    """Return when a back-off ends, or the cool-down of somebody who holds slots that others wait for."""
    instants = [c.workload.held_until for c in order if c.in_backoff and c.target < c.workload.max_tasks]
    if not complete:
        instants += [
            candidate.workload.resized_at + policy.cooldown_s
            for candidate in order
            if candidate.in_cooldown and candidate.excess > 0 and candidate.workload.resized_at is not None
        ]
    return min((at for at in instants if at is not None), default=None)
