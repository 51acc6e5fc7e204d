"""What the parts of a global batch cost, and into how many a job cuts it that asks for no number (`choose`).

Time is counted in units of a sample's own forward and backward pass. A step takes as long as its busiest task: the
samples of that task, and `GRADIENT` for every part that it adds. Example: a batch of 64 on one task takes
64 + 1 · 14 = 78 in one part and 64 + 8 · 14 = 176 in eight, of which each has 8 samples and costs 22.

The choice depends on two numbers that are the same in every task of a job, at any time and on any machine, so nobody
has to agree on it. Whole numbers only: nothing here rounds differently elsewhere.
"""

from typing import Final

from pliant.core.job import MAX_VIRTUAL_WORKERS

GRADIENT: Final = 14
"""To add the gradient of one more part takes as long as so many samples of it.

That is what memory and arithmetic of a processor make of a linear layer (docs/benchmarks.md: 14 / b of a part of b
samples); small networks were measured at 10 to 12. Of large networks with few parameters it is less, of small ones on a
GPU more.
"""
FINEST: Final = 12
"""No task is given more parts than this unless asked for: they are even to one part in twelve, and more only cost."""
_MAX_OVERHEAD_PERCENT: Final = 3
"""Adding a part may take so much of what its samples take, where no more parts are needed for all tasks to work."""
CHEAP_PART: Final = -(-100 * GRADIENT // _MAX_OVERHEAD_PERCENT)
"""Parts of so many samples, or more, cost no more than that."""


def choose(max_tasks: int, batch_size: int) -> int:
    """Return V for a job that asks for none: with which its steps take least of the time of all its tasks.

    At least one part for each task; more only as long as all of them have `CHEAP_PART` samples. Between these it is the
    V with which steps on 1, 2, … and `max_tasks` tasks take least, and of equals the smallest. Example: of a batch of
    64, 1 task has 1 part, and 8 tasks have 8; of a batch of 16,384 these have 24, which 3 and 6 tasks divide, too.

    Args:
        max_tasks: as the job was submitted; later changes of its size do not count.
        batch_size: samples of the global batch; if there is none (0 or less), V is 1.
    """
    least = max(1, min(max_tasks, batch_size, MAX_VIRTUAL_WORKERS))
    most = max(least, min(batch_size // CHEAP_PART, least * FINEST, MAX_VIRTUAL_WORKERS))
    if most == least:
        return least
    sizes = range(1, least + 1)
    return min(range(least, most + 1), key=lambda v: slot_time(v, sizes, batch_size))


def slot_time(virtual_workers: int, sizes: range, batch_size: int) -> int:
    """Return what a step on each of these numbers of tasks takes of the time of all of them, without sums over tasks.

    Neighbouring sizes whose busiest task has as many parts are counted together, so that thousands take no time.
    """
    num_parts = min(virtual_workers, batch_size)
    total, first = 0, sizes.start
    while first < sizes.stop:
        most_parts = -(-num_parts // first)
        last = sizes.stop - 1 if most_parts == 1 else min(sizes.stop - 1, (num_parts - 1) // (most_parts - 1))
        num_slots = (first + last) * (last - first + 1) // 2
        total += num_slots * (GRADIENT * most_parts + most_work(num_parts, first, batch_size))
        first = last + 1
    return total


def most_work(num_parts: int, num_tasks: int, batch_size: int | None) -> int:
    """Return the parts, or samples, of the task that has most: the first, since the longer ranges come first."""
    most = -(-num_parts // num_tasks)
    if batch_size is None:
        return most
    short, num_long = divmod(batch_size, num_parts)
    return most * short + min(most, num_long)
