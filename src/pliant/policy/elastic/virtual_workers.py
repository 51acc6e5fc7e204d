"""How V parts of a global batch divide over N tasks: how busy they are, what an exact sum sends, which V is better.

Every task computes a contiguous range of the parts, and a step takes as long as the task with the most. The exact sum
adds parts in one fixed binary tree, split where the left half is the largest power of two below the size; a task whose
range is not one node of it sends several partial sums. Knows no job and no model. What parts cost, and which V a job
has that asks for none, is in `pliant.core.virtual_workers`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pliant.core.job import MAX_VIRTUAL_WORKERS
from pliant.core.virtual_workers import FINEST, GRADIENT, most_work, slot_time

GOOD: Final = 0.9
"""A size that uses less than this of its tasks divides badly."""
WORTH: Final = 0.1
"""Another V is advised if it saves this much of the time."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Another V, and what it saves."""

    virtual_workers: int
    saved: float
    """Of the time that the tasks take for a step, in the mean of all sizes."""


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
        efficiency=total / (num_tasks * most_work(num_parts, num_tasks, batch_size)),
        partials=partials,
        wire=(max(partials) + 1) / 2,
    )


def worst(virtual_workers: int, sizes: Sequence[int], batch_size: int | None = None) -> tuple[float, int]:
    """Return the lowest efficiency over these numbers of tasks, and the first number that has it."""
    return min((_efficiency(virtual_workers, size, batch_size), size) for size in sizes)


def advise(virtual_workers: int, sizes: range, batch_size: int) -> Advice | None:
    """Return a V with which steps on these numbers of tasks take less time; None if none saves much.

    The time of a step is that of its busiest task, in units of a sample's own forward and backward pass: its samples,
    and `GRADIENT` for every part that it adds and every partial sum that it sends. Example: a batch of 64 on 1 task
    takes 64 + 8 · 14 = 176 in 8 parts and 64 + 48 · 14 = 736 in 48, which no even division makes up for.
    """
    most = min(batch_size, MAX_VIRTUAL_WORKERS, max(sizes) * FINEST)
    # Few tasks send several partial sums, so they are left out of the search, and counted for what it finds.
    best = min(range(max(sizes), most + 1), key=lambda v: slot_time(v, sizes, batch_size))
    before, after = (_whole_slot_time(v, sizes, batch_size) for v in (virtual_workers, best))
    saved = 1 - after / before
    return Advice(virtual_workers=best, saved=saved) if saved >= WORTH else None


def _whole_slot_time(virtual_workers: int, sizes: range, batch_size: int) -> int:
    sent = sum(size * max(divide(virtual_workers, size, batch_size).partials) for size in sizes if size > 1)
    return slot_time(virtual_workers, sizes, batch_size) + GRADIENT * sent


def _efficiency(virtual_workers: int, num_tasks: int, batch_size: int | None) -> float:
    num_parts = virtual_workers if batch_size is None else min(virtual_workers, batch_size)
    return (batch_size or num_parts) / (num_tasks * most_work(num_parts, num_tasks, batch_size))


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
