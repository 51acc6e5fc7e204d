"""From a snapshot to pools of slots: queues that share no node are decided on apart, each set of them on a pool of its
own.

Laws: every workload is in one part; no node is in two; neither parts nor pools depend on the order of anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pliant.core.job import NodeId
from pliant.core.plan import NodeView, Policy, QueueRules, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.candidate import Candidate
from pliant.policy.schedule.free_slots import FreeSlots
from pliant.policy.schedule.order import natural

RACK: Final = "rack"
ZONE: Final = "zone"
"""Labels of hosts that say which are near each other."""
NearPlace = tuple[str, ...]
"""A zone, and a rack of it if it is one."""
Limit = Sequence[int] | None
"""Slots of every node that a resource group has, whichever they are; None: all."""


class SlotPool:
    """The nodes, in natural order of their ids, and what is free on each. `place` says what the three amounts mean."""

    def __init__(
        self,
        nodes: Sequence[NodeView],
        limits: Sequence[Limit],
        unused: list[list[int]],
        *,
        held: Sequence[Sequence[int]],
        staying: Sequence[Sequence[int]],
    ) -> None:
        """`held` and `staying` count the slots of all tasks and of those that stay, by group and node."""
        self.node_ids = [node.id for node in nodes]
        self.unused = unused
        """Numbers of the slots that no process holds, highest first."""
        self.startable = _subtract(limits, held)
        """What the limit of each group leaves beside its processes."""
        self._sizes = [len(node.slots) for node in nodes]
        self._nearness = [tuple(_places(node.labels)) for node in nodes]
        self._neighbours: dict[NearPlace, list[int]] = {}
        for at, places in enumerate(self._nearness):
            for place in places:
                self._neighbours.setdefault(place, []).append(at)
        self._limits = limits
        sum_staying = [sum(column) for column in zip(*staying, strict=True)]
        self.idle = FreeSlots(map(len, unused), self.startable)
        self.future_idle = FreeSlots(map(int.__sub__, self._sizes, sum_staying), _subtract(limits, staying))
        self.grantable = FreeSlots(self._sizes, limits)

    def neighbours_of(self, node: int) -> Iterator[Sequence[int]]:
        """Yield the nodes of the same rack, then those of the same zone, if its labels name any."""
        for place in self._nearness[node]:
            yield self._neighbours[place]

    def slots_of(self, group: int) -> list[int]:
        """Return how many slots of every node a group has, whoever holds them."""
        limit = self._limits[group]
        return list(self._sizes) if limit is None else list(map(min, self._sizes, limit))

    def num_slots_of(self, groups: Iterable[int], unit: int = 1) -> int:
        """Return how many slots these groups have together, leaving out what of a node is no multiple of `unit`."""
        limits = [self._limits[group] for group in groups]
        if None in limits:
            return sum(size // unit * unit for size in self._sizes)
        known = [limit for limit in limits if limit is not None]
        return sum(
            min(size, sum(limit[node] for limit in known)) // unit * unit for node, size in enumerate(self._sizes)
        )


def _places(labels: Mapping[str, str]) -> Iterator[NearPlace]:
    """Yield where a host stands, the narrowest first. Racks of different zones may have the same name."""
    rack, zone = labels.get(RACK, ""), labels.get(ZONE, "")
    if rack:
        yield zone, rack
    if zone:
        yield (zone,)


def _subtract(limits: Sequence[Limit], used: Sequence[Sequence[int]]) -> list[list[int] | None]:
    return [
        None if limit is None else list(map(int.__sub__, limit, own)) for limit, own in zip(limits, used, strict=True)
    ]


def lay_out(snapshot: Snapshot) -> tuple[SlotPool, list[Candidate]]:
    """Return the pool and the candidates of a snapshot with queues, nothing decided yet.

    A task whose node or slot is gone does not count to its workload and is told to leave.
    """
    nodes = sorted(snapshot.nodes, key=lambda node: natural(node.id))
    index = {node.id: at for at, node in enumerate(nodes)}
    slots_of = [frozenset(node.slots) for node in nodes]
    queues = {queue.name: queue for queue in snapshot.queues}
    group_of, limits = _groups(snapshot.queues, index)
    taken: list[set[int]] = [set() for _ in nodes]
    held = [[0] * len(nodes) for _ in limits]
    staying = [[0] * len(nodes) for _ in limits]
    candidates = []
    for workload in snapshot.workloads:
        queue, group = queues[workload.queue], group_of[workload.queue]
        candidate = Candidate(
            workload=workload,
            size=workload.slots_per_task,
            minimum=workload.min_tasks,
            queue=queue,
            group=group,
            is_protected=not queue.preemption,
        )
        for task in workload.tasks:
            node = index.get(task.node_id)
            if node is not None:
                taken[node].update(task.slots)
                held[group][node] += len(task.slots)
            if task.leaving:
                continue
            if node is not None and slots_of[node].issuperset(task.slots):
                candidate.held.setdefault(node, []).append(task)
                staying[group][node] += len(task.slots)
                candidate.num_held += 1
            else:
                candidate.leave.append(task)
        if kept_off := workload.kept_off:
            excluded = frozenset(index[node_id] for node_id in kept_off if node_id in index)
            candidate.excluded_nodes = excluded
        candidates.append(candidate)
    unused = [sorted(slots - used, reverse=True) for slots, used in zip(slots_of, taken, strict=True)]
    return SlotPool(nodes, limits, unused, held=held, staying=staying), candidates


def _groups(queues: Iterable[QueueRules], index: Iterable[NodeId]) -> tuple[dict[str, int], list[Limit]]:
    """Return the group of every queue by its name, and what each group has; queues without a limit share one group."""
    group_of: dict[str, int] = {}
    number_of: dict[str | None, int] = {}
    limits: list[Limit] = []
    for queue in sorted(queues, key=lambda queue: queue.name):
        name = None if queue.slots is None else queue.group
        if name not in number_of:
            number_of[name] = len(limits)
            limit = queue.slots
            limits.append(None if limit is None else [limit.get(node_id, 0) for node_id in index])
        group_of[queue.name] = number_of[name]
    return group_of, limits


def split(snapshot: Snapshot, policy: Policy) -> list[Snapshot]:
    """Return the parts, each with its nodes, its workloads and those of its queues that have workloads."""
    by_queue: dict[str, list[Workload]] = {}
    for workload in snapshot.workloads:
        by_queue.setdefault(workload.queue, []).append(workload)
    queues = _queues(snapshot, policy, by_queue)
    if len(queues) == 1:
        queue = queues[0]
        nodes = snapshot.nodes
        if queue.slots is not None:
            touched = _touched(queue, by_queue[queue.name], ())
            nodes = tuple(node for node in nodes if node.id in touched)
        return [replace(snapshot, nodes=nodes, queues=(queue,))]
    all_nodes = tuple(node.id for node in snapshot.nodes)
    parts: list[tuple[list[QueueRules], frozenset[NodeId]]] = []
    for queue in queues:
        together, touched = [queue], _touched(queue, by_queue[queue.name], all_nodes)
        for other in [part for part in parts if part[1] & touched]:
            parts.remove(other)
            together, touched = together + other[0], touched | other[1]
        parts.append((together, touched))
    return [_part(snapshot, together, touched, by_queue) for together, touched in parts]


def _queues(snapshot: Snapshot, policy: Policy, by_queue: Iterable[str]) -> list[QueueRules]:
    """Return the queues that have workloads, in natural order; a queue that nobody knows has no slots."""
    if not snapshot.queues:
        return [QueueRules(name=name, policy=policy.name) for name in sorted(by_queue, key=natural)]
    known = {queue.name: queue for queue in snapshot.queues}
    return [known.get(name) or QueueRules(name=name, slots={}) for name in sorted(by_queue, key=natural)]


def _touched(queue: QueueRules, workloads: Iterable[Workload], all_nodes: Iterable[NodeId]) -> frozenset[NodeId]:
    """Return the nodes that a queue may use, or has tasks on."""
    own = all_nodes if queue.slots is None else (node_id for node_id, num in queue.slots.items() if num > 0)
    return frozenset((*own, *(task.node_id for workload in workloads for task in workload.tasks)))


def _part(
    snapshot: Snapshot,
    queues: Iterable[QueueRules],
    nodes: frozenset[NodeId],
    by_queue: Mapping[str, Iterable[Workload]],
) -> Snapshot:
    ordered = tuple(sorted(queues, key=lambda queue: natural(queue.name)))
    return Snapshot(
        nodes=tuple(node for node in snapshot.nodes if node.id in nodes),
        workloads=tuple(workload for queue in ordered for workload in by_queue[queue.name]),
        queues=ordered,
    )
