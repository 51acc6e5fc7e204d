"""Slots that sharers were granted together, shared out among them: who has how many tasks, and in which slots.

Theory of operation
===================
1. Each sharer deserves tasks of the thousandths that all slots granted have together (`share`), never fewer than its
   minimum, never more than its maximum.
2. Tasks stay where they are. Missing ones go into the fullest slot that has room for them: now, if no process holds it,
   or once those who leave it have left. Minimums come first, then what is deserved, then what nobody deserving can use.
3. Where there is no room for what somebody deserves, surplus of others is told to leave. Where there is none for a
   minimum though the slots are large enough, whole slots are emptied, the emptiest first, and their tasks move.
4. A task whose slot is given up leaves, and starts anew where there is room, if there is any.

Example: two slots, `a` and `b` with one task of 500 thousandths each, each on a slot of its own. One slot is to be
given up, the second. The task of `b` is told to leave, and another of `b` starts beside that of `a`.

Laws: the tasks of a slot never hold more than all of it, those who leave among them. Minimums are not undercut but for
lack of room. Knows nothing of who else wants slots.
"""

import copy
import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pliant.core.plan import Grant, Placement, PolicyName
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import TaskView
from pliant.policy.schedule.bins import Bin, Bins
from pliant.policy.schedule.fold import Sharer, SlotPlace, Together, backs_off, bounds_of, place_of
from pliant.policy.schedule.share import Demand, Shares, fill, serve_in_order


@dataclass(slots=True, eq=False, kw_only=True)
class _Part:
    """What one sharer gets. All numbers are of tasks."""

    number: int
    sharer: Sharer
    least: int
    most: int
    may_start: bool
    gives_up: bool
    """Its surplus may be taken."""
    kept: int = 0
    """Tasks that stay in slots that are granted."""
    starts: list[SlotPlace] = field(default_factory=list)
    num_later: int = 0
    """Tasks that shall start once there is room."""
    moves: list[TaskView] = field(default_factory=list)
    """Tasks in slots that are given up."""
    leave: list[TaskView] = field(default_factory=list)
    share: int = 0

    @property
    def size(self) -> int:
        return self.sharer.size

    @property
    def target(self) -> int:
        return self.kept + len(self.starts) + self.num_later


@dataclass(slots=True, eq=False, kw_only=True)
class Shared:
    """What became of slots that were granted together."""

    grants: Sequence[Grant]
    """One for each sharer."""
    held_back: bool
    """Somebody keeps surplus that another deserves until a cool-down ends."""


def share_out(together: Together, granted: Grant, *, now: float, cooldown_s: float) -> Shared:
    """Return what each sharer shall have of the slots that they are granted together.

    Args:
        together: the sharers, and which of their tasks stay.
        granted: of whole slots; `leave` names slots as `fold` does.
        now: seconds, as all instants of the workloads.
        cooldown_s: a workload whose size changed less than this ago gives up no surplus, but for a minimum.
    """
    work = _Work(together, granted, now, cooldown_s)
    work.deserve(granted.num_tasks)
    work.place_minimums()
    held_back = work.place_shares()
    work.use_up()
    return Shared(grants=[_grant(part) for part in work.parts], held_back=held_back)


class _Work:
    """The decision in its course."""

    def __init__(self, together: Together, granted: Grant, now: float, cooldown_s: float) -> None:
        self.together = together
        self.parts = [
            _part(number, sharer, now, cooldown_s, protected=not together.queue.preemption)
            for number, sharer in enumerate(together.sharers)
        ]
        bins: list[Bin] = []
        number_of = {id(part.sharer): part.number for part in self.parts}
        given_up = set(granted.leave)
        for place, held in together.places.items():
            tasks = [(number_of[id(sharer)], task) for sharer, task in held]
            if f"{place.node_id}/{place.slot}" in given_up:
                for number, task in tasks:
                    self.parts[number].moves.append(task)
            elif tasks:
                left = WHOLE_SLOT - sum(sharer.size for sharer, _ in held)
                bins.append(Bin(place=place, now=together.rooms[place], later=left, tasks=tasks))
                for number, _ in tasks:
                    self.parts[number].kept += 1
        for placement in granted.start:
            place = SlotPlace(placement.node_id, placement.slots[0])
            bins.append(Bin(place=place, now=WHOLE_SLOT, later=WHOLE_SLOT))
        num_to_come = granted.num_tasks - len(bins)
        self.bins = Bins([*bins, *(Bin(place=None, now=0, later=WHOLE_SLOT) for _ in range(num_to_come))])

    def deserve(self, num_slots: int) -> None:
        """Set what everybody deserves of these slots."""
        demands = [Demand(p.sharer.workload.priority, p.size, p.least, p.most) for p in self.parts]
        total = num_slots * WHOLE_SLOT
        fair = self.together.queue.policy is PolicyName.FAIRSHARE
        self.shares: Shares = fill(demands, total) if fair else serve_in_order(demands, total)
        for part, tasks in zip(self.parts, self.shares.tasks, strict=True):
            part.share = tasks

    def place_minimums(self) -> None:
        """Find room for what minimums lack; take others' surplus for it, and in the end empty slots."""
        self._place_up_to([part.least for part in self.parts])
        for part in self._lacking():
            while part.target < part.least and self._find_room(part, for_minimum=True):
                pass
        if self._lacking():
            self._empty_slots()

    def _lacking(self) -> list[_Part]:
        return [part for part in self.parts if part.target < part.least and part.may_start]

    def _empty_slots(self) -> None:
        """Let the tasks of whole slots move, the emptiest first, until all minimums have room, or leave all alone."""
        before = self.parts, self.bins
        full = sorted((at for at, b in enumerate(self.bins) if b.tasks), key=lambda at: -self.bins[at].later)
        for num in range(1, len(full) + 1):
            self.parts, self.bins = copy.deepcopy(before)
            for at in full[:num]:
                self._empty(at)
            self._place_up_to([part.least for part in self.parts])
            if not self._lacking():
                return
        self.parts, self.bins = before

    def _empty(self, at: int) -> None:
        emptied, later = self.bins[at], self.bins[at].later
        for number, task in emptied.tasks:
            part = self.parts[number]
            part.moves.append(task)
            part.kept -= 1
            later += part.size
        emptied.tasks = []
        self.bins.change(at, now=0, later=later)  # it takes nobody before it is empty

    def _place_up_to(self, targets: Sequence[int]) -> None:
        """SlotPlace what is missing, the largest tasks first: they are hardest to place."""
        for part in sorted(self.parts, key=lambda part: -part.size):
            while part.target < targets[part.number] and self._place(part):
                pass

    def _place(self, part: _Part) -> bool:
        """Find room for one more task, now or later."""
        if not part.may_start:
            return False
        at = self.bins.find(part.size, part.sharer.workload.kept_off)
        if at is None:
            return False
        found = self.bins[at]
        if found.place is not None and found.now >= part.size:
            part.starts.append(found.place)
            self.bins.change(at, now=found.now - part.size, later=found.later - part.size)
        else:
            part.num_later += 1
            self.bins.change(at, now=found.now, later=found.later - part.size)
        return True

    def place_shares(self) -> bool:
        """Bring everybody up to what it deserves; tell whether a cool-down keeps somebody from that."""
        self._place_up_to([part.share for part in self.parts])
        held_back = False
        for part in sorted(self.parts, key=lambda part: -part.size):
            while part.target < part.share and part.may_start:
                if not self._find_room(part, for_minimum=False):
                    held_back = held_back or any(p.kept > p.share and not p.gives_up for p in self.parts)
                    break
        return held_back

    def _find_room(self, part: _Part, *, for_minimum: bool) -> bool:
        """Find room for one more task: where a larger one was told to leave before, else with the surplus of others."""
        return self._place(part) or self._take_surplus(part, for_minimum=for_minimum)

    def _take_surplus(self, part: _Part, *, for_minimum: bool) -> bool:
        """Have as few tasks leave as make room for one of a part in one slot; tell whether there are such tasks."""
        best: tuple[int, int] | None = None
        for at, one in enumerate(self.bins):
            victims = self._victims(one, part, for_minimum=for_minimum)
            if victims and (best is None or len(victims) < best[0]):
                best = len(victims), at
        if best is None:
            return False
        found = self.bins[best[1]]
        later = found.later
        for number, task in self._victims(found, part, for_minimum=for_minimum):
            victim = self.parts[number]
            victim.kept -= 1
            victim.leave.append(task)
            found.tasks.remove((number, task))
            later += victim.size
        self.bins.change(best[1], now=found.now, later=later)
        return self._place(part)

    def _victims(self, one: Bin, part: _Part, *, for_minimum: bool) -> list[tuple[int, TaskView]]:
        """Return tasks beyond what their sharers deserve that make room in a slot; none if they do not suffice."""
        if one.place is None or one.place.node_id in part.sharer.workload.kept_off:
            return []
        holders = (self.parts[number] for number, _ in one.tasks)
        spare = {p.number: p.kept + len(p.starts) - (p.least if for_minimum else p.share) for p in holders}
        chosen: list[tuple[int, TaskView]] = []
        room = one.later
        newest_first = one.tasks[::-1]
        newest_first.sort(key=lambda entry: -spare[entry[0]])
        for number, task in newest_first:
            victim = self.parts[number]
            if room >= part.size:
                break
            if victim is part or spare[number] <= 0 or not (victim.gives_up or for_minimum):
                continue
            spare[number] -= 1
            room += victim.size
            chosen.append((number, task))
        return chosen if room >= part.size else []

    def use_up(self) -> None:
        """Give room that nobody deserving can use to whoever can, who lacks most first, one task at a time."""
        growing = [self._lack(part) for part in self.parts if part.target < part.most]
        heapq.heapify(growing)
        while growing:
            part = self.parts[heapq.heappop(growing)[1]]
            if self._place(part) and part.target < part.most:
                heapq.heappush(growing, self._lack(part))

    def _lack(self, part: _Part) -> tuple[int, int]:
        """Return how much a part lacks, least for who lacks most and comes first."""
        return -self.shares.shortfall(part.number, part.size, part.target), part.number


def _part(number: int, sharer: Sharer, now: float, cooldown_s: float, *, protected: bool) -> _Part:
    workload = sharer.workload
    least, most = bounds_of(sharer, now)
    cools = workload.resized_at is not None and now < workload.resized_at + cooldown_s
    return _Part(
        number=number,
        sharer=sharer,
        least=least,
        most=most,
        may_start=not backs_off(workload, now),
        gives_up=not (cools or protected),
    )


def _grant(part: _Part) -> Grant:
    return Grant(
        workload_id=part.sharer.workload.id,
        num_tasks=max(part.target, part.sharer.workload.min_tasks),
        leave=tuple(task.id for task in (*part.sharer.leave, *part.leave, *part.moves)),
        start=tuple(Placement(node_id=place.node_id, slots=(place.slot,)) for place in part.starts),
    )


def rooms_of(tasks: Iterable[tuple[Sharer, TaskView]]) -> Mapping[SlotPlace, int]:
    """Return what no process holds of every slot that these tasks hold a part of."""
    rooms: dict[SlotPlace, int] = {}
    for sharer, task in tasks:
        place = place_of(task)
        rooms[place] = rooms.get(place, WHOLE_SLOT) - sharer.size
    return rooms
