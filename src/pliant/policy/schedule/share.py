"""How many tasks each workload deserves of a number of slots, as if all slots were on one node.

`fill` shares by weight: it raises one water level until the slots are used up, each workload getting level x weight
slots but never less than its minimum nor more than its maximum. Whole tasks come from the largest remainder.
`serve_in_order` gives to the first up to its maximum, then to the next. Knows nothing of nodes, of what anybody holds,
or of time.

Example: 8 slots, tasks of one slot, a with priority 1 and b with priority 2, each between 1 and 8 tasks. The level is
8/3: a deserves 8/3 = 2.67 slots and b 5.33. Rounded down that is 2 and 5, and one slot is left. a is 0.67 below what it
deserves and b 0.33, so a gets it: 3 and 5. Had a a minimum of 4, the level would be 2: a stays at 4, b deserves 4.

Invariants: low <= tasks <= high; sum of slots <= total; whoever is below `high` could not fit one more task into the
slots left over. All arithmetic is in integers, so nothing depends on rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple


class Demand(NamedTuple):
    """What one workload asks of the share-out; the minimum is granted already."""

    weight: int
    size: int
    """Slots per task."""
    low: int
    """Tasks."""
    high: int
    """Tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Deserved slots as fractions of a common denominator, and the whole tasks that they come to."""

    deserved: Sequence[int]
    """Numerators."""
    denominator: int
    level: int
    """Numerator of the water level: slots per unit of weight of whoever no bound holds up or down."""
    tasks: Sequence[int]

    def shortfall(self, i: int, size: int, tasks: int) -> int:
        """Return how far workload `i` is below its deserved slots at the middle of its next task (larger: more).

        Giving the next task where this is largest lowers the sum of squared distances between granted and deserved
        slots the most per slot.
        """
        return 2 * self.deserved[i] - (2 * tasks + 1) * size * self.denominator


def fill(demands: Sequence[Demand], total: int) -> Shares:
    """Share `total` slots in the ratio of the weights; `demands` are oldest first, which settles ties."""
    num, den = _level(demands, total)
    deserved = []
    tasks = []
    for weight, size, low, high in demands:
        slots = min(max(num * weight, low * size * den), high * size * den)
        deserved.append(slots)
        tasks.append(slots // (size * den))
    shares = Shares(deserved=deserved, denominator=den, level=num, tasks=tasks)
    _hand_out_rest(demands, shares, tasks, total)
    return shares


def serve_in_order(demands: Sequence[Demand], total: int) -> Shares:
    """Give the slots above the minimums to the first up to its maximum, then to the next, and so on."""
    left = max(0, total - sum(d.low * d.size for d in demands))
    tasks = []
    for _, size, low, high in demands:
        more = min(high - low, left // size)
        left -= more * size
        tasks.append(low + more)
    deserved = [n * d.size for n, d in zip(tasks, demands, strict=True)]
    return Shares(deserved=deserved, denominator=1, level=0, tasks=tasks)


def _level(demands: Sequence[Demand], total: int) -> tuple[int, int]:
    """Return the water level, slots per unit of weight, as (numerator, denominator).

    Walks over the levels at which a workload leaves its minimum or reaches its maximum. Floats only sort them: two
    different levels below 2**53 / weight differ by more than a float's rounding.
    """
    fixed = sum(d.low * d.size for d in demands)
    edges = []
    for weight, size, low, high in demands:
        if low < high:
            edges.append((low * size / weight, weight, low * size))
            edges.append((high * size / weight, -weight, -high * size))
    edges.sort()
    rising = 0
    num, den = 0, 1
    for _, weight, slots in edges:
        if fixed * abs(weight) + rising * abs(slots) >= total * abs(weight):
            break
        rising += weight
        fixed -= slots
        num, den = abs(slots), abs(weight)
    return (total - fixed, rising) if rising else (num, den)


def _hand_out_rest(demands: Sequence[Demand], shares: Shares, tasks: list[int], total: int) -> None:
    """Add the tasks that fit into what rounding down left over, largest shortfall first, ties to the older."""
    left = total - sum(n * d.size for n, d in zip(tasks, demands, strict=True))
    if left <= 0:
        return
    heap = [
        (-shares.shortfall(i, d.size, tasks[i]), i, d.size, d.high) for i, d in enumerate(demands) if tasks[i] < d.high
    ]
    heapify(heap)
    while heap and left:
        _, i, size, high = heap[0]
        if size > left:
            heappop(heap)
            continue
        tasks[i] += 1
        left -= size
        if tasks[i] < high:
            heapreplace(heap, (-shares.shortfall(i, size, tasks[i]), i, size, high))
        else:
            heappop(heap)
