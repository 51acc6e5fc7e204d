"""Workloads whose tasks hold a part of a slot, seen as one that holds whole slots (`fold`).

Under `fairshare` all such workloads of a queue share slots with each other, else those of a queue and a priority. What
they hold and want together is a workload of whole slots like any other, and is decided on beside the others.

Example: `digits` wants 3 tasks of 400 thousandths and has one on slot 0; `shop`, of the same queue, wants 2 of 300 and
has one on slot 0, too. Together they hold 1 slot and want 2: 400 + 400 and 400 + 300 + 300.

Laws: every slot that a task holds is in one folded workload; it leaves once no task of it stays. Knows no policy but
for whom it puts together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pliant.core.job import NodeId, TaskId
from pliant.core.plan import PolicyName, QueueRules
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import TaskView, Workload


class SlotPlace(NamedTuple):
    """A slot."""

    node_id: NodeId
    slot: int


@dataclass(slots=True, eq=False, kw_only=True)
class Sharer:
    """A workload whose tasks hold a part of a slot, in the course of one decision. All numbers are of tasks."""

    workload: Workload
    stay: list[TaskView] = field(default_factory=list)
    """Tasks that stay as far as is decided, oldest first."""
    leave: list[TaskView] = field(default_factory=list)
    """Tasks that are told to leave by this decision."""

    @property
    def size(self) -> int:
        """Return the thousandths of a slot that each task holds."""
        return self.workload.slot_share


@dataclass(slots=True, eq=False, kw_only=True)
class Together:
    """Sharers that hold slots together."""

    queue: QueueRules
    sharers: Sequence[Sharer]
    """Oldest first."""
    places: Mapping[SlotPlace, Sequence[tuple[Sharer, TaskView]]] = field(default_factory=dict)
    """Every slot of theirs, with the tasks that hold some of it and that stay."""
    rooms: Mapping[SlotPlace, int] = field(default_factory=dict)
    """What no process holds of these slots, in thousandths."""


def num_slots_for(sizes: Iterable[int]) -> int:
    """Return in how many slots tasks of these sizes fit: the largest first, each into the first slot with room."""
    return len(_pack(sizes, []))


def _pack(sizes: Iterable[int], rooms: Iterable[int]) -> list[int]:
    """Return what is left of slots with these rooms, and of new ones, when tasks of these sizes are in them."""
    left = list(rooms)
    at, before = 0, None
    for size in sorted(sizes, reverse=True):
        if size != before:
            at, before = 0, size
        while at < len(left) and left[at] < size:  # where one of this size had no room, the next has none
            at += 1
        if at == len(left):
            left.append(WHOLE_SLOT)
        left[at] -= size
    return left


def trim(sharer: Sharer, load: Mapping[SlotPlace, int]) -> None:
    """Tell tasks to leave that are more than a workload can use: those in the emptiest slots, the newest first."""
    over = len(sharer.stay) - sharer.workload.max_tasks
    if over <= 0:
        return
    newest_first = [*enumerate(sharer.stay)][::-1]
    newest_first.sort(key=lambda entry: load[place_of(entry[1])])
    gone = {at for at, _ in newest_first[:over]}
    sharer.leave += [task for at, task in enumerate(sharer.stay) if at in gone]
    sharer.stay = [task for at, task in enumerate(sharer.stay) if at not in gone]


def place_of(task: TaskView) -> SlotPlace:
    """Return the slot of a task that holds a part of one."""
    return SlotPlace(task.node_id, task.slots[0])


def backs_off(workload: Workload, now: float) -> bool:
    """Tell whether no task of a workload is started now."""
    return workload.held_until is not None and now < workload.held_until


def bounds_of(sharer: Sharer, now: float) -> tuple[int, int]:
    """Return how many tasks a sharer has at least and at most; in its back-off no more than it holds."""
    workload, num = sharer.workload, len(sharer.stay)
    if backs_off(workload, now):
        return min(workload.min_tasks, num), num
    return workload.min_tasks, workload.max_tasks


def fold(together: Together, now: float) -> Workload:
    """Return the workload of whole slots that sharers are together; its tasks are slots, the fullest first.

    It wants room for everything that it lacks beside what it has: nobody is moved from one slot to another but for the
    sake of somebody else.
    """
    workloads = [sharer.workload for sharer in together.sharers]
    first = workloads[0]
    bounds = [bounds_of(sharer, now) for sharer in together.sharers]
    if len(workloads) == 1:
        bounds = [(first.min_tasks, first.max_tasks)]  # its back-off is the folded workload's own
    least = num_slots_for(w.slot_share for w, (low, _) in zip(workloads, bounds, strict=True) for _ in range(low))
    missing = ([s.size] * (high - len(s.stay)) for s, (_, high) in zip(together.sharers, bounds, strict=True))
    most = len(_pack((size for sizes in missing for size in sizes), _rooms(together)))
    owners = {workload.owner for workload in workloads}
    changes = [workload.resized_at for workload in workloads if workload.resized_at is not None]
    return replace(
        first,
        name=first.name if len(workloads) == 1 else f"{first.name} and {len(workloads) - 1} more",
        owner=first.owner if len(owners) == 1 else "several users",
        priority=_priority(together),
        min_tasks=min(least, most),
        max_tasks=most,
        slot_share=WHOLE_SLOT,
        tasks=_slots_as_tasks(together),
        resized_at=max(changes, default=None),
        held_until=first.held_until if len(workloads) == 1 else None,
        excluded=frozenset.intersection(*(workload.kept_off for workload in workloads)),
        apart=(),
    )


def _rooms(together: Together) -> list[int]:
    """Return what will be left of every slot that somebody stays in, the fullest first."""
    staying = [tasks for tasks in together.places.values() if tasks]
    return sorted(WHOLE_SLOT - sum(sharer.size for sharer, _ in tasks) for tasks in staying)


def _priority(together: Together) -> int:
    priorities = [sharer.workload.priority for sharer in together.sharers if sharer.workload.max_tasks]
    if together.queue.policy is PolicyName.FAIRSHARE:
        return sum(priorities) or together.sharers[0].workload.priority
    return max(priorities, default=together.sharers[0].workload.priority)


def _slots_as_tasks(together: Together) -> tuple[TaskView, ...]:
    def fullest(place: SlotPlace) -> tuple[int, SlotPlace]:
        return -sum(sharer.size for sharer, _ in together.places[place]), place

    return tuple(
        TaskView(
            id=TaskId(f"{place.node_id}/{place.slot}"),
            node_id=place.node_id,
            slots=(place.slot,),
            leaving=not together.places[place],
        )
        for place in sorted(together.places, key=fullest)
    )


def key_of(workload: Workload, queue: QueueRules) -> tuple[str, int]:
    """Return what workloads have in common that share slots."""
    return workload.queue, 0 if queue.policy is PolicyName.FAIRSHARE else workload.priority
