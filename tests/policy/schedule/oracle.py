"""Slow answers that anybody can believe, for jobs on a single node. Shares no code with the scheduler.

The water level is found with exact fractions. Where every task takes one slot, whole numbers are found by trying all
allocations; with larger tasks they are filled in one by one.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from pliant.core.plan import PolicyName
from pliant.core.workload import Workload

ZERO = Fraction()


def targets(workloads: Sequence[Workload], num_slots: int, policy: PolicyName) -> dict[str, int]:
    """Return how many tasks every job shall have, when nobody cools down or backs off."""
    order = sorted(workloads, key=lambda w: place_in_order(w, policy))
    left = num_slots
    admitted = []
    for workload in order:
        need = workload.min_tasks * workload.slots_per_task
        if need <= left:
            left -= need
            admitted.append(workload)
    if policy is PolicyName.FAIRSHARE:
        granted = fair(admitted, num_slots)
    else:
        granted = {}
        for workload in admitted:
            more = min(workload.max_tasks - workload.min_tasks, left // workload.slots_per_task)
            left -= more * workload.slots_per_task
            granted[workload.id] = workload.min_tasks + more
    return {workload.id: granted.get(workload.id, 0) for workload in workloads}


def place_in_order(workload: Workload, policy: PolicyName) -> tuple[float, ...]:
    """Return the sort key of a policy; job ids end in a number."""
    age = (workload.submitted_at, int(workload.id.rpartition("-")[2]))
    if policy is PolicyName.FIFO:
        return age
    if policy is PolicyName.PRIORITY:
        return (-workload.priority, *age)
    size = min(sum(not task.leaving for task in workload.tasks), workload.max_tasks)
    lacks = 0 if size >= workload.min_tasks else 1 if size else 2
    return (lacks, -workload.priority, *age)


def fair(admitted: Sequence[Workload], num_slots: int) -> dict[str, int]:
    """Return tasks by job under fairshare."""
    oldest_first = sorted(admitted, key=lambda w: place_in_order(w, PolicyName.FIFO))
    ideal = ideals(oldest_first, num_slots)
    if all(w.slots_per_task == 1 for w in admitted):
        counts: Sequence[int] = nearest_whole(oldest_first, ideal, num_slots)
    else:
        counts = fill_in(oldest_first, ideal, num_slots)
    return {w.id: n for w, n in zip(oldest_first, counts, strict=True)}


def ideals(jobs: Sequence[Workload], num_slots: int) -> list[Fraction]:
    """Return fractional slots: in the ratio of priorities, cut off at minimum and maximum."""

    def at(level: Fraction) -> list[Fraction]:
        return [
            min(
                max(level * w.priority, Fraction(w.min_tasks * w.slots_per_task)),
                Fraction(w.max_tasks * w.slots_per_task),
            )
            for w in jobs
        ]

    levels = sorted({Fraction(n * w.slots_per_task, w.priority) for w in jobs for n in (w.min_tasks, w.max_tasks)})
    if not levels or sum(at(levels[-1]), ZERO) <= num_slots:
        return at(levels[-1]) if levels else []
    if sum(at(levels[0]), ZERO) >= num_slots:
        return at(levels[0])
    upper = next(i for i, level in enumerate(levels) if sum(at(level), ZERO) > num_slots)
    low, high = levels[upper - 1], levels[upper]
    part = (num_slots - sum(at(low), ZERO)) / (sum(at(high), ZERO) - sum(at(low), ZERO))
    return at(low + part * (high - low))


def nearest_whole(jobs: Sequence[Workload], ideal: Sequence[Fraction], num_slots: int) -> tuple[int, ...]:
    """Of all allocations that use every slot they can: least squared distance to the ideal, ties to the older."""
    used = min(num_slots, sum(w.max_tasks for w in jobs))
    every = product(*(range(w.min_tasks, w.max_tasks + 1) for w in jobs))
    return min(
        (counts for counts in every if sum(counts) == used),
        key=lambda counts: (
            sum((n - want) ** 2 for n, want in zip(counts, ideal, strict=True)),
            tuple(-n for n in counts),
        ),
    )


def fill_in(jobs: Sequence[Workload], ideal: Sequence[Fraction], num_slots: int) -> list[int]:
    """Whole tasks within the ideal first; then one task at a time where it mends most squared distance per slot."""
    counts = [int(want / w.slots_per_task) for w, want in zip(jobs, ideal, strict=True)]
    while True:
        left = num_slots - sum(n * w.slots_per_task for n, w in zip(counts, jobs, strict=True))
        fitting = [i for i, w in enumerate(jobs) if counts[i] < w.max_tasks and w.slots_per_task <= left]
        if not fitting:
            return counts

        def mended(i: int) -> Fraction:
            size = jobs[i].slots_per_task
            away = ideal[i] - counts[i] * size
            return (away**2 - (away - size) ** 2) / size

        counts[max(fitting, key=lambda i: (mended(i), -i))] += 1
