"""A queue in the course of one decision (`QueueState`): its workloads in order, and what it is entitled to.

Changed in place, and gone when the decision is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pliant.core.plan import PolicyName, QueueView
from pliant.policy.schedule.candidate import Candidate


@dataclass(slots=True, eq=False, kw_only=True)
class QueueState:
    """All numbers are of slots."""

    view: QueueView
    group: int
    order: Sequence[Candidate]
    """Its workloads, by the queue's policy."""
    demand: int = 0
    """What its workloads could use, could they all be admitted."""
    wanted: int = 0
    """What it is taken to want; less than its demand once it has turned out that it cannot use that much."""
    floor: int = 0
    """Minimums of workloads that have tasks, and tasks that nobody may take."""
    budget: int | None = None
    """What it is entitled to; None: whatever there is, nobody else wants any."""
    newcomers: int | None = None
    """The budget as if nobody of it had tasks: more than that it is left only for the sake of those who have."""
    given: tuple[int | None, int | None] | None = None
    """The two budgets to begin with, if it turned out already that others hand on what is theirs."""
    deserved: int | None = None
    """The budget before queues that cannot use theirs handed it on."""
    refused: list[Candidate] = field(default_factory=list)
    """Workloads that wait because their minimums do not fit into the budget, or on the nodes."""

    @property
    def may_pause(self) -> bool:
        """Tell whether a workload that holds its minimum may be paused for one before it in the order."""
        return self.view.policy is not PolicyName.FAIRSHARE and self.view.preemption

    @property
    def usable(self) -> int:
        """Return what those who are admitted could use."""
        return sum(candidate.usable_slots for candidate in self.order if candidate.admitted)


def assess(queue: QueueState, num_slots: int) -> None:
    """Fill in what a queue wants, and what it has for certain; `num_slots` is what its group has."""
    holding = [candidate for candidate in queue.order if candidate.num_held and candidate.workload.max_tasks]
    kept = sum(min(c.num_held, c.workload.max_tasks) * c.size for c in holding if c.is_protected)
    queue.floor = max(kept, min(num_slots, sum(candidate.minimum_slots for candidate in holding)))
    possible = (c.usable_slots for c in queue.order if c.minimum_slots <= num_slots or c.num_held)
    queue.demand = queue.wanted = max(queue.floor, sum(possible))
