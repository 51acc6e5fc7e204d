"""What people say of an endpoint (`EndpointSettings`), what became of it (`Endpoint`), and the versions of its model.

An endpoint is a name under which a model answers. Every deployment makes a version; a version is realised by a job of
the kind `endpoint`, whose tasks are called kernels. Example: `digits` has versions 1 and 2; version 2 has all traffic
and is `job-9`, which holds three kernels; version 1 is retired, and nothing of it runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Le, Len, MaxLen

from pliant.core.access import SharedWith
from pliant.core.input import NO_NUL, Input, Pattern
from pliant.core.job import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    MIN_MEMORY_BYTES,
    JobId,
    Priority,
    QueueName,
    Task,
    VariableName,
)
from pliant.core.lifecycle import JobState, TaskState
from pliant.core.parameter import Text
from pliant.core.serving import VersionLoad
from pliant.core.serving_profile import Runner, ServingProfile
from pliant.core.slot import Slots

EndpointName = Annotated[
    str,
    Input(
        Pattern(
            r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$",
            "letters, digits, '.', '_' and '-', 50 at most, a letter or digit first",
        ),
        doc="Of letters, digits, '.', '_' and '-', 50 at most, beginning with a letter or digit.",
    ),
]

MAX_VERSIONS: Final = 50
"""Versions that an endpoint keeps; the oldest that serve nothing go first."""


@dataclass(frozen=True, kw_only=True)
class EndpointSettings(ServingProfile):
    """What people say of an endpoint. A field that is added here is one of the REST body and of the commands, too."""

    description: Text = ""
    priority: Priority = DEFAULT_PRIORITY
    """1 to 10000; of twice the priority it gets twice the slots beyond its minimum."""
    queue: Annotated[QueueName, Input(NO_NUL)] = DEFAULT_QUEUE
    shared_with: Annotated[SharedWith, Input(doc="Names of users; `*` is everybody.")] = ()
    """Who may ask it, and see it, besides its owner."""


@dataclass(frozen=True, kw_only=True)
class VersionSettings:
    """What people say of one version of a model."""

    slots_per_task: Slots = 1
    """GPUs, or CPU shares, that every kernel holds; or a part of one, such as 0.25: kernels of several endpoints of a
    queue share slots then."""
    memory_bytes: Annotated[int, Input(Ge(MIN_MEMORY_BYTES), Le(2**50))] | None = None
    """End a kernel that uses more memory than this. If left out, a kernel that holds a part of a slot may use that part
    of the machine's memory for one slot, and 512 MiB at least."""
    environment: Annotated[str, Input(Len(1, 4000), Pattern(r"^[^\x00-\x1f]+$", "one line of text"))] | None = None
    """What kernels run in, as for jobs."""
    env: Annotated[Mapping[VariableName, str], Input(MaxLen(1000))] = field(default_factory=dict)
    """Extra environment variables of every kernel."""


Percent = Annotated[int, Input(Ge(0), Le(100))]
Traffic = Mapping[int, Percent]
"""How many percent of the requests that name no version each version takes, by its number; 100 in all, or empty."""


class VersionState(StrEnum):
    """Where a version is in its life."""

    STARTING = "starting"
    """Its first kernel loads the model; those that have the traffic serve meanwhile."""
    SERVING = "serving"
    """It has loaded, and has traffic or is to have some."""
    RETIRED = "retired"
    """It has no traffic any more; it can be brought back."""
    FAILED = "failed"
    """Its model did not load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointVersion(VersionSettings):
    """One deployment of an endpoint; `number` counts from 1 and is never given again."""

    number: int
    runner: Runner
    file: str
    """What is run, in the model's folder: `kernel.py`, `model.onnx`, …"""
    args: tuple[str, ...] = ()
    """Of a trained job's script."""
    dataset: str | None = None
    """That a trained job's script opens before it builds its model."""
    data_dir: str | None = None
    python: str | None = None
    weights: str | None = None
    """A `state_dict` in the model's folder that is loaded into what the script builds."""
    source: str = ""
    """What was deployed, for people: `job-3`, or a folder's name."""
    checksum: str
    """SHA-256 of the archive, in hex; under it the archive is kept."""
    num_bytes: int
    state: VersionState
    reason: str = ""
    """Why it is in its state, if it has failed."""
    job_id: JobId | None = None
    """The newest job that realised it."""
    created_at: float
    created_by: str
    metadata: Mapping[str, object] = field(default_factory=dict)
    """What its model said of itself when it was loaded: `platform`, `inputs`, `outputs` as the Open Inference Protocol
    has them. Empty before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficExchange:
    """Traffic on its way from one split between versions to another."""

    goal: Traffic
    fallback: Traffic = field(default_factory=dict)
    """Where it goes instead if a version of the goal does not load; empty: it stays where it is."""
    num_kernels: int = 0
    """The most kernels that the load has needed since traffic began to move; all versions together never have fewer if
    there are slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(EndpointSettings):
    """An endpoint as it is kept."""

    KIND: ClassVar[str] = "endpoint"

    name: EndpointName
    owner: str
    started: bool = True
    """Somebody may stop it: it holds no slots then, and refuses requests."""
    versions: tuple[EndpointVersion, ...] = ()
    """Oldest first."""
    current: int | None = None
    """The version that serves, with the most traffic of the last split that was reached; None before one ever did."""
    traffic: Traffic = field(default_factory=dict)
    """Which versions take the traffic now; empty: the current one has all of it."""
    exchange: TrafficExchange | None = None
    next_number: int = 1

    @property
    def traffic_now(self) -> Traffic:
        """Return the traffic of every version that has some; empty before one ever served."""
        if self.traffic:
            return self.traffic
        return {} if self.current is None else {self.current: 100}

    def version(self, number: int | None) -> EndpointVersion | None:
        """Return a version by its number."""
        return next((version for version in self.versions if version.number == number), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionStatus:
    """How a version that runs stands."""

    job_id: JobId
    state: JobState
    token: str = field(repr=False)
    """What its kernels show the gateway."""
    has_served: bool
    wanted: int
    demand: str
    """Why so many, in a sentence of the autoscaler."""
    needed: int = 0
    """Kernels that its own load needs, within its bounds; an exchange may want more of it."""
    num_failures: int = 0
    """Kernels lost in a row, with no request answered in between."""
    colour: int = 0
    """Of its job in charts."""
    has_answered: bool = False
    """It has answered a request, or may have before this server began."""
    why: str
    """Why it has the slots it has, in a sentence of the scheduler."""
    kernels: tuple[Task, ...]
    """Those that have not ended, oldest first; one in the state `training` takes requests."""
    load: VersionLoad | None
    metadata: Mapping[str, object]

    @property
    def num_ready(self) -> int:
        return sum(task.state is TaskState.TRAINING for task in self.kernels)

    @property
    def num_staying(self) -> int:
        """Kernels that nobody has asked to leave."""
        return sum(task.state is not TaskState.LEAVING for task in self.kernels)
