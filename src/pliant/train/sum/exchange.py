"""Sums the buckets of a step over the members of a generation, bucket by bucket, while others are still being filled.

Two ways, both with the same operations in the same order in every member:

in one    stock all-reduce; the order of the sum depends on the number of tasks
tree      the fixed tree of `train.sum.tree` over virtual workers, the same bits for any number of tasks: pieces of
          the partial sums go to their owners (all-to-all), are added there in the tree's order and handed out
          (broadcasts in place): as many bytes as a ring all-reduce where every task's share is one node

Buffers that a lost generation used may still be written to: `forget` drops them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pliant.train.data.sharding import cut
from pliant.train.group.collectives import Group
from pliant.train.sum import tree
from pliant.train.sum.buckets import Layout, Slot


@dataclass(slots=True)
class Exchange:
    """The sums over tasks of one training; one step at a time."""

    layout: Layout
    group: Group = field(default_factory=lambda: Group(number=0, rank=0, size=1, backend=None))
    total: tree.Total | None = None
    slots: list[Slot] = field(default_factory=list)
    """One for every partial sum that this task sends, one at least; the first one gets the sum."""
    _received: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)
    _works: dict[int, list[Any]] = field(default_factory=dict)

    def begin(self, group: Group, total: tree.Total | None, num_partials: int) -> None:
        """Start a step; `total`: how partial sums become one, None for the stock all-reduce."""
        self.group, self.total = group, total
        self._works.clear()
        num_slots = max(1, num_partials) if group.size > 1 else 0
        del self.slots[num_slots:]
        while len(self.slots) < num_slots:
            self.slots.append(self.layout.allocate())

    def start(self, number: int) -> None:
        """Send a bucket off; all members do so in the same order."""
        group, total = self.group, self.total
        if total is None:
            group.start_all_reduce(self.slots[0].buffers[number])
            return
        bucket = self.layout.buckets[number]
        shards = [len(cut(range(bucket.num_elements), group.size, rank)) for rank in range(group.size)]
        nothing = torch.empty(0, dtype=bucket.dtype, device=bucket.device)
        works = self._works[number] = []
        for turn in range(max(total.num_partials)):
            mine = turn < total.num_partials[group.rank]
            received = [shards[group.rank] if turn < count else 0 for count in total.num_partials]
            works.append(
                group.start_all_to_all(
                    self._receiving(number, turn, sum(received)),
                    self.slots[turn].buffers[number] if mine else nothing,
                    received=received,
                    sent=shards if mine else [0] * group.size,
                )
            )

    def finish(self, *, lost: Callable[[], bool]) -> None:
        """Wait until the sums are in the first slot.

        Raises:
            GenerationLost: they never will be.
        """
        if self.group.size > 1 and self.total is not None:
            self._add_up(self.total, lost)
        self.group.wait(lost=lost)

    def forget(self) -> None:
        """Drop all buffers."""
        self.slots.clear()
        self._received.clear()
        self._works.clear()

    def _receiving(self, number: int, turn: int, num_elements: int) -> torch.Tensor:
        bucket = self.layout.buckets[number]
        buffer = self._received.get((number, turn))
        if buffer is None or buffer.numel() != num_elements:
            buffer = torch.empty(num_elements, dtype=bucket.dtype, device=bucket.device)
            self._received[number, turn] = buffer
        return buffer

    def _add_up(self, total: tree.Total, lost: Callable[[], bool]) -> None:
        """Add the partial sums of my piece of every bucket in the tree's order, and hand the pieces out."""
        group = self.group
        for number, bucket in enumerate(self.layout.buckets):
            for work in self._works[number]:
                group.wait_for(work, lost=lost)
            owned = [cut(range(bucket.num_elements), group.size, rank) for rank in range(group.size)]
            whole = self.slots[0].buffers[number]
            mine = owned[group.rank]
            if mine:
                partials = self._partials(number, total, len(mine))
                _sum_into(whole[mine.start : mine.stop], partials, total.merges)
            for rank, piece in enumerate(owned):
                if piece:
                    group.start_broadcast(whole[piece.start : piece.stop], rank)

    def _partials(self, number: int, total: tree.Total, length: int) -> list[torch.Tensor]:
        """Return the received partial sums of my piece, worker by worker."""
        found = []
        for rank, count in enumerate(total.num_partials):
            for turn in range(count):
                before = sum(1 for other in total.num_partials[:rank] if other > turn)
                found.append(self._received[number, turn][before * length : (before + 1) * length])
        return found


def _sum_into(target: torch.Tensor, partials: Sequence[torch.Tensor], merges: Sequence[tree.Merge]) -> None:
    for into, source in merges[:-1]:
        partials[into].add_(partials[source])
    if merges:
        into, source = merges[-1]
        torch.add(partials[into], partials[source], out=target)
    else:
        target.copy_(partials[0])
