"""The scheduler: `plan` decides who gets how many slots, and where, and says why. A pure function.

0. Queues that share no node are decided on alone (`pool`). 1. Pass 1 (`admit`) grants minimums in the policies' order,
each queue within what it is entitled to (`entitle`). 2. Pass 2 shares what there is (`share`) and finds places for it
(`grow`). 3. What is claimed on free slots starts now; the rest starts in later plans, as slots free up.

Laws: a slot is started on only if no process holds it, and once at most. A workload's target is 0 or within its bounds.
A grant either starts tasks or tells tasks to leave. No workload is given more slots of a node than its queue's group
has. Nobody takes a task of a queue without preemption. The same snapshot in any order gives the same plan, and applying
plans to unchanged demand comes to rest.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from pliant.core.job import JobId
from pliant.core.plan import Grant, Placement, Plan, Policy, PolicyName, Snapshot
from pliant.policy.schedule.admit import admit, admit_to_idle
from pliant.policy.schedule.entitle import entitle
from pliant.policy.schedule.grow import Givers, grow, settle_minimums, use_up
from pliant.policy.schedule.line import Line
from pliant.policy.schedule.order import age, natural, precedence
from pliant.policy.schedule.place import Board, Stake, lay_out
from pliant.policy.schedule.pool import parts
from pliant.policy.schedule.reason import Outcome, Rival, explain
from pliant.policy.schedule.share import Demand, Shares, fill, queue


def plan(snapshot: Snapshot, policy: Policy, now: float) -> Plan:
    """Return what every workload of the snapshot shall have, with a sentence that says why.

    Args:
        snapshot: what there is. Without queues all workloads share all slots by the policy's name.
        policy: its name, if there are no queues, and the cool-down of all.
        now: seconds, as all instants of the snapshot.
    """
    if not snapshot.workloads:
        return Plan(grants={}, reasons={})
    made = [_decide(part, policy, now) for part in parts(snapshot, policy)]
    return made[0] if len(made) == 1 else _together(made)


def _together(plans: Sequence[Plan]) -> Plan:
    return Plan(
        grants={job_id: grant for plan in plans for job_id, grant in plan.grants.items()},
        reasons={job_id: reason for plan in plans for job_id, reason in plan.reasons.items()},
        wake_at=min((plan.wake_at for plan in plans if plan.wake_at is not None), default=None),
        deserved={name: num for plan in plans for name, num in plan.deserved.items()},
    )


def _decide(part: Snapshot, policy: Policy, now: float) -> Plan:
    """Decide for queues that share nodes with each other and with nobody else."""
    board, lines, order, borrowed = _admit(part, policy, now)
    urgency: dict[int, tuple[int, Shares | None, int]] = {}
    for number, line in enumerate(lines):
        partners, shares = _share(line, board)
        fair = shares if line.queue.policy is PolicyName.FAIRSHARE else None
        urgency.update((stake.rank, (number, fair, i)) for i, stake in enumerate(partners))
    givers = Givers(board, order)
    settle_minimums(board, order, givers, borrowed)
    complete = grow(board, order, givers)
    use_up(board, order, lambda stake: _urgency(stake, *urgency[stake.rank]))
    admit_to_idle(lines, board)
    starts = _start(order, board)
    return Plan(
        grants={stake.view.id: _grant(stake, starts.get(stake.view.id, ())) for stake in order},
        reasons=_reasons(lines, order, board, complete=complete),
        wake_at=_wake_at(order, policy, complete=complete),
        deserved={line.queue.name: _deserved(line, board) for line in lines},
    )


class _Admitted(NamedTuple):
    board: Board
    lines: Sequence[Line]
    order: Sequence[Stake]
    borrowed: Sequence[tuple[Stake, int]]


def _admit(part: Snapshot, policy: Policy, now: float) -> _Admitted:
    """Lay out the board and grant minimums on it."""
    given: dict[str, tuple[int | None, int | None]] = {}
    reconsidered: set[JobId] = set()
    while True:
        board, stakes = lay_out(part)
        lines = _line_up(part, stakes, policy, now)
        order = [stake for line in lines for stake in line.order]
        for rank, stake in enumerate(order):
            stake.rank = rank
        for line in lines:
            line.given = given.get(line.queue.name)
        borrowed = admit(lines, board, partial(_entitle, lines, board), reconsidered)
        if borrowed is not None:
            return _Admitted(board=board, lines=lines, order=order, borrowed=borrowed)
        given = {line.queue.name: (line.budget, line.newcomers) for line in lines}


def _line_up(part: Snapshot, stakes: list[Stake], policy: Policy, now: float) -> list[Line]:
    """Return the queues, each with its stakes in its policy's order, with age and what time says about them filled in.

    Queues of more weight come first; that matters only where the nodes have no places for what all are entitled to.
    """
    stakes.sort(key=lambda stake: age(stake.view))
    by_queue: dict[str, list[Stake]] = {}
    for number, stake in enumerate(stakes):
        view = stake.view
        stake.age = number
        stake.backs_off = view.held_until is not None and now < view.held_until
        stake.cools_down = view.resized_at is not None and now < view.resized_at + policy.cooldown_s
        if stake.keeps:
            stake.low = max(view.min_tasks, min(stake.num_held, view.max_tasks))
        by_queue.setdefault(view.queue, []).append(stake)
    lines = []
    for queue_view in sorted(part.queues, key=lambda queue: (-queue.weight, natural(queue.name))):
        own = by_queue[queue_view.name]
        own.sort(key=_precedence)
        lines.append(Line(queue=queue_view, area=own[0].area, order=own))
    return lines


def _precedence(stake: Stake) -> tuple[int, int]:
    if stake.keeps and stake.num_held:
        return -1, -stake.view.priority
    return precedence(stake.queue.policy, stake.view, stake.num_held)


def _entitle(lines: Sequence[Line], board: Board) -> None:
    """Set what every queue is entitled to, if more than one wants slots."""
    wanting = sorted((line for line in lines if line.demand), key=lambda line: natural(line.queue.name))
    if len(wanting) < 2:
        return
    claimants = [line.claimant() for line in wanting]
    for i, slots in enumerate(entitle(claimants, board.num_slots_of)):
        line = wanting[i]
        line.budget = line.newcomers = slots
        if line.may_pause and slots == line.floor:
            others = (*claimants[:i], claimants[i]._replace(low=0), *claimants[i + 1 :])
            line.newcomers = entitle(others, board.num_slots_of)[i]


def _share(line: Line, board: Board) -> tuple[list[Stake], Shares]:
    """Set the share of every admitted workload of a queue; return them in the order of the shares, with the shares."""
    fair = line.queue.policy is PolicyName.FAIRSHARE
    partners = [stake for stake in line.order if stake.admitted]
    if fair:
        partners.sort(key=lambda stake: stake.age)
    demands = [_demand(stake) for stake in partners]
    unit = math.gcd(*(demand.size for demand in demands)) or 1
    total = board.num_slots_of([line.area], unit)
    if line.budget is not None:
        total = min(total, line.budget)
    shares = fill(demands, total) if fair else queue(demands, total)
    for stake, deserved, tasks in zip(partners, shares.deserved, shares.tasks, strict=True):
        stake.share = tasks
        stake.free_share = deserved == shares.level * stake.view.priority
    return partners, shares


def _demand(stake: Stake) -> Demand:
    view = stake.view
    if stake.backs_off:
        return Demand(view.priority, stake.size, min(stake.low, stake.num_held), stake.num_held)
    return Demand(view.priority, stake.size, stake.low, view.max_tasks)


def _urgency(stake: Stake, number: int, shares: Shares | None, at: int) -> tuple[int, ...]:
    """Return who comes first for slots that nobody deserving can use (least first)."""
    if shares is None:
        return number, stake.rank, 0
    return number, -shares.shortfall(at, stake.size, stake.target), stake.age


def _deserved(line: Line, board: Board) -> int:
    return min(line.usable, board.num_slots_of([line.area])) if line.deserved is None else line.deserved


def _reasons(lines: Sequence[Line], order: Sequence[Stake], board: Board, *, complete: bool) -> dict[JobId, str]:
    rivals = [
        Rival(name=line.queue.name, weight=line.queue.weight, deserved=line.deserved)
        for line in lines
        if line.deserved is not None
    ]
    reasons: dict[JobId, str] = {}
    for line in lines:
        outcome = Outcome(
            queue=line.queue,
            num_slots=board.num_slots_of([line.area]),
            order=line.order,
            everybody=order,
            node_ids=board.ids,
            complete=complete,
            deserved=line.deserved,
            rivals=[rival for rival in rivals if rival.name != line.queue.name],
        )
        reasons.update(explain(outcome))
    return reasons


def _start(order: Sequence[Stake], board: Board) -> dict[JobId, list[Placement]]:
    """Put claims on free slots: first those who have no tasks yet, with their minimum and all of it at once."""
    ready = [stake for stake in order if stake.num_claimed and not stake.leave]
    starts = {}
    for stake in ready:
        if not stake.num_held and board.startable(stake) >= stake.low:
            starts[stake.view.id] = board.place(stake, stake.low)
    for stake in ready:
        if stake.num_held:
            starts[stake.view.id] = board.place(stake, stake.num_claimed)
    return starts


def _grant(stake: Stake, start: Sequence[Placement]) -> Grant:
    target = max(stake.target, stake.low) if stake.admitted else 0
    leave = tuple(task.id for task in stake.leave)
    return Grant(workload_id=stake.view.id, num_tasks=target, leave=leave, start=tuple(start))


def _wake_at(order: Sequence[Stake], policy: Policy, *, complete: bool) -> float | None:
    """Return when a back-off ends, or the cool-down of somebody who holds slots that others wait for."""
    instants = [stake.view.held_until for stake in order if stake.backs_off and stake.target < stake.view.max_tasks]
    if not complete:
        instants += [
            stake.view.resized_at + policy.cooldown_s
            for stake in order
            if stake.cools_down and stake.excess > 0 and stake.view.resized_at is not None
        ]
    return min((at for at in instants if at is not None), default=None)
