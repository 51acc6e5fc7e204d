"""Whose copies a store holds: two pools that write below the same URL would write over each other's."""

import json
from typing import Final

from pliant.objects.store import ObjectStore

_KEY: Final = "pool.json"
_MAX_BYTES: Final = 1 << 12


class OtherPool(Exception):
    """The copies of another pool are there. Its message says so, and what to do."""


def claim(store: ObjectStore, pool: str) -> bool:
    """Note that the copies of a pool are in a store; tell whether that was noted before.

    Raises:
        StoreAway: the store does not answer.
        OtherPool: those of another one are there.
    """
    found = store.read_small(_KEY, _MAX_BYTES)
    if found is None:
        store.write(_KEY, [json.dumps({"pool": pool}).encode()])
        return False
    try:
        other = json.loads(found)["pool"]
    except (ValueError, KeyError, TypeError):
        other = None
    if other != pool:
        raise OtherPool(f"{store.url} holds the results of another pool; give another bucket, or another prefix")
    return True
