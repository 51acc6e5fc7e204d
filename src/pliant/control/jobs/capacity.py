"""Records how many slots there are, and that a server is there: charts tell time at rest from time without a record.

While a server runs the end of its newest span is moved on every `ALIVE_EVERY_S`, so what a killed server was last seen
doing is known to within that; whoever answers for a running server takes its span to reach until now.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pliant.core.plan import NodeView
from pliant.core.ports import Store, Writes
from pliant.core.slot_history import CapacitySpan

ALIVE_EVERY_S: Final = 10.0


class CapacityRecord:
    """The span of this server. Used under the ledger's lock."""

    def __init__(self, store: Store) -> None:
        self.span: CapacitySpan | None = None
        """The newest one; None until the first tick."""
        self._store = store

    def note(self, now: float, nodes: Sequence[NodeView]) -> None:
        """Take note of the slots that there are now; write only if their number changed, or it is time."""
        num_slots, old = sum(len(node.slots) for node in nodes), self.span
        if old is not None and old.num_slots == num_slots:
            if now - old.until_at < ALIVE_EVERY_S:
                return
            spans = [replace(old, until_at=now)]
        else:
            number = self._store.next_id("capacity span")
            spans = [] if old is None else [replace(old, until_at=now)]
            spans.append(CapacitySpan(number=number, from_at=now, until_at=now, num_slots=num_slots))
        self._store.write(Writes(capacity=tuple(spans)))
        self.span = spans[-1]
