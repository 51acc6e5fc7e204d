"""Places for tasks: on which node a task shall start, and which slots it waits for.

Theory of operation
===================
Three amounts of slots are kept for every node; admission and growth search them and change them together:

    idle         no process holds them and no reservation has taken them: a task can start there now
    future_idle  left when all who leave are gone and all reservations are served: what will be idle
    grantable    left beside minimums and reservations: what further minimums can be granted on

What is beyond minimums is surplus: it lies between `grantable` and `future_idle`, and can be reclaimed. Of each amount
a resource group can have no more than its own limit leaves (`FreeSlots`).

A *reservation* is a task that shall start on a node, now or once others have left it. It takes from all three amounts
(from `idle` only what is there). It may be made on slots that somebody's surplus still holds: `future_idle` is then
negative until the surplus is reclaimed, and that is how one knows how much has to be.

Example: two nodes of 4 slots, tasks of 1 slot. A (minimum 1) has 3 tasks on the first node, and B, which wants 2 to 4,
has a fourth there that is leaving. Once A's minimum is counted, B reserves 2 places for its minimum:

                                    idle     future_idle   grantable
    at first                        0  4        1  4          4  4
    A's minimum counts on a task    0  4        1  4          3  4
    B's minimum where it is free    0  2        1  2          3  2      both on the second node
    B's minimum, had that not been  0  4       -1  4          1  4      both on the first: 1 is to be reclaimed from A

Nodes are chosen to keep large gaps whole: first where the workload is already, then the node that just covers what it
needs, then the one with most. Once a workload is somewhere, nodes of the same rack come before others, and then those
of the same zone, as labels say. Excess is released where a workload has fewest tasks, the newest first.

Knows no policy, priority or time.
"""

from collections.abc import Sequence, Set

from pliant.core.job import NodeId
from pliant.core.plan import Placement
from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.free_slots import FreeSlots, NodeIndex
from pliant.policy.schedule.order import age
from pliant.policy.schedule.pool import SlotPool

GivenUp = tuple[NodeId, int]
"""A slot that somebody was told to leave."""


def reserve(pool: SlotPool, candidate: Candidate, node: int, num: int) -> None:
    """Set slots aside for tasks that shall start on a node."""
    slots = num * candidate.size
    idle = pool.idle.of(candidate.group).amounts[node]
    if idle < slots:
        candidate.awaited_nodes.add(node)
    pool.idle.add(candidate.group, node, -max(0, min(idle, slots)))
    pool.future_idle.add(candidate.group, node, -slots)
    pool.grantable.add(candidate.group, node, -slots)
    candidate.reservations[node] = candidate.reservations.get(node, 0) + num
    candidate.num_reserved += num


def cancel(pool: SlotPool, candidate: Candidate, node: int) -> None:
    """Take one reservation back.

    What it took from `idle` stays taken, since it is not known how much that was. At worst somebody starts one decision
    later.
    """
    pool.future_idle.add(candidate.group, node, candidate.size)
    pool.grantable.add(candidate.group, node, candidate.size)
    candidate.num_reserved -= 1
    candidate.reservations[node] -= 1
    if not candidate.reservations[node]:
        del candidate.reservations[node]
        candidate.awaited_nodes.discard(node)


def reserve_places(pool: SlotPool, candidate: Candidate, free: FreeSlots, num: int) -> int:
    """Reserve up to `num` places in one of the pool's amounts; return how many were found."""
    index = free.of(candidate.group)
    left = num
    while left and (node := _choose(pool, candidate, index, left)) is not None:
        count = min(left, index.amounts[node] // candidate.size)
        reserve(pool, candidate, node, count)
        left -= count
    return num - left


def _choose(pool: SlotPool, candidate: Candidate, index: NodeIndex, num: int) -> int | None:
    """Return the node for the next tasks: where most of the workload's own are, else near those, on as few as can."""
    size, amounts, excluded = candidate.size, index.amounts, candidate.excluded_nodes
    if candidate.held or candidate.reservations:
        own = {node: len(tasks) for node, tasks in candidate.held.items()}
        for node, count in candidate.reservations.items():
            own[node] = own.get(node, 0) + count
        fitting = [(-count, node) for node, count in own.items() if amounts[node] >= size and node not in excluded]
        if fitting:
            return min(fitting)[1]
        most = min((-count, node) for node, count in own.items())[1]
        for neighbours in pool.neighbours_of(most):
            if (near := index.best_of(neighbours, num * size, size, excluded)) is not None:
                return near
    return index.best(num * size, size, excluded)


def release(pool: SlotPool, candidate: Candidate, node: int) -> None:
    """Tell the newest task of a workload on a node to leave."""
    tasks = candidate.held[node]
    candidate.leave.append(tasks.pop())
    if not tasks:
        del candidate.held[node]
    candidate.num_held -= 1
    candidate.has_released = True
    pool.future_idle.add(candidate.group, node, candidate.size)


def release_over_limit(pool: SlotPool, candidates: Sequence[Candidate]) -> None:
    """Tell tasks to leave that hold more of a node than their group has there: of those above their minimum first.

    Of these the youngest workload's newest task goes first. Protected and pinned workloads keep what they hold.
    """
    if not any(pool.future_idle.limits):
        return
    last_first = sorted(candidates, key=lambda candidate: age(candidate.workload), reverse=True)
    for minimums_too in (False, True):
        for candidate in last_first:
            if candidate.is_protected or candidate.workload.pinned:
                continue
            for node in list(candidate.held):
                while (
                    node in candidate.held
                    and not has_left(pool.future_idle, candidate.group, node, 0)
                    and (minimums_too or candidate.num_held > candidate.workload.min_tasks)
                ):
                    release(pool, candidate, node)


def has_left(free: FreeSlots, group: int, node: int, least: int) -> bool:
    """Tell whether the limit of a group leaves at least so many slots of a node."""
    limit = free.limits[group]
    return limit is None or limit[node] >= least


def num_startable(pool: SlotPool, candidate: Candidate) -> int:
    """Return how many reservations of a workload could start now."""
    return sum(min(num, _num_unused(pool, candidate, node)) for node, num in candidate.reservations.items())


def start(pool: SlotPool, candidate: Candidate, num: int, given_up: Set[GivenUp]) -> list[Placement]:
    """Hand out unused slots to up to `num` of a workload's reservations.

    It has those first that it gave up itself, the newest first, then those with the lowest numbers; last those that
    others who start now gave up: `given_up` are all of them.
    """
    placed: list[Placement] = []
    size = candidate.size
    limit = pool.startable[candidate.group]
    for node, reserved in candidate.reservations.items():
        unused = pool.unused[node]
        if given_up:
            _put_last(unused, pool.node_ids[node], candidate.workload.given_up, given_up)
        for _ in range(min(reserved, _num_unused(pool, candidate, node), num - len(placed))):
            slots = tuple(unused[: -size - 1 : -1])
            del unused[-size:]
            if limit is not None:
                limit[node] -= size
            placed.append(Placement(node_id=pool.node_ids[node], slots=slots))
    return placed


def _put_last(unused: list[int], node_id: NodeId, own: Sequence[GivenUp], given_up: Set[GivenUp]) -> None:
    """Sort the unused slots of a node so that those that a workload is to have stand at the end."""
    newest = {slot: at for at, (node, slot) in enumerate(own) if node == node_id}
    unused.sort(key=lambda slot: (newest.get(slot, -1), (node_id, slot) not in given_up, -slot))


def _num_unused(pool: SlotPool, candidate: Candidate, node: int) -> int:
    """Return how many tasks of a workload fit on the slots of a node that no process holds."""
    limit = pool.startable[candidate.group]
    num = len(pool.unused[node])
    return (num if limit is None else max(0, min(num, limit[node]))) // candidate.size
