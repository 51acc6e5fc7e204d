"""Who waits in which place of its queue, and for how many slots. Pure; decides nothing.

The place is that in the order in which minimums are granted (`order`). It is no promise: of two that wait the second
may start first, if the minimum of the first does not fit on what is free.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.core.job import JobId
from pliant.core.plan import Policy, Snapshot
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import Workload
from pliant.policy.schedule.order import age, precedence


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPlace:
    """Where a workload without slots stands."""

    place: int
    """1: it is the first of its queue to be granted slots."""
    num_waiting: int
    """So many wait in its queue, itself among them."""
    num_needed: int
    """Slots of its minimum."""


def places(snapshot: Snapshot, policy: Policy) -> Mapping[JobId, WaitingPlace]:
    """Return the places of all workloads that want slots and have none."""
    policies = {queue.name: queue.policy for queue in snapshot.queues}
    waiting: dict[str, list[Workload]] = {}
    for workload in snapshot.workloads:
        if workload.max_tasks > 0 and not workload.tasks:
            waiting.setdefault(workload.queue, []).append(workload)
    found = {}
    for queue, workloads in waiting.items():
        name = policies.get(queue, policy.name)
        workloads.sort(key=lambda workload: (precedence(name, workload, 0), age(workload)))
        for number, workload in enumerate(workloads, start=1):
            needed = num_slots_of(workload, workload.min_tasks)
            found[workload.id] = WaitingPlace(place=number, num_waiting=len(workloads), num_needed=needed)
    return found


def num_slots_of(workload: Workload, num_tasks: int) -> int:
    """Return how many slots so many tasks of a workload hold, or a part of them."""
    return -(-num_tasks * workload.slots_per_task * workload.slot_share // WHOLE_SLOT)
