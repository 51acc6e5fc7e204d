"""The REST bodies about queues and resource groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from pliant.api.jobs import MAX_VIRTUAL_WORKERS, Request
from pliant.core.errors import InvalidInput
from pliant.core.formula import MAX_LENGTH, read_formula
from pliant.core.plan import PolicyName
from pliant.core.queue import MAX_WEIGHT, Hosts, Queue, ResourceGroup

R = TypeVar("R", bound=Request)
Name = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Text = Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")]
Label = Annotated[str, Field(max_length=60, pattern=r"^[A-Za-z0-9._/-]*$")]
NumSlots = Annotated[int, Field(ge=0, le=4096, strict=True)]
SlotsPerHost = NumSlots | Annotated[str, Field(min_length=1, max_length=MAX_LENGTH)]


def _checked(value: int | str | None) -> int | str | None:
    if isinstance(value, str):
        try:
            read_formula(value)
        except InvalidInput as error:
            raise ValueError("; ".join(problem.message for problem in error.problems)) from error
    return value


class HostsRequest(Request):
    """Which hosts: all, those named, or those that carry all of these labels."""

    all: Annotated[bool, Field(strict=True)] = False
    names: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=4096)] | None = (
        None
    )
    labels: Annotated[dict[Label, Label], Field(min_length=1, max_length=20)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if [self.all, self.names is not None, self.labels is not None].count(True) != 1:
            raise ValueError("say which hosts in one way: all, names or labels")
        return self

    def noun(self) -> Hosts:
        """Return the noun."""
        return Hosts(names=self.names, labels=self.labels)


class GroupRequest(Request):
    """A resource group to make: so many slots of each of these hosts."""

    name: Name
    hosts: HostsRequest
    slots_per_host: SlotsPerHost | None = None
    """A number, or a formula over `ngpus` and `ncpus` such as `min(ngpus, 4)`; null: all that a host has."""
    description: Text = ""

    _formula = field_validator("slots_per_host")(_checked)

    def noun(self, owner: str) -> ResourceGroup:
        """Return the noun."""
        return ResourceGroup(
            name=self.name,
            owner=owner,
            hosts=self.hosts.noun(),
            slots_per_host=self.slots_per_host,
            description=self.description,
        )


class GroupPatch(Request):
    """What of a resource group to change; what is left out stays as it is."""

    hosts: HostsRequest | None = None
    slots_per_host: SlotsPerHost | None = None
    """null: all that a host has."""
    description: Text | None = None

    _formula = field_validator("slots_per_host")(_checked)

    def changes(self) -> Mapping[str, object]:
        """Return the fields that change."""
        found: dict[str, object] = {name: getattr(self, name) for name in self.model_fields_set}
        if self.hosts is not None:
            found["hosts"] = self.hosts.noun()
        return {name: value for name, value in found.items() if value is not None or name == "slots_per_host"}

    @model_validator(mode="after")
    def _something(self) -> Self:
        return _refuse_nothing(self)


class QueueRequest(Request):
    """A queue to make."""

    name: Name
    resource_group: Annotated[str, Field(min_length=1, max_length=60)] = "all"
    policy: PolicyName = PolicyName.FAIRSHARE
    preemption: Annotated[bool, Field(strict=True)] = True
    """Whether its jobs can be shrunk and paused for others; if not they keep what they have."""
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT, strict=True)] = 1
    """Queues whose groups overlap share those slots in the ratio of their weights."""
    default_environment: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Of its jobs that name none."""
    run_as: Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z_][A-Za-z0-9._-]*\$?$")] | None = None
    """The user of the operating system that its jobs run as; the server has to run as root."""
    max_tasks_per_job: Annotated[int, Field(ge=1, le=MAX_VIRTUAL_WORKERS, strict=True)] | None = None
    open: Annotated[bool, Field(strict=True)] = True
    """Whether it takes new jobs."""
    description: Text = ""

    def noun(self, owner: str) -> Queue:
        """Return the noun."""
        return Queue(owner=owner, **{name: getattr(self, name) for name in type(self).model_fields})


class QueuePatch(Request):
    """What of a queue to change; what is left out stays as it is."""

    resource_group: Annotated[str, Field(min_length=1, max_length=60)] | None = None
    policy: PolicyName | None = None
    preemption: Annotated[bool, Field(strict=True)] | None = None
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT, strict=True)] | None = None
    default_environment: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """null: none."""
    run_as: Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z_][A-Za-z0-9._-]*\$?$")] | None = None
    """null: the server's own user."""
    max_tasks_per_job: Annotated[int, Field(ge=1, le=MAX_VIRTUAL_WORKERS, strict=True)] | None = None
    """null: no limit."""
    open: Annotated[bool, Field(strict=True)] | None = None
    description: Text | None = None

    def changes(self) -> Mapping[str, object]:
        """Return the fields that change."""
        found = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in found.items() if value is not None or name in _CAN_BE_NONE}

    @model_validator(mode="after")
    def _something(self) -> Self:
        return _refuse_nothing(self)


_CAN_BE_NONE = frozenset({"default_environment", "run_as", "max_tasks_per_job"})


def _refuse_nothing(request: R) -> R:
    if not request.model_fields_set:
        raise ValueError(f"nothing to change: give one of {', '.join(type(request).model_fields)}")
    return request


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
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """All queues."""

    queues: tuple[QueueView, ...]
