"""The REST bodies about queues and resource groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from annotated_types import Len, MaxLen
from pydantic import model_validator

from pliant.api.request import Patch, Request
from pliant.core.machine import LabelValue
from pliant.core.queue import GroupSettings, Hosts, Queue, QueueSettings, ResourceGroup

HostName = Annotated[str, Len(1, 200)]


class HostsRequest(Request):
    """Which hosts: all, those named, or those that carry all of these labels."""

    all: bool = False
    names: Annotated[tuple[HostName, ...], MaxLen(4096)] | None = None
    labels: Annotated[dict[LabelValue, LabelValue], Len(1, 20)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if [self.all, self.names is not None, self.labels is not None].count(True) != 1:
            raise ValueError("say which hosts in one way: all, names or labels")
        return self

    def noun(self) -> Hosts:
        """Return the noun."""
        return Hosts(names=self.names, labels=self.labels)


class GroupRequest(Request, GroupSettings):
    """A resource group to make: so many slots of each of these hosts."""

    hosts: HostsRequest

    def noun(self, owner: str) -> ResourceGroup:
        """Return the noun."""
        return ResourceGroup(**{**self.given(), "owner": owner, "hosts": self.hosts.noun()})


class GroupPatch(Patch, of=GroupSettings, but=("name",)):
    """What of a resource group to change; what is left out stays as it is."""

    hosts: HostsRequest | None = None

    def changes(self) -> Mapping[str, Any]:
        """Return the fields that change."""
        return {**super().changes(), **({} if self.hosts is None else {"hosts": self.hosts.noun()})}


class QueueRequest(Request, QueueSettings):
    """A queue to make."""

    def noun(self, owner: str) -> Queue:
        """Return the noun."""
        return Queue(owner=owner, **self.given())


class QueuePatch(Patch, of=QueueSettings, but=("name",)):
    """What of a queue to change; what is left out stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """What a resource group has of a host."""

    node_id: str
    num_slots: int
    """Of the group."""
    num_all_slots: int
    num_gpus: int
    num_cpus: int
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A resource group and the hosts that it has now."""

    group: ResourceGroup
    hosts: tuple[HostView, ...]
    num_slots: int
    queues: tuple[str, ...]
    """That are over it."""
    notes: tuple[str, ...]
    """What people should know, such as why it has no slots now."""
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """All resource groups."""

    groups: tuple[GroupView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue and how it stands."""

    queue: Queue
    num_slots: int
    """Of its group."""
    num_waiting: int
    """Jobs that hold no slot."""
    num_running: int
    """Jobs that hold slots."""
    num_held: int
    """Slots that its jobs hold."""
    num_deserved: int
    """Slots that it is entitled to now: by weight among those who want slots, no more than its jobs can use."""
    num_borrowed: int
    """Slots that its jobs hold beyond those: it gives them back when queues that hold less can use them."""
    num_lent: int
    """Slots that it is entitled to and its jobs do not hold: others hold them now, or they wait to be taken."""
    notes: tuple[str, ...]
    """What people should know, such as why its group has no slots now."""
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """All queues."""

    queues: tuple[QueueView, ...]
