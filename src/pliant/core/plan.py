"""What the scheduler sees (`Snapshot`) and what it decides (`Plan`); both are values."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.workload import Workload


class PolicyName(StrEnum):
    """How slots are shared."""

    FAIRSHARE = "fairshare"
    """In the ratio of the priorities."""
    PRIORITY = "priority"
    """The highest priority first, then the older job."""
    FIFO = "fifo"
    """The older job first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one pool of slots."""

    name: PolicyName = PolicyName.FAIRSHARE
    cooldown_s: float = 2.0
    """A job whose size changed less than this ago gives up no surplus, except for another job's minimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A host and the numbers of all its slots, free or not. Its id is its name."""

    id: NodeId
    slots: tuple[int, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    """As declared when its agent was started; resource groups choose by them."""
    num_gpus: int = 0
    num_cpus: int = 0
    walls: tuple[str, ...] = ()
    """What keeps people's code apart there, in words."""
    missing_walls: tuple[str, ...] = ()
    """What does not, since that host cannot do it."""
    has_copies: bool = False
    """It does not see the server's state folder: what its tasks need is copied there, and what they write back."""
    away: bool = False
    """Nothing is heard of it: of its slots only those are named that are held as far as is known."""


def without_slots(nodes: Iterable[NodeView], gone: Collection[tuple[NodeId, int]]) -> tuple[NodeView, ...]:
    """Return hosts without these of their slots; those that keep all are as they were."""
    hosts = {node_id for node_id, _ in gone}
    return tuple(
        replace(node, slots=tuple(slot for slot in node.slots if (node.id, slot) not in gone))
        if node.id in hosts
        else node
        for node in nodes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """A queue as the scheduler sees it: what it may use, so many slots of every node, and how its jobs share that."""

    name: str
    group: str = ""
    """The resource group; queues of one group have the same slots, and together no more than these."""
    slots: Mapping[NodeId, int] | None = None
    """Slots of every node that the group has; nodes left out have none. None: all slots of all nodes."""
    policy: PolicyName = PolicyName.FAIRSHARE
    preemption: bool = True
    """If not, nobody takes a task of its jobs."""
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that the scheduler knows. The order of nodes, workloads and queues does not matter."""

    nodes: tuple[NodeView, ...]
    workloads: tuple[Workload, ...]
    queues: tuple[QueueRules, ...] = ()
    """If there are none, every queue has all slots. A workload of a queue that is not listed gets nothing."""
    excluded: Mapping[str, str] = field(default_factory=dict)
    """By queue, what of its hosts people have excluded, in words; those slots are not among those of the nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Start one task here, now; every slot named is free."""

    node_id: NodeId
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one workload shall have. Acting on the same grant twice changes nothing."""

    workload_id: JobId
    num_tasks: int
    """The target; reached once others have left."""
    leave: tuple[TaskId, ...] = ()
    """Live tasks that shall leave at their next step boundary (those already leaving are not named again)."""
    start: tuple[Placement, ...] = ()
    """Tasks that can start now, on slots that are free now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A decision: one grant and one sentence for every workload of the snapshot, keyed by workload id."""

    grants: Mapping[JobId, Grant]
    reasons: Mapping[JobId, str]
    wake_at: float | None = None
    """When the decision may change though nothing happens (a cool-down ends); None if never."""
    deserved: Mapping[str, int] = field(default_factory=dict)
    """Slots that each queue with workloads deserves of those that it competes for."""
