"""Whose copies a store holds, and who puts them there now: one copier of one pool.

Two pools that write below the same URL would write over each other's objects. So would two servers of one pool, when
the one that led before is cut off from the database and not from the store. Each copier puts its mark there when it
begins, and looks, before it changes what the store says, whether another one has come since.
"""

import json
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from pliant.objects.store import ObjectStore, StoreAway

_KEY: Final = "pool.json"
_MAX_BYTES: Final = 1 << 12


class OtherPool(Exception):
    """The copies of another pool are there. Its message says so, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMark:
    """What one copier notes in the store."""

    pool: str
    copier: str = field(default_factory=lambda: secrets.token_hex(8))

    def put(self, store: ObjectStore) -> bool:
        """Note that this copier puts copies there from now on; tell whether copies of its pool were there before.

        Raises:
            StoreAway: the store does not answer.
            OtherPool: the copies of another one are there.
        """
        found = _read(store)
        if found is not None and found.get("pool") != self.pool:
            raise OtherPool(f"{store.url} holds the results of another pool; give another bucket, or another prefix")
        store.write(_KEY, [json.dumps({"pool": self.pool, "copier": self.copier}).encode()])
        return found is not None

    def check(self, store: ObjectStore) -> None:
        """Refuse to go on if another copier has come since.

        Raises:
            StoreAway: one has, or the store does not answer.
        """
        found = _read(store)
        if found is None or found.get("copier") != self.copier:
            raise StoreAway(f"another server of this pool copies to {store.url} now, and this one has lost the lead")


def _read(store: ObjectStore) -> dict[str, Any] | None:
    content = store.read_small(_KEY, _MAX_BYTES)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
