"""Which machines hand out which trees to others, as far as they have said so."""

import hashlib
import hmac
import threading
from dataclasses import dataclass, field
from typing import Final

from pliant.cluster.mirror.messages import NeighbourAddress
from pliant.core.job import NodeId

_MAX_TREES: Final = 10_000
_NUM_NAMED: Final = 3


@dataclass(slots=True, kw_only=True)
class TreeHolders:
    """Who has what. Safe to use from any thread."""

    secret: bytes
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _found: dict[str, dict[NodeId, NeighbourAddress]] = field(default_factory=dict, init=False)
    """By the digests of listings, the oldest first."""

    def key_of(self, digest: str) -> str:
        """Return by which machines that may read a tree know each other."""
        return hmac.new(self.secret, b"neighbours\0" + digest.encode(), hashlib.sha256).hexdigest()

    def note(self, node_id: NodeId, digest: str, address: NeighbourAddress) -> None:
        """Take note that a machine hands out a tree that it has."""
        with self._lock:
            while digest not in self._found and len(self._found) >= _MAX_TREES:
                del self._found[next(iter(self._found))]
            self._found.setdefault(digest, {})[node_id] = address

    def neighbours_of(self, node_id: NodeId, digest: str) -> tuple[NeighbourAddress, ...]:
        """Return who else has a tree: a few, other ones for each machine that asks."""
        with self._lock:
            others = {name: at for name, at in self._found.get(digest, {}).items() if name != node_id}
        names = sorted(others, key=lambda name: hashlib.sha256(f"{node_id}/{name}".encode()).digest())
        return tuple(others[name] for name in names[:_NUM_NAMED])

    def forget(self, node_id: NodeId) -> None:
        """Name a machine to no other any more."""
        with self._lock:
            for holders in self._found.values():
                holders.pop(node_id, None)
