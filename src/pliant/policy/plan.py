"""The scheduler: `plan` decides who gets how many slots, and where, and says why. A pure function.

1. Pass 1 (`admit`) grants minimums in the policy's order. 2. Pass 2 shares what there is (`share`) and finds places for
it (`grow`). 3. What is claimed on free slots starts now; the rest starts in later plans, as slots free up.

Laws: a slot is started on only if no process holds it, and once at most. A workload's target is 0 or within its bounds.
A grant either starts tasks or tells tasks to leave. The same snapshot in any order gives the same plan, and applying
plans to unchanged demand comes to rest.
"""

import math
from collections.abc import Sequence

from pliant.core.job import JobId
from pliant.core.plan import Grant, Placement, Plan, Policy, PolicyName, Snapshot, WorkloadView
from pliant.policy.admit import admit
from pliant.policy.grow import Givers, grow, settle_minimums, use_up
from pliant.policy.order import age, precedence
from pliant.policy.place import Board, Stake, lay_out
from pliant.policy.reason import Outcome, explain
from pliant.policy.share import Demand, Shares, fill, queue


def plan(snapshot: Snapshot, policy: Policy, now: float) -> Plan:
    """Return what every workload of the snapshot shall have, with a sentence that says why."""
    board, stakes = lay_out(snapshot)
    order = _line_up(stakes, policy, now)
    borrowed = admit(order, board, may_pause=policy.name is not PolicyName.FAIRSHARE)
    partners, shares = _share(order, board, policy.name)
    givers = Givers(board, order)
    settle_minimums(board, order, givers, borrowed)
    complete = grow(board, order, givers)
    if policy.name is PolicyName.FAIRSHARE:
        at = {stake.rank: i for i, stake in enumerate(partners)}
        use_up(board, order, lambda s: (-shares.shortfall(at[s.rank], s.size, s.target), s.age))
    else:
        use_up(board, order, lambda s: (s.rank, 0))
    starts = _start(order, board)
    outcome = Outcome(policy=policy.name, num_slots=board.num_slots, order=order, node_ids=board.ids, complete=complete)
    return Plan(
        grants={stake.view.id: _grant(stake, starts.get(stake.view.id, ())) for stake in order},
        reasons=explain(outcome),
        wake_at=_wake_at(order, policy, complete=complete),
    )


def _line_up(stakes: list[Stake], policy: Policy, now: float) -> list[Stake]:
    """Return the stakes in the policy's order, with rank, age and what time says about them filled in."""
    stakes.sort(key=lambda stake: age(stake.view))
    for number, stake in enumerate(stakes):
        view = stake.view
        stake.age = number
        stake.backs_off = view.held_until is not None and now < view.held_until
        stake.cools_down = view.resized_at is not None and now < view.resized_at + policy.cooldown_s
    order = sorted(stakes, key=lambda stake: precedence(policy.name, stake.view, stake.num_held))
    for number, stake in enumerate(order):
        stake.rank = number
    return order


def _share(order: Sequence[Stake], board: Board, policy: PolicyName) -> tuple[list[Stake], Shares]:
    """Set the share of every admitted workload; return them in the order of the shares, with the shares."""
    partners = [stake for stake in order if stake.admitted]
    if policy is PolicyName.FAIRSHARE:
        partners.sort(key=lambda stake: stake.age)
    demands = [_demand(stake) for stake in partners]
    unit = math.gcd(*(demand.size for demand in demands)) or 1
    total = sum(size // unit * unit for size in board.sizes)
    shares = fill(demands, total) if policy is PolicyName.FAIRSHARE else queue(demands, total)
    for stake, deserved, tasks in zip(partners, shares.deserved, shares.tasks, strict=True):
        stake.share = tasks
        stake.free_share = deserved == shares.level * stake.view.priority
    return partners, shares


def _demand(stake: Stake) -> Demand:
    view: WorkloadView = stake.view
    if stake.backs_off:
        return Demand(view.priority, stake.size, min(view.min_tasks, stake.num_held), stake.num_held)
    return Demand(view.priority, stake.size, view.min_tasks, view.max_tasks)


def _start(order: Sequence[Stake], board: Board) -> dict[JobId, list[Placement]]:
    """Put claims on free slots: first those who have no tasks yet, with their minimum and all of it at once."""
    ready = [stake for stake in order if stake.num_claimed and not stake.leave]
    starts = {}
    for stake in ready:
        if not stake.num_held and board.startable(stake) >= stake.view.min_tasks:
            starts[stake.view.id] = board.place(stake, stake.view.min_tasks)
    for stake in ready:
        if stake.num_held:
            starts[stake.view.id] = board.place(stake, stake.num_claimed)
    return starts


def _grant(stake: Stake, start: Sequence[Placement]) -> Grant:
    target = max(stake.target, stake.view.min_tasks) if stake.admitted else 0
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
