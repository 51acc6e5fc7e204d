"""What REST answers about the pool: its slots, who holds them, and who held them."""

from dataclasses import dataclass

from pliant.core.event import Usage
from pliant.core.plan import NodeView, PolicyName


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """Steps of the function slots(job, time)."""

    points: tuple[Usage, ...]
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """A slot and who holds it; `job_id` and `task_id` are None if it is free, or somebody else's job holds it.

    If several tasks hold a part of it each, they name the one that has been there longest.
    """

    node_id: str
    slot: int
    taken: bool
    job_id: str | None
    task_id: str | None
    sharers: tuple[str, ...] = ()
    """The tasks that hold a part of it each, as far as they may be seen; empty if one task has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The pool: its nodes, every slot, and the policy that shares them."""

    policy: PolicyName
    nodes: tuple[NodeView, ...]
    slots: tuple[SlotView, ...]
    version: str
    now: float
