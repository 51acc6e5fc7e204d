"""How many slots each queue is entitled to where resource groups overlap: weighted max-min fairness. Pure numbers.

One level is raised for all queues; a queue gets level x weight slots, never less than its floor nor more than it wants.
Where the groups of some queues have no slots left between them, these queues stop and the level rises for the others
(any set of groups has no more than its slots together; the set that fills up first comes first).
Whole slots come from the largest remainder. Rounding up may give some of the groups that fill up together a slot more
than these have: then they stop first, at what they have. Knows no nodes, no workloads and no time.

Example: two nodes of 4 slots. Queue wide (weight 1) may use both, queue narrow (weight 3) the second only; both want
more than there is. Taken together they have 8 slots, which are used up at level 2: wide 2, narrow 6. But the group of
narrow alone has 4 slots, which are used up at level 4/3 already. That is lower, so narrow stops at 4. The level rises
for wide until the rest, 8 - 4, is used up: wide 4.

Invariants: floor <= slots <= high, if the floors fit; no queue could have one more without another at or below its
level having one less. But for rounding, what a queue is entitled to never falls because another wants less.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from pliant.policy.schedule.share import Demand, Shares, fill

MAX_GROUPS: Final = 8
"""Of more groups that overlap only single ones and all together are looked at."""


class QueueDemand(NamedTuple):
    """What one queue asks for, in slots."""

    weight: int
    low: int
    """Its floor: what it has for certain."""
    high: int
    group: int
    """Its resource group."""


def entitle(demands: Sequence[QueueDemand], capacity: Callable[[frozenset[int]], int]) -> list[int]:
    """Return the slots of each queue; the order of the demands settles ties.

    Args:
        demands: in an order that does not depend on who holds what.
        capacity: how many slots these groups have together.
    """
    found = [demand.high for demand in demands]
    left = list(range(len(demands)))
    full: frozenset[int] = frozenset()
    while left:
        tightest = _tightest(demands, left, full, found, capacity)
        if tightest is None:
            break
        groups, members, tasks = tightest
        for i, slots in zip(members, tasks, strict=True):
            found[i] = slots
        left = [i for i in left if i not in members]
        full |= groups
    return found


def _tightest(
    demands: Sequence[QueueDemand],
    left: Sequence[int],
    full: frozenset[int],
    found: Sequence[int],
    capacity: Callable[[frozenset[int]], int],
) -> tuple[frozenset[int], Sequence[int], Sequence[int]] | None:
    """Return the groups that fill up at the lowest level, who is in them, and their slots; None if all have enough.

    Groups that are full already count on both sides, with their slots and with what is spent of them: what other groups
    have in common with them is gone.
    """
    best: tuple[int, int] | None = None
    tightest = None
    totals: dict[frozenset[int], int] = {}
    spent = sum(found[i] for i, demand in enumerate(demands) if demand.group in full and i not in left)
    for groups in _sets(sorted({demands[i].group for i in left})):
        members = [i for i in left if demands[i].group in groups]
        total = totals[groups] = capacity(groups | full) - spent
        if sum(demands[i].high for i in members) <= total:
            continue
        shares = _fill(demands, members, total)
        if best is None or shares.level * best[1] < best[0] * shares.denominator:
            best = (shares.level, shares.denominator)
            tightest = groups, members, shares.tasks
    return None if tightest is None else _round_within(demands, tightest, totals)


def _fill(demands: Sequence[QueueDemand], members: Sequence[int], total: int) -> Shares:
    return fill([Demand(d.weight, 1, d.low, d.high) for d in (demands[i] for i in members)], max(0, total))


def _round_within(
    demands: Sequence[QueueDemand],
    filled: tuple[frozenset[int], Sequence[int], Sequence[int]],
    totals: Mapping[frozenset[int], int],
) -> tuple[frozenset[int], Sequence[int], Sequence[int]]:
    """Return groups that fill up, of which no part got more than it has: these, or the part that got too much.

    Example: group a has 4 slots, and a and b together have 10. At level 1/2 the queues of a deserve 0.5 and 3.5, those
    of b 2, 0.5 and 3.5. Together that is 10, but rounding up the first two makes 5 of the 4 that a has.
    """
    groups, members, tasks = filled
    for part in _sets(sorted(groups)):
        given = [(i, slots) for i, slots in zip(members, tasks, strict=True) if demands[i].group in part]
        if part < groups and sum(slots for _, slots in given) > max(0, totals[part]):
            own = [i for i, _ in given]
            return _round_within(demands, (part, own, _fill(demands, own, totals[part]).tasks), totals)
    return filled


def _sets(groups: Collection[int]) -> Iterator[frozenset[int]]:
    """Yield the sets of groups to look at, the largest first: of sets that fill up together the whole counts."""
    sizes = range(len(groups), 0, -1) if len(groups) <= MAX_GROUPS else (len(groups), 1)
    for size in sizes:
        yield from map(frozenset, combinations(groups, size))
