"""How V parts of a global batch divide over N tasks: how busy they are, what an exact sum sends, which V is better.

Every task computes a contiguous range of the parts, and a step takes as long as the task with the most. The exact sum
adds parts in one fixed binary tree, split where the left half is the largest power of two below the size; a task whose
range is not one node of it sends several partial sums. Knows no job and no model.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

GOOD: Final = 0.9
"""A size that uses less than this of its tasks divides badly."""
MAX_ADVISED: Final = 4096
_SLACK: Final = 1.5
"""A V of so many times the smallest good one is still few, if it divides more sizes evenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How a global batch is computed by one number of tasks."""

    num_tasks: int
    parts: tuple[int, ...]
    """Of every task, one after the other."""
    efficiency: float
    """Work of all tasks by the work that they could do in the same time; 1 if all have the same."""
    partials: tuple[int, ...]
    """Partial sums that every task sends in `exact` mode; 1 each where all ranges are whole nodes of the tree."""
    wire: float
    """Bytes that the task which sends most sends for an exact sum, by those of a stock all-reduce."""


def divide(virtual_workers: int, num_tasks: int, batch_size: int | None = None) -> Division:
    """Return how V parts divide over N tasks; with a batch size work is counted in samples, else in parts.

    Raises:
        ValueError: there are fewer parts than tasks.
    """
    num_parts = virtual_workers if batch_size is None else min(virtual_workers, batch_size)
    if num_parts < num_tasks:
        raise ValueError(f"{num_parts} parts cannot be divided over {num_tasks} tasks; each needs one at least")
    ranges = list(_cut(num_parts, num_tasks))
    partials = tuple(_num_nodes((0, num_parts), (part.start, part.stop)) for part in ranges)
    total = num_parts if batch_size is None else batch_size
    return Division(
        num_tasks=num_tasks,
        parts=tuple(len(part) for part in ranges),
        efficiency=total / (num_tasks * _most_work(num_parts, num_tasks, batch_size)),
        partials=partials,
        wire=(max(partials) + 1) / 2,
    )


def worst(virtual_workers: int, sizes: Sequence[int], batch_size: int | None = None) -> tuple[float, int]:
    """Return the lowest efficiency over these numbers of tasks, and the first number that has it."""
    return min((_efficiency(virtual_workers, size, batch_size), size) for size in sizes)


def advise(sizes: Sequence[int], batch_size: int | None = None) -> int | None:
    """Return the V to use for these numbers of tasks: few parts, every size good, as many as can be divided evenly.

    None if there is no such V up to the batch size.
    """
    limit = min(MAX_ADVISED, batch_size or MAX_ADVISED)
    good = (v for v in range(max(sizes), limit + 1) if _all_good(v, sizes, batch_size))
    smallest = next(good, None)
    if smallest is None:
        return None
    few = [v for v in range(smallest, min(limit, math.floor(smallest * _SLACK)) + 1) if _all_good(v, sizes, batch_size)]
    return max(few, key=lambda v: (sum(_efficiency(v, size, batch_size) == 1.0 for size in sizes), -v))


def _all_good(virtual_workers: int, sizes: Sequence[int], batch_size: int | None) -> bool:
    return all(_efficiency(virtual_workers, size, batch_size) >= GOOD for size in sizes)


def _efficiency(virtual_workers: int, num_tasks: int, batch_size: int | None) -> float:
    num_parts = virtual_workers if batch_size is None else min(virtual_workers, batch_size)
    return (batch_size or num_parts) / (num_tasks * _most_work(num_parts, num_tasks, batch_size))


def _most_work(num_parts: int, num_tasks: int, batch_size: int | None) -> int:
    """Return the parts, or samples, of the task that has most: the first, since the longer ranges come first."""
    most = -(-num_parts // num_tasks)
    if batch_size is None:
        return most
    short, num_long = divmod(batch_size, num_parts)
    return most * short + min(most, num_long)


def _cut(length: int, num_ranges: int) -> Iterator[range]:
    """Yield consecutive ranges whose lengths differ by at most one, the longer ones first."""
    short, num_long = divmod(length, num_ranges)
    start = 0
    for number in range(num_ranges):
        stop = start + short + (1 if number < num_long else 0)
        yield range(start, stop)
        start = stop


def _num_nodes(node: tuple[int, int], wanted: tuple[int, int]) -> int:
    """Return how many of the largest nodes under `node` lie inside `wanted`."""
    lo, hi = node
    if hi <= wanted[0] or wanted[1] <= lo:
        return 0
    if wanted[0] <= lo and hi <= wanted[1]:
        return 1
    middle = lo + (1 << ((hi - lo - 1).bit_length() - 1))
    return _num_nodes((lo, middle), wanted) + _num_nodes((middle, hi), wanted)
