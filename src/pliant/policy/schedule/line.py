"""A queue in the course of one decision: its workloads in order, and what it is entitled to. Changed in place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pliant.core.plan import PolicyName, QueueView
from pliant.policy.schedule.entitle import Claimant
from pliant.policy.schedule.place import Stake


@dataclass(slots=True, eq=False, kw_only=True)
class Line:
    """The workloads of one queue."""

    queue: QueueView
    area: int
    order: Sequence[Stake]
    """By the queue's policy."""
    demand: int = 0
    """Slots that its workloads could use, could they all be admitted."""
    wanted: int = 0
    """Slots that it is taken to want; less than its demand once it has turned out that it cannot use them."""
    floor: int = 0
    """Slots of the minimums of workloads that have tasks, and of tasks that nobody may take."""
    budget: int | None = None
    """Slots that it is entitled to; None: whatever there is, nobody else wants any."""
    newcomers: int | None = None
    """The budget as if nobody of it had tasks: more than that it is left only for the sake of those who have."""
    given: tuple[int | None, int | None] | None = None
    """The two budgets to begin with, if it turned out already that others hand on what is theirs."""
    deserved: int | None = None
    """The budget before queues that cannot use theirs handed it on."""
    refused: list[Stake] = field(default_factory=list)
    """Workloads that wait because their minimums do not fit into the budget, or on the nodes."""

    @property
    def may_pause(self) -> bool:
        return self.queue.policy is not PolicyName.FAIRSHARE and self.queue.preemption

    @property
    def usable(self) -> int:
        """Slots that those who are admitted could use."""
        return sum(most(stake) * stake.size for stake in self.order if stake.admitted)

    def claimant(self) -> Claimant:
        """Return what the queue asks for of the slots that it shares with others."""
        return Claimant(weight=self.queue.weight, low=self.floor, high=max(self.wanted, self.floor), area=self.area)


def most(stake: Stake) -> int:
    """Return how many tasks a workload can use now."""
    return stake.num_held if stake.backs_off else stake.view.max_tasks


def floor_of(stakes: Iterable[Stake]) -> int:
    """Return the slots of the minimums of those that have tasks."""
    return sum(stake.low * stake.size for stake in stakes if stake.num_held)


def assess(line: Line, num_slots: int) -> None:
    """Fill in demand and floor; `num_slots` is what the queue's group has."""
    kept = sum(min(stake.num_held, stake.view.max_tasks) * stake.size for stake in line.order if stake.keeps)
    line.floor = max(kept, min(num_slots, floor_of(stake for stake in line.order if stake.view.max_tasks)))
    line.demand = line.wanted = max(
        line.floor,
        sum(most(stake) * stake.size for stake in line.order if stake.low * stake.size <= num_slots or stake.num_held),
    )
