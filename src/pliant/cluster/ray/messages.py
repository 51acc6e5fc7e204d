"""What the process that speaks to Ray and its server say to each other. Shapes only, no logic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pliant.cluster.json_lines import by_kind

LauncherState = Literal["starting", "running", "waiting", "ended"]
"""Of the agent of a node: begun with, there, waits for a join token, has ended and is started again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginRay:
    """Start agents on the nodes of this Ray cluster."""

    address: str
    """Of Ray's head, HOST:PORT; `auto`: of the Ray that runs on this machine."""
    pool: str
    """What tells this pool from others on the same Ray cluster."""
    server: str
    """Where agents reach the server, HOST:PORT."""
    kind: Literal["begin ray"] = "begin ray"


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveToken:
    """A join token that was asked for."""

    machine: str
    token: str = field(repr=False)
    kind: Literal["give token"] = "give token"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNodesSeen:
    """All nodes that Ray says are alive, but for the server's own; sent when something of them has changed."""

    nodes: tuple[RayNode, ...]
    kind: Literal["ray nodes seen"] = "ray nodes seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayLost:
    """Ray does not answer, or not as it should; the process ends."""

    reason: str
    kind: Literal["ray lost"] = "ray lost"


ToRayProcess = BeginRay | GiveToken
FromRayProcess = RayReached | TokenWanted | RayNodesSeen | RayLost

TO_RAY_PROCESS: Final[Mapping[str, type[ToRayProcess]]] = by_kind((BeginRay, GiveToken))
FROM_RAY_PROCESS: Final[Mapping[str, type[FromRayProcess]]] = by_kind((RayReached, TokenWanted, RayNodesSeen, RayLost))
