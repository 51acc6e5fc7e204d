"""Machines: which are drained, and what runs on each. Kept in the registry, and held in memory for the scheduler.

The scheduler sees a drained machine as one without slots, but for those of jobs that cannot be paused without losing
their work. So elastic jobs leave at their next step boundary, as they leave a slot that is gone; fixed jobs stay until
they end; and nothing is started there. Example: on a machine with 4 slots an elastic job has 3 and a fixed one 1. It is
drained: the scheduler sees 1 slot there, the fixed job's. The elastic job gives up its 3 and goes on elsewhere, or is
paused. The fixed job ends, and the machine is empty.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pliant.api.jobs import SlotView
from pliant.api.machines import MachinePage, MachineSlot, MachineView, SlotHolder
from pliant.api.view import fill
from pliant.control.jobs.ledger import Ledger
from pliant.control.requests.queries import Queries
from pliant.core.access import VisibleJobs
from pliant.core.errors import NotFound
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId, NodeId, TaskId
from pliant.core.machine import MachineDrain
from pliant.core.plan import NodeView
from pliant.core.registry import Registry, iterate_nouns
from pliant.policy.schedule.order import natural
from pliant.policy.slot_chart import colours_of


class Machines:
    """All machines. Safe to call from any thread."""

    def __init__(self, *, registry: Registry, ledger: Ledger, queries: Queries, now: Callable[[], float]) -> None:
        self._registry = registry
        self._ledger = ledger
        self._queries = queries
        self._now = now
        self._drained: dict[NodeId, MachineDrain] = {}

    def load(self) -> None:
        """Take up what the registry holds; call before the first decision."""
        with self._ledger.lock:
            self._drained = {NodeId(kept.noun.name): kept.noun for kept in iterate_nouns(self._registry, MachineDrain)}

    @property
    def drained(self) -> frozenset[NodeId]:
        """The machines on which nothing is started."""
        return frozenset(self._drained)

    def page(self, visible: VisibleJobs | None) -> MachinePage:
        """Return all machines, and who holds their slots as far as somebody sees that.

        One that is drained and not here has no slots.
        """
        pool = self._queries.cluster(visible)
        slots = self._with_holders(pool.slots)
        drained = self._drained
        away = [NodeView(id=node_id, slots=()) for node_id in drained.keys() - {node.id for node in pool.nodes}]
        nodes = sorted((*pool.nodes, *away), key=lambda node: natural(node.id))
        return MachinePage(
            machines=tuple(
                _view(node, drained.get(node.id), tuple(slot for slot in slots if slot.node_id == node.id))
                for node in nodes
            )
        )

    def get(self, name: str, visible: VisibleJobs | None) -> MachineView:
        """Return a machine.

        Raises:
            NotFound: there is none of that name.
        """
        found = self.page(visible).machines
        machine = next((one for one in found if one.name == name), None)
        if machine is None:
            there = ", ".join(one.name for one in found[:10]) or "none"
            raise NotFound(f"there is no machine {name!r:.80}; there are {there}")
        return machine

    def set_drained(self, name: str, who: str, visible: VisibleJobs | None, *, drained: bool) -> MachineView:
        """MachineDrain a machine or return it; see `drain` and `put_back`. Return how it is then.

        Raises:
            NotFound: there is none of that name.
        """
        before = self.get(name, visible)
        (self.drain if drained else self.put_back)(name, who)
        if drained or any(node.id == name for node in self._queries.nodes()):
            return self.get(name, visible)
        return replace(before, state="in use", drained_by=None, drained_at=None)

    def drain(self, name: str, who: str) -> None:
        """Let tasks leave a machine, and start none there, until it is returned; one that is drained stays so.

        Raises:
            NotFound: there is none of that name.
        """
        with self._ledger.lock:
            self.get(name, None)
            if NodeId(name) not in self._drained:
                drain = MachineDrain(name=name, owner=who, at=self._now())
                self._registry.add(drain, at=drain.at)
                self._drained = {**self._drained, NodeId(name): drain}
                self._note_change(f"{name} was drained by {who}: nothing is started there any more", name, who)

    def put_back(self, name: str, who: str) -> None:
        """Let tasks be started on a machine again, also if it is not here now.

        Raises:
            NotFound: there is none of that name.
        """
        with self._ledger.lock:
            self.get(name, None)
            if NodeId(name) in self._drained:
                self._registry.remove(MachineDrain, name)
                self._drained = {node: drain for node, drain in self._drained.items() if node != name}
                self._note_change(f"{name} was returned by {who}: tasks are started there again", name, who)

    def _note_change(self, message: str, name: str, who: str) -> None:
        draft = self._ledger.draft()
        draft.say(EventKind.MACHINE_CHANGED, message, data={"name": name, "who": who})
        self._ledger.dirty = True
        self._ledger.commit(draft)

    def _with_holders(self, slots: Iterable[SlotView]) -> Sequence[MachineSlot]:
        """Return slots with the jobs behind the tasks that they name."""
        jobs = self._ledger.jobs()
        jobs_of = {task.id: live.job for live in jobs.values() for task in live.running}
        queue_colours = colours_of(sorted({job.queue for job in jobs_of.values()}))
        found = []
        for slot in slots:
            live = None if slot.job_id is None else jobs.get(JobId(slot.job_id))
            tasks = slot.sharers or (() if slot.task_id is None else (slot.task_id,))
            holders = {job.id: job for task in tasks if (job := jobs_of.get(TaskId(task))) is not None}
            found.append(
                fill(
                    MachineSlot,
                    slot,
                    job_name=None if live is None else live.job.spec.name,
                    holders=tuple(_holder(job, queue_colours[job.queue]) for job in holders.values()),
                )
            )
        return found


def _holder(job: Job, queue_colour: int) -> SlotHolder:
    return SlotHolder(
        job_id=job.id, job_name=job.spec.name, queue=job.queue, colour=job.colour, queue_colour=queue_colour
    )


def _view(node: NodeView, drain: MachineDrain | None, slots: tuple[MachineSlot, ...]) -> MachineView:
    num_taken = sum(slot.taken for slot in slots)
    return MachineView(
        name=node.id,
        state="in use" if drain is None else "draining" if num_taken else "drained",
        drained_by=None if drain is None else drain.owner,
        drained_at=None if drain is None else drain.at,
        labels=node.labels,
        num_gpus=node.num_gpus,
        num_cpus=node.num_cpus,
        walls=node.walls,
        missing_walls=node.missing_walls,
        num_taken=num_taken,
        slots=slots,
    )
