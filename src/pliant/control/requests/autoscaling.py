"""What is to be known, and done, where Ray's autoscaler brings machines and takes them away. Knows nothing of Ray.

It decides nothing: `policy.autoscale.machines` does. A machine that is let go is drained first, as people drain one,
so that nothing is started there any more; that it had no task then is looked at under the same lock.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pliant.control.requests.machines import Machines
from pliant.control.requests.standing import JobStanding
from pliant.core.errors import Conflict, NotFound
from pliant.core.job import NodeId
from pliant.core.plan import NodeView, Snapshot
from pliant.core.ports import Observation
from pliant.core.slot import WHOLE_SLOT
from pliant.core.workload import Workload
from pliant.policy.autoscale.machines import PooledMachine, SlotDemand
from pliant.policy.schedule.waiting import num_slots_of

AUTOSCALER: Final = "Ray's autoscaler"
"""Who drains and removes machines, as people read it; no account has this name."""


@dataclass(frozen=True, slots=True)
class AutoscaledPool:
    """Use cases of whoever speaks to the autoscaler; safe to call from any thread."""

    machines: Machines
    standing: JobStanding

    def pooled(self, its: Collection[str]) -> tuple[PooledMachine, ...]:
        """Return the machines that there are: its own, of these names, and the others.

        Of its own that are away the slots count that they told last: they come back, or it knows that they have gone.
        """
        with self.machines.ledger.lock:
            observed, drains = self.machines.ledger.observe(), self.machines.out_of_use.drains
        here = {node.id: node for node in observed.nodes}
        busy = self._busy(observed)
        found = []
        for name in sorted(here.keys() | {NodeId(one) for one in its}):
            node, may_go = here.get(name), name in its
            drain = drains.get(name)
            if drain is not None and not (may_go and drain.owner == AUTOSCALER):
                num_slots: int | None = 0
            else:
                num_slots = self._num_slots(node, name) if may_go else self._num_open(node)
            found.append(PooledMachine(name=name, num_slots=num_slots, is_busy=name in busy, may_go=may_go))
        return tuple(found)

    def demands(self, its: Collection[str]) -> tuple[SlotDemand, ...]:
        """Return what all who want slots could have.

        Who may use some machines only counts with more than it has if one of the autoscaler's is among them.
        """
        return tuple(_demands(self.standing.seen(), its))

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

    def _num_slots(self, node: NodeView | None, name: str) -> int | None:
        if node is None or node.away or not node.slots:
            room = self.machines.require_joining()
            known = room.joining.get(name)
            return len(known.slots) or None if known is not None else None
        return self._num_open(node)

    def _num_open(self, node: NodeView | None) -> int:
        if node is None or node.away:
            return 0
        return len(node.slots) - len(self.machines.out_of_use.excluded([node]))


def _demands(seen: Snapshot, its: Collection[str]) -> Iterator[SlotDemand]:
    """Yield what the workloads of a snapshot could have; parts of slots are taken together to whole ones."""
    reach = {
        queue.name: queue.slots is None or any(queue.slots.get(NodeId(name), 0) for name in its)
        for queue in seen.queues
    }
    for workload in seen.workloads:
        num_tasks = workload.max_tasks if reach.get(workload.queue, not seen.queues) else len(workload.tasks)
        if num_tasks > 0:
            yield _demand(workload, num_tasks)


def _demand(workload: Workload, num_tasks: int) -> SlotDemand:
    is_running = bool(workload.tasks)
    if workload.slot_share == WHOLE_SLOT:
        size, least = workload.slots_per_task, workload.min_tasks
    else:
        size, least = 1, num_slots_of(workload, workload.min_tasks)
        num_tasks = num_slots_of(workload, num_tasks)
    return SlotDemand(min_tasks=least, max_tasks=num_tasks, slots_per_task=size, is_running=is_running)
