"""Cuts a snapshot into parts that have nothing to do with each other: queues that share no node are decided on alone.

Laws: every workload is in one part; no node is in two; the parts do not depend on the order of anything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pliant.core.job import NodeId
from pliant.core.plan import Policy, QueueView, Snapshot
from pliant.core.workload import Workload
from pliant.policy.schedule.order import natural


def parts(snapshot: Snapshot, policy: Policy) -> list[Snapshot]:
    """Return the parts, each with its nodes, its workloads and those of its queues that have workloads."""
    by_queue: dict[str, list[Workload]] = {}
    for view in snapshot.workloads:
        by_queue.setdefault(view.queue, []).append(view)
    queues = _queues(snapshot, policy, by_queue)
    if len(queues) == 1:
        queue = queues[0]
        nodes = snapshot.nodes
        if queue.slots is not None:
            touched = _touched(queue, by_queue[queue.name], ())
            nodes = tuple(node for node in nodes if node.id in touched)
        return [replace(snapshot, nodes=nodes, queues=(queue,))]
    all_nodes = tuple(node.id for node in snapshot.nodes)
    together: list[tuple[list[QueueView], frozenset[NodeId]]] = []
    for queue in queues:
        names, touched = [queue], _touched(queue, by_queue[queue.name], all_nodes)
        for other in [part for part in together if part[1] & touched]:
            together.remove(other)
            names, touched = names + other[0], touched | other[1]
        together.append((names, touched))
    return [_part(snapshot, names, touched, by_queue) for names, touched in together]


def _queues(snapshot: Snapshot, policy: Policy, by_queue: Iterable[str]) -> list[QueueView]:
    """Return the queues that have workloads, in natural order; a queue that nobody knows has no slots."""
    if not snapshot.queues:
        return [QueueView(name=name, policy=policy.name) for name in sorted(by_queue, key=natural)]
    known = {queue.name: queue for queue in snapshot.queues}
    return [known.get(name) or QueueView(name=name, slots={}) for name in sorted(by_queue, key=natural)]


def _touched(queue: QueueView, views: Iterable[Workload], all_nodes: Iterable[NodeId]) -> frozenset[NodeId]:
    """Return the nodes that a queue may use, or has tasks on."""
    own = all_nodes if queue.slots is None else (node_id for node_id, num in queue.slots.items() if num > 0)
    return frozenset((*own, *(task.node_id for view in views for task in view.tasks)))


def _part(
    snapshot: Snapshot,
    queues: Iterable[QueueView],
    nodes: frozenset[NodeId],
    by_queue: Mapping[str, Iterable[Workload]],
) -> Snapshot:
    ordered = tuple(sorted(queues, key=lambda queue: natural(queue.name)))
    return Snapshot(
        nodes=tuple(node for node in snapshot.nodes if node.id in nodes),
        workloads=tuple(view for queue in ordered for view in by_queue[queue.name]),
        queues=ordered,
    )
