"""Resource groups (named sets of slots) and the queues over them that jobs wait in; what of a host a group has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from pliant.core.formula import read_formula
from pliant.core.job import DEFAULT_QUEUE, NodeId
from pliant.core.plan import NodeView, PolicyName

DEFAULT_GROUP: Final = "all"
MAX_WEIGHT: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Which hosts: those named, those that carry all of these labels, or all. One of the two is given at most."""

    names: tuple[str, ...] | None = None
    labels: Mapping[str, str] | None = None

    def include(self, node: NodeView) -> bool:
        """Tell whether a host is one of them."""
        if self.names is not None:
            return node.id in self.names
        return all(node.labels.get(name) == value for name, value in (self.labels or {}).items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """So many slots of each of these hosts, whichever they are. A host can be in several groups."""

    KIND: ClassVar[str] = "resource_group"

    name: str
    owner: str = ""
    hosts: Hosts = field(default_factory=Hosts)
    slots_per_host: int | str | None = None
    """A number, a formula (`pliant.core.formula`), or None for all that the host has."""
    description: str = ""

    @property
    def is_whole_pool(self) -> bool:
        """Whether it has every slot there is, and will be."""
        return self.hosts.names is None and not self.hosts.labels and self.slots_per_host is None

    def slots_of(self, nodes: Iterable[NodeView]) -> Mapping[NodeId, int]:
        """Return how many slots of every host it has; hosts of which it has none are left out."""
        formula = read_formula(self.slots_per_host) if isinstance(self.slots_per_host, str) else None
        found = {}
        for node in nodes:
            if not self.hosts.include(node):
                continue
            if formula is not None:
                num = formula.value(ngpus=node.num_gpus, ncpus=node.num_cpus)
            elif isinstance(self.slots_per_host, int):
                num = self.slots_per_host
            else:
                num = len(node.slots)
            if (num := min(num, len(node.slots))) > 0:
                found[node.id] = num
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Where jobs wait for the slots of one resource group."""

    KIND: ClassVar[str] = "queue"

    name: str
    owner: str = ""
    resource_group: str = DEFAULT_GROUP
    policy: PolicyName = PolicyName.FAIRSHARE
    """How its jobs share what the queue has."""
    preemption: bool = True
    """Its jobs can be shrunk and, under `priority` and `fifo`, paused. If not they keep what they have."""
    weight: int = 1
    """Queues whose groups overlap share those slots in the ratio of their weights."""
    default_environment: str | None = None
    """The environment of its jobs that name none."""
    run_as: str | None = None
    """The user of the operating system that its jobs' processes run as; the server's own if None."""
    max_tasks_per_job: int | None = None
    open: bool = True
    """A closed queue takes no new jobs; those it has go on."""
    description: str = ""


__all__ = ["DEFAULT_GROUP", "DEFAULT_QUEUE", "MAX_WEIGHT", "Hosts", "Queue", "ResourceGroup"]
