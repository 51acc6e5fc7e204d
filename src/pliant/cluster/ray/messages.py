"""What the process that speaks to Ray and its server say to each other. Shapes only, no logic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pliant.cluster.json_lines import by_kind
from pliant.cluster.launcher import LauncherState


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginRay:
    """Start agents on the nodes of this Ray cluster."""

    address: str
    """Of Ray's head, HOST:PORT; `auto`: of the Ray that runs on this machine."""
    pool: str
    """What tells this pool from others on the same Ray cluster."""
    server: str
    """Where agents reach the server, HOST:PORT."""
    own: tuple[str, ...] | None = ()
    """With which options the agent of the server's own node is started; None: there none is."""
    resources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By which nodes can be asked for, those that are asked for first before others; and with which options the agent
    of a node that has it is started."""
    kind: Literal["begin ray"] = "begin ray"


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveToken:
    """A join token that was asked for."""

    machine: str
    token: str = field(repr=False)
    kind: Literal["give token"] = "give token"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRay:
    """What Ray's autoscaler is to be asked for, in place of what it was asked for before."""

    num_machines: Mapping[str, int]
    """By resource, that there shall be in all."""
    let_go: tuple[str, ...]
    """Of the nodes that can be asked for, by Ray's numbers: those that it may take away. The others are held."""
    kind: Literal["scale ray"] = "scale ray"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayReached:
    """Ray has answered."""

    address: str
    kind: Literal["ray reached"] = "ray reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWanted:
    """The agent of a node has not joined yet."""

    machine: str
    kind: Literal["token wanted"] = "token wanted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNode:
    """A node of Ray's, and what its agent does."""

    ray_id: str
    machine: str
    """What it is called in the pool; empty as long as it has no name."""
    state: LauncherState
    said: str = ""
    """The last line that an agent wrote which has ended, or what keeps one from being started."""
    resource: str = ""
    """By which Ray's autoscaler is asked for nodes like it; empty: it is not."""
    draining: str = ""
    """That Ray drains it, in words; empty: it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNodesSeen:
    """All nodes that Ray says are alive, but for the server's own if it has no agent; sent when they have changed."""

    nodes: tuple[RayNode, ...]
    kind: Literal["ray nodes seen"] = "ray nodes seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayLost:
    """Ray does not answer, or not as it should; the process ends."""

    reason: str
    kind: Literal["ray lost"] = "ray lost"


ToRayProcess = BeginRay | GiveToken | ScaleRay
FromRayProcess = RayReached | TokenWanted | RayNodesSeen | RayLost

TO_RAY_PROCESS: Final[Mapping[str, type[ToRayProcess]]] = by_kind((BeginRay, GiveToken, ScaleRay))
FROM_RAY_PROCESS: Final[Mapping[str, type[FromRayProcess]]] = by_kind((RayReached, TokenWanted, RayNodesSeen, RayLost))
