"""What is to be known, and done, where Ray's autoscaler brings machines and takes them away. Knows nothing of Ray.

It decides nothing: `policy.autoscale.machines` does. A machine that is let go is drained first, as people drain one,
so that nothing is started there any more; that it had no task then is looked at under the same lock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pliant.control.requests.machines import Machines
from pliant.control.requests.queues import Queues
from pliant.control.requests.standing import JobStanding
from pliant.core.errors import Conflict, NotFound
from pliant.core.job import NodeId
from pliant.core.joining import MAX_SLOTS
from pliant.core.plan import NodeView, Snapshot
from pliant.core.ports import Observation
from pliant.core.queue import ResourceGroup
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import Workload
from pliant.policy.autoscale.machines import MachineKind, PooledMachine, SlotDemand
from pliant.policy.schedule.waiting import num_slots_of

AUTOSCALER: Final = "Ray's autoscaler"
"""Who drains and removes machines, as people read it; no account has this name."""


@dataclass(frozen=True, slots=True)
class AutoscaledPool:
    """Use cases of whoever speaks to the autoscaler; safe to call from any thread."""

    machines: Machines
    standing: JobStanding
    queues: Queues

    def pooled(self, its: Mapping[str, MachineKind]) -> tuple[PooledMachine, ...]:
        """Return the machines that there are: its own, by these names, and the others.

        Of its own that are away the slots count that they told last: they come back, or it knows that they have gone.
        """
        with self.machines.ledger.lock:
            observed, drains = self.machines.ledger.observe(), self.machines.out_of_use.drains
        here = {node.id: node for node in observed.nodes}
        busy, groups = self._busy(observed), self._groups()
        found = []
        for name in sorted(here.keys() | {NodeId(one) for one in its}):
            node, kind = here.get(name), its.get(name)
            drain = drains.get(name)
            known = node if kind is None else self._whole(node, name)
            num_slots: int | None = None if known is None else self._num_open(known)
            if drain is not None and not (kind is not None and drain.owner == AUTOSCALER):
                num_slots = 0
            if known is None and kind is not None:
                known = _new_machine(kind, name)
            found.append(
                PooledMachine(
                    name=name,
                    num_slots=num_slots,
                    is_busy=name in busy,
                    kind=None if kind is None else kind.name,
                    group_slots={} if known is None else _group_slots(groups, known),
                )
            )
        return tuple(found)

    def demands(self) -> tuple[SlotDemand, ...]:
        """Return what all who want slots could have."""
        return tuple(_demands(self.standing.seen()))

    def kinds(self, kinds: Iterable[MachineKind]) -> tuple[MachineKind, ...]:
        """Return kinds of machines with what each resource group would have of a new one."""
        groups = self._groups()
        return tuple(replace(kind, group_slots=_group_slots(groups, _new_machine(kind))) for kind in kinds)

    def drained(self) -> frozenset[str]:
        """Return the machines that were drained here, and by nobody else."""
        return frozenset(name for name, drain in self.machines.out_of_use.drains.items() if drain.owner == AUTOSCALER)

    def drain(self, name: str, because: str, *, if_idle: bool = False) -> bool:
        """Drain a machine; return whether it is drained now, by whomever, or is none of the pool.

        Args:
            name: of the machine.
            because: why, for people.
            if_idle: not if it has a task.
        """
        if name in self.machines.out_of_use.drains:
            return True
        with self.machines.ledger.lock:
            if if_idle and name in self._busy(self.machines.ledger.observe()):
                return False
            with suppress(NotFound):  # it has not joined
                self.machines.out_of_use.drain(name, AUTOSCALER, because)
            return True

    def put_back(self, name: str) -> None:
        """Let tasks be started again on a machine that was drained here."""
        with self.machines.ledger.lock:
            drain = self.machines.out_of_use.drains.get(NodeId(name))
            if drain is not None and drain.owner == AUTOSCALER:
                self.machines.out_of_use.put_back(name, AUTOSCALER)

    def joined(self) -> Mapping[str, str]:
        """Return the machines that have joined, and who made the token of each."""
        room = self.machines.require_joining()
        return {one.name: one.owner for one in room.joining.all()}

    def remove(self, name: str) -> bool:
        """Forget a machine that it has taken away, if nothing is promised to it; return whether that was so."""
        try:
            self.machines.remove(name, AUTOSCALER)
        except (Conflict, NotFound):
            return False
        return True

    def _busy(self, observed: Observation) -> frozenset[str]:
        """Return the machines with a task, or with anything else that holds slots."""
        ordered = {task.node_id for live in self.machines.ledger.jobs().values() for task in live.running}
        return frozenset(ordered | {task.node_id for task in observed.tasks})

    def _groups(self) -> Sequence[ResourceGroup]:
        return [kept.noun for kept in self.queues.groups() if not kept.noun.is_whole_pool]

    def _whole(self, node: NodeView | None, name: NodeId) -> NodeView | None:
        """Return a machine with all of its slots, as it is now or was when it was heard last; None: it never was."""
        if node is not None and node.slots and not node.away:
            return node
        known = self.machines.require_joining().joining.get(name)
        if known is None or not known.slots:
            return None
        return self.machines.labels.laid_over((known.node,))[0]

    def _num_open(self, node: NodeView) -> int:
        if node.away:
            return 0
        return len(node.slots) - len(self.machines.out_of_use.excluded([node]))


def _new_machine(kind: MachineKind, name: str = "") -> NodeView:
    """Return a machine of a kind as far as it is known before one was seen."""
    return NodeView(
        id=NodeId(name),
        slots=tuple(range(kind.num_slots or MAX_SLOTS)),
        labels=kind.labels,
        num_gpus=kind.num_gpus,
        num_cpus=kind.num_cpus,
    )


def _group_slots(groups: Iterable[ResourceGroup], node: NodeView) -> Mapping[str, int]:
    return {group.name: num for group in groups if (num := group.slots_of([node]).get(node.id, 0))}


def _demands(seen: Snapshot) -> Iterator[SlotDemand]:
    """Yield what the workloads of a snapshot could have; parts of slots are taken together to whole ones."""
    groups = {queue.name: "" if queue.slots is None else queue.group for queue in seen.queues}
    for workload in seen.workloads:
        group = groups.get(workload.queue) if seen.queues else ""
        if group is not None and workload.max_tasks > 0:
            yield _demand(workload, group)


def _demand(workload: Workload, group: str) -> SlotDemand:
    if workload.slot_share == WHOLE_SLOT:
        size, least, most = workload.slots_per_task, workload.min_tasks, workload.max_tasks
    else:
        size = 1
        least, most = (num_slots_of(workload, num) for num in (workload.min_tasks, workload.max_tasks))
    return SlotDemand(
        min_tasks=least, max_tasks=most, slots_per_task=size, is_running=bool(workload.tasks), group=group
    )
