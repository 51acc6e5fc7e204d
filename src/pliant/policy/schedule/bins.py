"""Slots that sharers were granted together, searchable by what is left of them (`Bins`).

A task goes into the fullest slot that has room for it now, if any has; else into the fullest that will have room. To
find it without a look at all, slots are kept in the order of what will be left, in three lists: those that have now all
that they will have (a task that fits later fits now), those that have some of it, and those that have nothing now.
"""

from bisect import bisect_left, insort
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from pliant.core.job import NodeId
from pliant.core.workload import TaskView
from pliant.policy.schedule.fold import SlotPlace

_Key = tuple[int, bool, tuple[()] | SlotPlace, int]
"""What will be left, whether it is unknown which slot it is, the slot, and its number."""


@dataclass(slots=True, eq=False, kw_only=True)
class Bin:
    """A slot that is granted, with what is left of it, in thousandths."""

    place: SlotPlace | None
    """None: it is not known yet which it will be."""
    now: int
    """What no process holds."""
    later: int
    """What is left when those who leave have left."""
    tasks: list[tuple[int, TaskView]] = field(default_factory=list)
    """Who stays there: the sharer's number, and the task."""


class Bins:
    """All of them; `now` and `later` are changed by its methods alone. A copy is independent of it."""

    def __init__(self, bins: Sequence[Bin]) -> None:
        self._bins = list(bins)
        self._ordered: tuple[list[_Key], list[_Key], list[_Key]] = ([], [], [])
        for number, one in enumerate(bins):
            self._ordered[_kind(one)].append(_key(one, number))
        for keys in self._ordered:
            keys.sort()

    def __iter__(self) -> Iterator[Bin]:
        return iter(self._bins)

    def __len__(self) -> int:
        return len(self._bins)

    def __getitem__(self, number: int) -> Bin:
        return self._bins[number]

    def find(self, size: int, excluded: Container[NodeId]) -> int | None:
        """Return the number of the slot for a task of this size; None if there is room in none."""
        whole, some, none = self._ordered
        ready = [next(self._fitting(whole, size, excluded), None)]
        ready.append(next((key for key in self._fitting(some, size, excluded) if self[key[-1]].now >= size), None))
        if found := min((key for key in ready if key is not None), default=None):
            return found[-1]
        later = (next(self._fitting(keys, size, excluded), None) for keys in (some, none))
        found = min((key for key in later if key is not None), default=None)
        return None if found is None else found[-1]

    def _fitting(self, keys: Sequence[_Key], size: int, excluded: Container[NodeId]) -> Iterator[_Key]:
        for at in range(bisect_left(keys, (size,)), len(keys)):
            place = self._bins[keys[at][-1]].place
            if place is None or place.node_id not in excluded:
                yield keys[at]

    def change(self, number: int, *, now: int, later: int) -> None:
        """Set what is left of a slot."""
        one = self._bins[number]
        keys = self._ordered[_kind(one)]
        del keys[bisect_left(keys, _key(one, number))]
        one.now, one.later = now, later
        insort(self._ordered[_kind(one)], _key(one, number))


def _kind(one: Bin) -> int:
    if one.now >= one.later:
        return 0
    return 1 if one.now > 0 else 2


def _key(one: Bin, number: int) -> _Key:
    return one.later, one.place is None, one.place or (), number
