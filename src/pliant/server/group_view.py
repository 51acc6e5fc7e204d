"""What a resource group has of each host, as the answers show it."""

from collections.abc import Sequence

from pliant.api.queues import HostView
from pliant.core.plan import NodeView
from pliant.core.queue import ResourceGroup


def hosts_of(group: ResourceGroup, nodes: Sequence[NodeView]) -> tuple[HostView, ...]:
    """Return the hosts of which a group has slots."""
    slots = group.slots_of(nodes)
    return tuple(
        HostView(
            node_id=node.id,
            num_slots=slots[node.id],
            num_all_slots=len(node.slots),
            num_gpus=node.num_gpus,
            num_cpus=node.num_cpus,
            labels=node.labels,
        )
        for node in nodes
        if node.id in slots
    )
