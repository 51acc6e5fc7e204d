"""A workload in the course of one decision (`Candidate`). Changed in place, and gone when the decision is made."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pliant.core.plan import QueueRules
from pliant.core.workload import TaskView, Workload


@dataclass(slots=True, eq=False, kw_only=True)
class Candidate:
    """All numbers are of tasks unless they say slots; nodes and groups are numbers of the pool."""

    workload: Workload
    size: int
    """Slots per task."""
    minimum: int
    """Its own, or what it holds already if that is more and nobody may take it away."""
    queue: QueueRules
    group: int
    """The resource group of its queue."""
    is_protected: bool
    """Nobody may take a task of it: its queue has no preemption."""
    excluded_nodes: frozenset[int] = frozenset()
    """Nodes on which none of its tasks is to be started."""
    in_backoff: bool = False
    """No task of it is started before `held_until`."""
    in_cooldown: bool = False
    """Its size has just changed; it gives up no surplus, except for a minimum."""
    rank: int = 0
    """Place in the order of all candidates, 0 first."""
    age: int = 0
    """Place in the order of age, 0 the oldest."""

    held: dict[int, list[TaskView]] = field(default_factory=dict)
    """Tasks that stay, by node, oldest first."""
    num_held: int = 0
    leave: list[TaskView] = field(default_factory=list)
    """Tasks that are told to leave by this decision."""
    has_released: bool = False
    """Some of its tasks are told to leave by this decision; it does not grow in the same one."""
    reservations: dict[int, int] = field(default_factory=dict)
    """Tasks that shall start, by node."""
    num_reserved: int = 0
    awaited_nodes: set[int] = field(default_factory=set)
    """Nodes where some of the reserved slots are still held by somebody."""
    guaranteed: dict[int, int] = field(default_factory=dict)
    """Held tasks that its minimum counts on, by node."""
    lent: Sequence[int] = ()
    """The node of every task that its minimum lacks; others' surplus may have the slots until its back-off ends."""
    admitted: bool = False
    """Its minimum is granted."""
    share: int = 0
    """Tasks that it deserves."""
    in_ratio: bool = False
    """Its share is in the ratio of the priorities: neither minimum nor maximum bounds it."""

    @property
    def target(self) -> int:
        return self.num_held + self.num_reserved

    @property
    def num_missing(self) -> int:
        """Return the tasks of its minimum that neither a held task nor a reservation stands for."""
        return self.minimum - sum(self.guaranteed.values()) - self.num_reserved

    @property
    def excess(self) -> int:
        """Return the held tasks beyond its share."""
        return self.num_held - self.share

    @property
    def usable_slots(self) -> int:
        """Return how many slots it can use now."""
        return (self.num_held if self.in_backoff else self.workload.max_tasks) * self.size

    @property
    def can_grow(self) -> bool:
        return self.admitted and not self.in_backoff and not self.has_released

    @property
    def emptiest_nodes(self) -> list[int]:
        """Return the nodes in the order in which it leaves them: fewest of its tasks first, then its newest task."""
        if len(self.held) < 2:
            return list(self.held)
        newest = {task.node_id: at for at, task in enumerate(self.workload.tasks) if not task.leaving}
        return sorted(self.held, key=lambda node: (len(self.held[node]), -newest[self.held[node][-1].node_id]))
