"""The one noun that wants slots (`Workload`), as the scheduler sees it.

A training, a fixed job, an endpoint and a trial are all one: whatever its kind, it has an owner, a queue, a priority,
bounds and slots per task. What else a kind needs stands with the kind, and the scheduler never asks for it.
"""

from dataclasses import dataclass

from pliant.core.job import DEFAULT_QUEUE, JobId, NodeId, TaskId
from pliant.core.slot import WHOLE_SLOT


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A live process that holds slots. A leaving one holds them until it has exited."""

    id: TaskId
    node_id: NodeId
    slots: tuple[int, ...]
    leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One noun wants slots: a training, a trial or an endpoint."""

    id: JobId
    kind: str = "elastic"
    """The name of its kind, for people; no decision depends on it."""
    name: str
    priority: int
    min_tasks: int
    """It has this many tasks or none."""
    max_tasks: int
    slots_per_task: int
    slot_share: int = WHOLE_SLOT
    """Thousandths of its slot that a task holds. A part is for tasks of one slot only: others may hold the rest."""
    submitted_at: float
    tasks: tuple[TaskView, ...] = ()
    """Its live processes, oldest first."""
    given_up: tuple[tuple[NodeId, int], ...] = ()
    """Slots that it was told to leave, the newest last: of equal slots it is given these first."""
    resized_at: float | None = None
    """When the scheduler last changed its size; None if never."""
    held_until: float | None = None
    """No new task is started before this instant (the job is backing off after losses)."""
    excluded: frozenset[NodeId] = frozenset()
    """Nodes on which no new task is started (its tasks were lost there again and again)."""
    apart: tuple[tuple[NodeId, NodeId], ...] = ()
    """Nodes on which no new task is started, each with one that it does not reach and that the others are on."""
    pinned: bool = False
    """It cannot be paused without losing its work: it comes before all others, so that nobody is given its slots."""
    queue: str = DEFAULT_QUEUE
    owner: str = ""
    """Whose it is; others do not learn its name."""

    @property
    def kept_off(self) -> frozenset[NodeId]:
        """The nodes on which no new task is started, for whatever reason."""
        return self.excluded.union(node_id for node_id, _ in self.apart) if self.apart else self.excluded
