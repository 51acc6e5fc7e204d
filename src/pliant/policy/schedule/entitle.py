"""How many slots each queue is entitled to where resource groups overlap: weighted max-min fairness. Pure numbers.

One level is raised for all queues; a queue gets level x weight slots, never less than its floor nor more than it wants.
Where the groups of some queues have no slots left between them, these queues stop and the level rises for the others
(Hall's condition: any set of groups holds no more than its slots together; the set that fills up first comes first).
Whole slots come from the largest remainder. Knows no nodes, no workloads and no time.

Invariants: floor <= slots <= high, if the floors fit; no queue could have one more without another at or below its
level having one less. But for rounding, what a queue is entitled to never falls because another wants less.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from pliant.policy.schedule.share import Demand, fill

MAX_AREAS: Final = 8
"""Of more groups that overlap only single ones and all together are looked at."""


class Claimant(NamedTuple):
    """A queue, in slots."""

    weight: int
    low: int
    high: int
    area: int
    """Its resource group."""


def entitle(claimants: Sequence[Claimant], capacity: Callable[[frozenset[int]], int]) -> list[int]:
    """Return the slots of each queue; the order of the claimants settles ties.

    Args:
        claimants: in an order that does not depend on who holds what.
        capacity: how many slots these areas have together.
    """
    found = [claimant.high for claimant in claimants]
    left = list(range(len(claimants)))
    full: frozenset[int] = frozenset()
    while left:
        tightest = _tightest(claimants, left, full, found, capacity)
        if tightest is None:
            break
        areas, members, tasks = tightest
        for i, slots in zip(members, tasks, strict=True):
            found[i] = slots
        left = [i for i in left if i not in members]
        full |= areas
    return found


def _tightest(
    claimants: Sequence[Claimant],
    left: Sequence[int],
    full: frozenset[int],
    found: Sequence[int],
    capacity: Callable[[frozenset[int]], int],
) -> tuple[frozenset[int], Sequence[int], Sequence[int]] | None:
    """Return the areas that fill up at the lowest level, who is in them, and their slots; None if all have enough."""
    best: tuple[int, int] | None = None
    tightest = None
    spent = sum(found[i] for i, claimant in enumerate(claimants) if claimant.area in full and i not in left)
    for areas in _sets(sorted({claimants[i].area for i in left})):
        members = [i for i in left if claimants[i].area in areas]
        total = capacity(areas | full) - spent
        if sum(claimants[i].high for i in members) <= total:
            continue
        demands = [Demand(c.weight, 1, c.low, c.high) for c in (claimants[i] for i in members)]
        shares = fill(demands, max(0, total))
        if best is None or shares.level * best[1] < best[0] * shares.denominator:
            best = (shares.level, shares.denominator)
            tightest = areas, members, shares.tasks
    return tightest


def _sets(areas: Collection[int]) -> Iterator[frozenset[int]]:
    """Yield the sets of areas to look at, the largest first: of sets that fill up together the whole counts."""
    sizes = range(len(areas), 0, -1) if len(areas) <= MAX_AREAS else (len(areas), 1)
    for size in sizes:
        yield from map(frozenset, combinations(areas, size))
