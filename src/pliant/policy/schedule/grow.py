"""Pass 2, on the nodes: what pass 1 granted finds its slots, and workloads grow to their shares.

Theory of operation
===================
Who holds more than its share has *excess*, and is a possible victim. Nothing is reclaimed unless somebody takes its
place: a task is told to leave only when its slots complete a place for a workload that is below its share, or lacks its
minimum. So every decision brings somebody nearer to its share and moves nobody who is at or below it away from it,
except for minimums: two workloads cannot trade slots in turn.

1. `settle_minimums`. A minimum may have been reserved on a node where somebody's surplus stands (`future_idle` is
   negative there). It moves to where slots are being vacated anyhow, to where excess can be reclaimed, or to a place
   that somebody in back-off has lent. If there is no such place, surplus is taken where it stands, though its owner may
   be below its share: minimums come first.
2. `grow`. Who is below its share takes idle slots, then slots being vacated, then the excess of victims.
3. `use_up`. What nobody deserving can use goes to whoever can, one task at a time.

Example: a has 8 tasks on a node of 8 slots, and b, with an equal priority and a minimum of 1, arrives. Pass 1 counts
a's minimum on one task and reserves one of the 7 other slots for b: `future_idle` is -1. Both shares are 4.

    settle_minimums   a's excess is 4; one task of it is released for b's minimum          a 7   b 1
    grow              b is 3 below its share; three more are released                      a 4   b 4
    use_up            nothing is left

a's grant says that 4 tasks leave. b's target is 4, but it starts nothing now: every slot is still held by a process. In
the first 2 seconds after a change of a's size (the cool-down) only the first line would happen.

Example of a lent place: 10 slots. a may have 3 to 4 tasks and has 4; others have 2; c had 2, its minimum, and lost one.
3 slots are idle, and since c is in back-off, the one that is kept for it is lent. d arrives with a minimum of 3. It may
have 2 of the idle slots, and its third place is where a's surplus stands. a has no excess: its share is 4. If a had to
leave there, the lent slot would stay idle, for a does not grow in the decision that makes it leave. So the places are
exchanged: d starts on the lent slot too, and what is kept for c is a's surplus, to be reclaimed after the back-off.

Knows nothing of how shares come about.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush

from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.place import cancel, has_left, release, reserve, reserve_places
from pliant.policy.schedule.pool import SlotPool

Reclaimable = Callable[[Candidate, int], int]
"""How many tasks of a workload on a node can be reclaimed."""


class Victims:
    """Workloads that hold more than their share, in the order in which tasks are reclaimed from them.

    Those whose cool-down is over come first, then those last in the policy's order.
    """

    def __init__(self, pool: SlotPool, order: Sequence[Candidate]) -> None:
        self._pool = pool
        found = sorted((c for c in order if c.excess > 0 and c.admitted), key=lambda c: (c.in_cooldown, -c.rank))
        self._paths = deque((victim, victim.emptiest_nodes) for victim in found)
        self._on_node = _by_node(found)

    def reclaim(self, taker: Candidate, *, for_minimum: bool) -> int | None:
        """Make a place for a task of `taker` free in time, out of excess alone; return the node, or None.

        For a minimum cool-downs do not count, and the place must not be one that another minimum counts on.
        """
        while self._paths and self._paths[0][0].excess <= 0:
            self._paths.popleft()
        num = _num_excess_for_minimum if for_minimum else _num_excess
        grantable = self._pool.grantable.of(taker.group).amounts if for_minimum else None
        for victim, path in self._paths:
            if victim.in_cooldown and not for_minimum:
                return None
            while path and path[0] not in victim.held:
                path.pop(0)
            if victim.excess <= 0:
                continue
            for node in path:
                if grantable is not None and grantable[node] < taker.size:
                    continue
                if node in victim.held and node not in taker.excluded_nodes and self._suffices(node, taker, num):
                    _release(self._pool, (victim, *self._on_node[node]), node, taker, taker.size, num)
                    return node
        return None

    def _suffices(self, node: int, taker: Candidate, num: Reclaimable) -> bool:
        """Tell whether all that can be reclaimed on a node, with what is vacated there, makes a place."""
        size = taker.size
        slots = self._pool.future_idle.amounts[node]
        limit = self._pool.future_idle.limits[taker.group]
        own = size if limit is None else limit[node]
        for victim in self._on_node[node]:
            if slots >= size and own >= size:
                break
            given = max(0, num(victim, node)) * victim.size
            slots += given
            own += given * (victim.group == taker.group)
        return slots >= size and own >= size


def _by_node(candidates: Iterable[Candidate]) -> dict[int, list[Candidate]]:
    """Return who has tasks on each node, in the order given."""
    on_node: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        for node in candidate.held:
            on_node.setdefault(node, []).append(candidate)
    return on_node


def _num_excess(victim: Candidate, node: int) -> int:
    return 0 if victim.in_cooldown else min(victim.excess, len(victim.held.get(node, ())))


def _num_excess_for_minimum(victim: Candidate, node: int) -> int:
    return min(victim.excess, _num_surplus(victim, node))


def _num_surplus(candidate: Candidate, node: int) -> int:
    """Return how many tasks on a node no minimum counts on."""
    return len(candidate.held.get(node, ())) - candidate.guaranteed.get(node, 0)


def _release(
    pool: SlotPool, victims: Sequence[Candidate], node: int, taker: Candidate, least: int, num: Reclaimable
) -> None:
    """Release tasks on a node, of each victim as many as can be reclaimed, until `least` slots fall idle for `taker`.

    First those of the taker's own group, as far as it is the group's limit that is in the way.
    """
    free, group = pool.future_idle, taker.group
    for victim in victims:
        if victim.group == group:
            while not has_left(free, group, node, least) and num(victim, node) > 0:
                release(pool, victim, node)
    for victim in victims:
        while free.amounts[node] < least and num(victim, node) > 0:
            release(pool, victim, node)


def settle_minimums(
    pool: SlotPool, order: Sequence[Candidate], victims: Victims, occupied: Iterable[tuple[Candidate, int]]
) -> None:
    """Find for every occupied place slots that are somebody's excess; failing that, take surplus where it stands."""
    holders: dict[int, list[Candidate]] = {}
    lenders = [candidate for candidate in order if candidate.lent]
    for candidate, node in occupied:
        if pool.future_idle.of(candidate.group).amounts[node] >= 0:
            continue
        cancel(pool, candidate, node)
        better = _find_vacated(pool, candidate)
        if better is None:
            better = victims.reclaim(candidate, for_minimum=True)
        if better is None:
            better = _exchange_lent(pool, candidate, node, lenders)
        reserve(pool, candidate, node if better is None else better, 1)
        if better is None:
            holders = holders or _by_node(reversed(order))
            _release(pool, holders[node], node, candidate, 0, _num_surplus)
    for candidate in order:
        _cancel_needless(pool, candidate)


def _find_vacated(pool: SlotPool, candidate: Candidate) -> int | None:
    """Return a node with a place that somebody leaves anyhow and no other minimum counts on."""
    group, size = candidate.group, candidate.size
    node = pool.future_idle.of(group).best(size, size, candidate.excluded_nodes)
    return node if node is not None and pool.grantable.of(group).amounts[node] >= size else None


def _exchange_lent(pool: SlotPool, candidate: Candidate, node: int, lenders: Sequence[Candidate]) -> int | None:
    """Find a place that is lent and that nobody uses; what is kept there for its lender is kept on `node` from now on.

    Return the node of that place, or None.
    """
    future_idle, grantable = pool.future_idle.of(candidate.group), pool.grantable.of(candidate.group)
    for lender in lenders:
        if node in lender.excluded_nodes or pool.grantable.of(lender.group).amounts[node] < lender.size:
            continue
        for i, lent in enumerate(lender.lent):
            if lent == node or lent in candidate.excluded_nodes or future_idle.amounts[lent] < candidate.size:
                continue
            pool.grantable.add(lender.group, lent, lender.size)
            if grantable.amounts[lent] >= candidate.size:
                pool.grantable.add(lender.group, node, -lender.size)
                lender.lent = (*lender.lent[:i], node, *lender.lent[i + 1 :])
                return lent
            pool.grantable.add(lender.group, lent, -lender.size)
    return None


def _cancel_needless(pool: SlotPool, candidate: Candidate) -> None:
    """Cancel reservations of a workload that was to move for others' minimums and in the end need not."""
    for node in list(candidate.reservations):
        while node in candidate.reservations and candidate.target > candidate.share:
            cancel(pool, candidate, node)


def grow(pool: SlotPool, order: Sequence[Candidate], victims: Victims) -> bool:
    """Bring workloads up to their shares, large tasks first since they are hardest to place; tell if all got there."""
    complete = True
    hopeless: set[tuple[int, int]] = set()
    growing = [candidate for candidate in order if candidate.can_grow and candidate.target < candidate.share]
    for candidate in sorted(growing, key=lambda candidate: -candidate.size):
        missing = candidate.share - candidate.target
        missing -= reserve_places(pool, candidate, pool.idle, missing)
        missing -= reserve_places(pool, candidate, pool.future_idle, missing)
        while missing and (candidate.group, candidate.size) not in hopeless:
            node = victims.reclaim(candidate, for_minimum=False)
            if node is None:
                if not candidate.excluded_nodes:
                    hopeless.add((candidate.group, candidate.size))
                break
            reserve(pool, candidate, node, 1)
            missing -= 1
        complete = complete and not missing
    return complete


def use_up(pool: SlotPool, order: Sequence[Candidate], urgency: Callable[[Candidate], tuple[int, ...]]) -> None:
    """Give slots that nobody deserving can use to whoever can, least urgency first, one task at a time."""
    largest = max(pool.future_idle.amounts, default=0)
    if largest <= 0:
        return
    growing = [c for c in order if c.can_grow and c.target < c.workload.max_tasks]
    heap = [(urgency(candidate), candidate.rank) for candidate in growing]
    heapify(heap)
    while heap and largest > 0:
        candidate = order[heappop(heap)[1]]
        if candidate.size > largest:
            continue
        if reserve_places(pool, candidate, pool.idle, 1) or reserve_places(pool, candidate, pool.future_idle, 1):
            if candidate.target < candidate.workload.max_tasks:
                heappush(heap, (urgency(candidate), candidate.rank))
        else:
            largest = max(pool.future_idle.amounts)
