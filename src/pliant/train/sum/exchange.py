"""Sums the buckets of a step over the members of a generation, bucket by bucket, while others are still being filled.

Two ways, both with the same operations in the same order in every member:

in one    stock all-reduce; the order of the sum depends on the number of tasks
tree      the fixed tree of `pliant.train.sum.tree` over virtual workers, the same bits for any number of tasks: every
          task owns a piece of each bucket. It gets the partial sums of its piece from all others (all-to-all), adds
          them in the tree's order, and sends the result to all others (broadcast in place)

Example of the second: a bucket of 7 elements, 3 tasks, one partial sum in each. The pieces have 3, 2 and 2 elements.
Task 0 sends elements 3-4 of its partial sum to task 1 and 5-6 to task 2, and gets elements 0-2 of theirs. It adds the
three versions of elements 0-2 and broadcasts the sum. Where every task has one partial sum, as here, that is as many
bytes as a ring all-reduce takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pliant.train.data.sharding import cut
from pliant.train.group.collectives import Group
from pliant.train.sum import tree
from pliant.train.sum.buckets import BucketLayout, BufferSet
from pliant.train.sum.memory import SumMemory


@dataclass(slots=True)
class Exchange:
    """The sums over tasks of one training; one step at a time."""

    layout: BucketLayout
    group: Group = field(default_factory=lambda: Group(number=0, rank=0, size=1, backend=None))
    total: tree.GlobalSum | None = None
    memory: SumMemory = field(init=False)
    _received: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)
    """Of this step, by bucket and turn."""
    _works: dict[int, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory = SumMemory(self.layout)

    @property
    def buffer_sets(self) -> list[BufferSet]:
        """One for every partial sum that this task sends, at least one; the first one receives the sum."""
        return self.memory.sets

    def prepare(self, size: int, total: tree.GlobalSum | None, num_partials: int) -> None:
        """Have memory ready for a generation of so many members that still connects; callable from any thread."""
        if size > 1:
            num_turns = 0 if total is None else max(total.num_partials)
            self.memory.prepare(num_sets=max(1, num_partials), num_turns=num_turns)

    def begin(self, group: Group, total: tree.GlobalSum | None, num_partials: int) -> None:
        """Start a step; `total` says how partial sums become one, None is the stock all-reduce."""
        self.group, self.total = group, total
        self._works.clear()
        self._received.clear()
        self.memory.begin(max(1, num_partials) if group.size > 1 else 0)

    def start(self, number: int) -> None:
        """Start the exchange of a bucket; all members do so in the same order."""
        group, total = self.group, self.total
        if total is None:
            group.start_all_reduce(self.buffer_sets[0].buffers[number])
            return
        bucket = self.layout.buckets[number]
        shards = [len(cut(range(bucket.num_elements), group.size, rank)) for rank in range(group.size)]
        nothing = torch.empty(0, dtype=bucket.dtype, device=bucket.device)
        works = self._works[number] = []
        for turn in range(max(total.num_partials)):
            mine = turn < total.num_partials[group.rank]
            received = [shards[group.rank] if turn < count else 0 for count in total.num_partials]
            buffer = self._received[number, turn] = self.memory.received(number, turn, sum(received))
            works.append(
                group.start_all_to_all(
                    buffer,
                    self.buffer_sets[turn].buffers[number] if mine else nothing,
                    received=received,
                    sent=shards if mine else [0] * group.size,
                )
            )

    def finish(self, *, is_lost: Callable[[], bool]) -> None:
        """Wait until the sums are in the first buffer set.

        Raises:
            GenerationLost: they never will be.
        """
        if self.group.size > 1 and self.total is not None:
            self._add_up(self.total, is_lost)
        self.group.wait(is_lost=is_lost)

    def forget(self) -> None:
        """Put the buffers of a lost generation aside."""
        self.memory.put_aside(self.group)
        self._received.clear()
        self._works.clear()

    def close(self) -> None:
        """Drop all buffers."""
        self.forget()
        self.memory.close()

    def _add_up(self, total: tree.GlobalSum, is_lost: Callable[[], bool]) -> None:
        """Add the partial sums of my piece of every bucket in the tree's order, and send the result to all others."""
        group = self.group
        for number, bucket in enumerate(self.layout.buckets):
            for work in self._works[number]:
                group.wait_for(work, is_lost=is_lost)
            owned = [cut(range(bucket.num_elements), group.size, rank) for rank in range(group.size)]
            whole = self.buffer_sets[0].buffers[number]
            mine = owned[group.rank]
            if mine:
                partials = self._partials(number, total, len(mine))
                _sum_into(whole[mine.start : mine.stop], partials, total.merges)
            for rank, piece in enumerate(owned):
                if piece:
                    group.start_broadcast(whole[piece.start : piece.stop], rank)

    def _partials(self, number: int, total: tree.GlobalSum, length: int) -> list[torch.Tensor]:
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
