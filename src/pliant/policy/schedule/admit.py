"""Pass 1: who gets its minimum, and on which nodes (`admit`).

Theory of operation
===================
A minimum is *guaranteed* by tasks that its workload has, as far as they go, and *reserved* for what is missing. Both
take from `grantable` (see `place`), so that no slot stands for two minimums. Surplus is no obstacle: `grantable` is
what minimums leave, whoever holds it now. Pass 2 reclaims it.

1. All workloads that have tasks count their minimums on these, before anybody is served: who is there need not move.
2. Every queue is served in its order (`queue_pass`). Who lacks a part of its minimum looks for places.
3. If there are none, guarantees behind it in its own queue are dropped, last first, until there are; afterwards those
   that were not in the way come back. Unless the policy may pause, only who lacks a part of its own minimum yields.
4. Who finds nothing is refused. What it holds guarantees nothing any more; all its tasks are told to leave.

Example: one queue with the policy `priority` on a node of 8 slots, in order

    c   priority 9000   minimum 2   has nothing
    a   priority 5000   minimum 4   has 4 tasks
    b   priority 5000   minimum 4   has 4 tasks

`grantable` is 8 - 4 - 4 = 0 and c lacks 2. The last, b, is preempted: 4 are grantable, c reserves 2 of them, and b gets
a guarantee back for the 2 that are left. a is whole. b lacks 2, nobody is behind it, and it is refused: all its tasks
are told to leave. c's reservations are on their slots. If c may use 3, it gets one slot more in pass 2.

Between queues
--------------
Where several queues want the same slots, each grants minimums only within what it is entitled to (`entitle`). A queue
that cannot use that, since the minimums of those who wait do not fit into it, hands it on (`_hand_on`).

Example: queues x and y of equal weight share 8 slots, so each is entitled to 4. In x, big has a minimum of 5; in y, one
can use 8. big is refused: 5 > 4. x can use nothing then, so y is entitled to all 8. If one can use only 3, y wants no
more than 3 from the start, x is entitled to 5, and big is admitted.

What is handed on may come too late. Of 3 slots, queue x is entitled to 1 and y to 2. x refuses urgent, whose minimum is
2, and grants small, behind it, its 1. Then y turns out to need only 1 and hands one slot on. x has 2: enough for
urgent, had small not been served. If small started now, the next decision would stop it. So all is decided anew, with x
entitled to 2 from the start (`_reconsider`).

Invariant: on every node, guaranteed and reserved slots together never exceed the node's. Knows nothing of shares.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pliant.core.job import JobId
from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.free_slots import FreeSlots
from pliant.policy.schedule.place import release, reserve_places
from pliant.policy.schedule.pool import SlotPool
from pliant.policy.schedule.queue import QueueState, assess
from pliant.policy.schedule.queue_pass import Kind, QueuePass, begin, has_room, reserve_minimum, serve

MAX_RECONSIDERED: Final = 4
"""A decision is begun anew so many times at most, however many queues there are."""


def admit(
    queues: Sequence[QueueState], pool: SlotPool, entitle: Callable[[], None], reconsidered: set[JobId]
) -> list[tuple[Candidate, int]] | None:
    """Grant minimums in order; return the reservations (workload, node) for which somebody's surplus has to go.

    Who is not admitted keeps nothing: all its tasks are told to leave.

    Return None if all is to be decided anew, within the budgets that the queues have by now: slots that another queue
    hands on would have been enough for a workload whose turn was before that of others who have them now.

    Args:
        queues: in the order in which they look for room.
        pool: nothing is decided on it yet.
        entitle: sets the budgets of the queues anew, from what they want.
        reconsidered: for whom all was decided anew before; who is next is added.
    """
    everybody = [candidate for queue in queues for candidate in queue.order]
    for candidate in everybody:
        _dismiss(candidate, pool, keep=candidate.workload.max_tasks)
    wanting = [candidate for candidate in everybody if candidate.workload.max_tasks > 0]
    holding = [candidate for candidate in wanting if candidate.num_held]
    _guarantee_held(holding, pool, wide=any(c.size > 1 for c in wanting if c.num_held < c.minimum))
    no_room: dict[Kind, int] = {}
    passes = [begin(queue, pool, no_room) for queue in queues]
    for queue in queues:
        assess(queue, pool.num_slots_of([queue.group]))
    entitle()
    for queue in queues:
        queue.deserved = queue.budget
        if queue.given is not None:
            queue.budget, queue.newcomers = queue.given
    for queue_pass in passes:
        serve(queue_pass)
    if len(passes) > 1 and not _hand_on(passes, entitle, reconsidered):
        return None
    for candidate in everybody:
        if not candidate.admitted:
            _dismiss(candidate, pool, keep=0)
        elif candidate.in_backoff:
            _lend(candidate, pool)
    return [reservation for queue_pass in passes for reservation in queue_pass.occupied]


def _dismiss(candidate: Candidate, pool: SlotPool, *, keep: int) -> None:
    if candidate.num_held <= keep:
        return
    for node in candidate.emptiest_nodes:
        while candidate.num_held > keep and node in candidate.held:
            release(pool, candidate, node)


def _guarantee_held(holding: Sequence[Candidate], pool: SlotPool, *, wide: bool) -> None:
    """Choose the held tasks that minimums count on: where a workload has most.

    If somebody who lacks places needs several slots on one node (`wide`), take crowded nodes first instead: what is
    grantable then lies together.
    """
    amounts = list(pool.grantable.amounts)
    limits = [None if limit is None else list(limit) for limit in pool.grantable.limits]
    for candidate in holding:
        left = candidate.minimum
        limit = limits[candidate.group]
        nodes = list(candidate.held)
        if len(nodes) > 1:
            nodes.sort(key=lambda node: (amounts[node] if wide else 0, -len(candidate.held[node]), node))
        for node in nodes:
            count = min(left, len(candidate.held[node]))
            candidate.guaranteed[node] = count
            amounts[node] -= count * candidate.size
            if limit is not None:
                limit[node] -= count * candidate.size
            left -= count
            if not left:
                break
    # Building the index anew is cheaper than to update it for thousands of tasks.
    pool.grantable = FreeSlots(amounts, limits)


def _hand_on(passes: Sequence[QueuePass], entitle: Callable[[], None], reconsidered: set[JobId]) -> bool:
    """Let queues have what others are entitled to and cannot use, until nobody who waits can use what is left.

    First every queue that cannot use its budget wants only what it can use, the last queue first. Then every queue with
    refused workloads is tried alone, as if all others wanted only what they can use. At last all are entitled to what
    they can use, for pass 2.

    Return False if somebody would have had its minimum out of that, had it been known in time.
    """

    def serve_again(served: Sequence[QueuePass]) -> bool:
        for queue_pass in passes:
            queue_pass.queue.floor = queue_pass.num_granted
        entitle()
        return all(_serve_refused(queue_pass, reconsidered) for queue_pass in served)

    queues = [queue_pass.queue for queue_pass in passes]
    while stuck := [queue for queue in queues if _cannot_use(queue)]:
        stuck[-1].wanted = stuck[-1].usable
        if not serve_again(passes):
            return False
    for queue_pass in passes:
        if not queue_pass.queue.refused:
            continue
        for queue in queues:
            queue.wanted = queue.usable
        queue_pass.queue.wanted = queue_pass.queue.demand
        if not serve_again([queue_pass]):
            return False
    for queue in queues:
        queue.wanted = queue.usable
    return serve_again(())


def _cannot_use(queue: QueueState) -> bool:
    usable = queue.usable
    return queue.wanted > usable and (queue.budget is None or usable < queue.budget)


def _serve_refused(queue_pass: QueuePass, reconsidered: set[JobId]) -> bool:
    """Grant minimums that fit by now; return False if one would, but for those that were served after it."""
    waiting = set(queue_pass.queue.refused)
    ahead = 0
    for candidate in queue_pass.queue.order:
        slots = candidate.minimum * candidate.size
        if candidate in waiting and not queue_pass.can_afford(candidate):
            if ahead + slots <= queue_pass.limit(candidate) and _reconsider(candidate, reconsidered):
                return False
        elif candidate in waiting and has_room(queue_pass.pool, candidate):
            reserve_minimum(queue_pass, candidate)
        ahead += slots if candidate.admitted else 0
    queue_pass.queue.refused = [candidate for candidate in queue_pass.queue.refused if not candidate.admitted]
    return True


def _reconsider(candidate: Candidate, reconsidered: set[JobId]) -> bool:
    """Note that all is decided anew for a workload, once for each and not too often; tell whether it is."""
    if candidate.workload.id in reconsidered or len(reconsidered) >= MAX_RECONSIDERED:
        return False
    reconsidered.add(candidate.workload.id)
    return True


def _lend(candidate: Candidate, pool: SlotPool) -> None:
    """Give the reservations of a workload in back-off up, to surplus only.

    `grantable` stays taken: a surplus can be reclaimed when the back-off ends, another minimum there could not.
    """
    for node, num in candidate.reservations.items():
        pool.future_idle.add(candidate.group, node, num * candidate.size)
    candidate.lent = tuple(node for node, num in candidate.reservations.items() for _ in range(num))
    candidate.reservations = {}
    candidate.awaited_nodes = set()
    candidate.num_reserved = 0


def admit_to_idle(queues: Sequence[QueueState], pool: SlotPool) -> None:
    """Grant minimums on slots that would stay idle: nothing is under way, nobody grows, and still they are free.

    Where nodes lie so that a queue cannot have what it is entitled to, others may have it beyond what they are.
    """
    everybody = [candidate for queue in queues for candidate in queue.order]
    waits = any(c.in_backoff and c.target < c.workload.max_tasks for c in everybody)
    under_way = any(candidate.leave or candidate.reservations for candidate in everybody)
    if waits or under_way or pool.idle.amounts != pool.future_idle.amounts:
        return
    for queue in queues:
        for candidate in queue.refused:
            num = candidate.minimum
            if pool.idle.of(candidate.group).num_places(candidate.size, num, candidate.excluded_nodes) >= num:
                candidate.admitted, candidate.share = True, num
                reserve_places(pool, candidate, pool.idle, num)
