"""Who may be a machine of the pool, and what a server tells those that are. Shapes; `entry` hands in who decides."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pliant.cluster.link.messages import Join, Joined, NodeRules, Versions
from pliant.core.job import NodeId
from pliant.core.plan import NodeView


class NodeAdmission(Protocol):
    """Who may be a machine of the pool. Its methods may wait; all raise PliantError with words for whom they refuse."""

    def join(self, join: Join, *, is_living: Callable[[NodeId], bool]) -> Joined:
        """Take a machine in."""
        ...

    def check(self, certificate: bytes) -> NodeId:
        """Return whose certificate (DER) it is, which TLS has verified, if that machine still belongs to the pool."""
        ...

    def renew(self, name: NodeId, request: str) -> Joined:
        """Give a machine its next certificate."""
        ...

    def note(self, node: NodeView) -> None:
        """Remember what a machine has said that it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """What a hub tells those who join."""

    versions: Versions
    rules_of: Callable[[NodeId], NodeRules]
    """What a machine is told."""
    may_renew: Callable[[], bool] = lambda: True
    """Tells whether this server still leads for sure: one that does not, prolongs nobody's life."""
