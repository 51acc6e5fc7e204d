"""Resource groups (named sets of slots) and the queues over them that jobs wait in; what of a host a group has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Le, Len, MaxLen

from pliant.core.formula import MAX_LENGTH, read_formula
from pliant.core.input import PLAIN_TEXT, Check, Input, Pattern
from pliant.core.job import DEFAULT_QUEUE, NodeId, NumTasks
from pliant.core.plan import NodeView, PolicyName

DEFAULT_GROUP: Final = "all"
MAX_WEIGHT: Final = 10_000
_NUM_NAMED: Final = 3

Name = Annotated[
    str,
    Input(
        Len(1, 60),
        Pattern(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "letters, digits, '.', '_' and '-', a letter or digit first"),
    ),
]
Description = Annotated[str, Input(MaxLen(500), PLAIN_TEXT)]
SystemUser = Annotated[
    str, Input(Len(1, 32), Pattern(r"^[A-Za-z_][A-Za-z0-9._-]*\$?$", "the name of a user of the system"))
]


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

    @property
    def condition(self) -> str:
        """What a host has to be, in words."""
        if self.names is not None:
            return f"is called {' or '.join(self.names) or 'nothing'}"
        return f"carries {' and '.join(f'{name}={value}' for name, value in (self.labels or {}).items())}"


def _check_slots(value: int | str | None) -> None:
    if isinstance(value, str):
        read_formula(value)


NumSlots = Annotated[int, Input(Ge(0), Le(4096))]
Formula = Annotated[str, Input(Len(1, MAX_LENGTH))]


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """What people say of a resource group, but for its hosts."""

    name: Name
    slots_per_host: Annotated[
        NumSlots | Formula | None, Input(Check(_check_slots), none="null: all that a host has.")
    ] = None
    """A number, or a formula over `ngpus` and `ncpus` such as `min(ngpus, 4)`; null: all that a host has."""
    description: Description = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup(GroupSettings):
    """So many slots of each of these hosts, whichever they are. A host can be in several groups."""

    KIND: ClassVar[str] = "resource_group"

    owner: str = ""
    hosts: Hosts = field(default_factory=Hosts)

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

    def lack(self, nodes: Sequence[NodeView]) -> str:
        """Return why it has no slot of these hosts, in words; empty if it has some."""
        if self.slots_of(nodes):
            return ""
        if not nodes:
            return "there are no hosts yet"
        included = [node for node in nodes if self.hosts.include(node)]
        if not included:
            there = ", ".join(node.id for node in nodes[:_NUM_NAMED]) + ", …" * (len(nodes) > _NUM_NAMED)
            return f"no host here {self.hosts.condition}; there {'is' if len(nodes) == 1 else 'are'} {there}"
        what = "all" if self.slots_per_host is None else self.slots_per_host
        shown = [
            f"{node.id} has {len(node.slots)} slots, {node.num_gpus} GPUs and {node.num_cpus} CPUs"
            for node in included[:_NUM_NAMED]
        ]
        return f"slots per host are `{what}`, which is 0 here: {'; '.join(shown)}"


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """What people say of a queue. A field that is added here is one of the REST bodies and of the commands, too."""

    name: Name
    resource_group: Annotated[str, Input(Len(1, 60))] = DEFAULT_GROUP
    policy: PolicyName = PolicyName.FAIRSHARE  # how its jobs share what the queue has
    preemption: bool = True
    """Whether its jobs can be shrunk and paused for others; if not they keep what they have."""
    weight: Annotated[int, Input(Ge(1), Le(MAX_WEIGHT))] = 1
    """Queues whose groups overlap share those slots in the ratio of their weights."""
    default_environment: Annotated[Annotated[str, Input(Len(1, 200))] | None, Input(none="null: none.")] = None
    """Of its jobs that name none."""
    run_as: Annotated[SystemUser | None, Input(none="null: the server's own user.")] = None
    """The user of the operating system that its jobs run as; the server has to run as root."""
    max_tasks_per_job: Annotated[NumTasks | None, Input(none="null: no limit.")] = None
    open: bool = True
    """Whether it takes new jobs."""
    description: Description = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(QueueSettings):
    """Where jobs wait for the slots of one resource group."""

    KIND: ClassVar[str] = "queue"

    owner: str = ""


__all__ = ["DEFAULT_GROUP", "DEFAULT_QUEUE", "MAX_WEIGHT", "Hosts", "Queue", "ResourceGroup"]
