"""The machines as people see them: what each is and does, who holds its slots, and what of it is out of use."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pliant.api.machines import ExclusionView, MachineFactsView, MachinePage, MachineSlot, MachineView, SlotHolder
from pliant.api.pool import SlotView
from pliant.api.view import fill
from pliant.control.jobs.ledger import Ledger
from pliant.control.requests.joining import JoiningRoom
from pliant.control.requests.labels import GivenLabels
from pliant.control.requests.out_of_use import OutOfUse, note_machine_change
from pliant.control.requests.queries import Queries
from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict, NotFound
from pliant.core.job import Job, JobId, NodeId, TaskId
from pliant.core.machine import MachineState, MeasuredMachine, SlotExclusion
from pliant.core.plan import NodeView
from pliant.core.ports import Cluster
from pliant.policy.schedule.order import natural
from pliant.policy.slot_chart import colours_of


class Machines:
    """All machines. Safe to call from any thread."""

    def __init__(
        self,
        *,
        out_of_use: OutOfUse,
        labels: GivenLabels,
        ledger: Ledger,
        queries: Queries,
        cluster: Cluster,
        now: Callable[[], float],
    ) -> None:
        self.out_of_use = out_of_use
        self.labels = labels
        self.joining: JoiningRoom | None = None
        """How machines join; None: this server takes none. Set before the server answers anybody."""
        self.ledger = ledger
        self._queries = queries
        self._cluster = cluster
        self._now = now

    def page(self, visible: VisibleJobs | None) -> MachinePage:
        """Return all machines, and who holds their slots as far as somebody sees that.

        One that is not here, and has joined or is out of use, has no slots.
        """
        pool = self._queries.cluster(visible)
        slots = self._with_holders(pool.slots)
        here = {node.id for node in pool.nodes}
        away = self._nodes_of([name for name in self.out_of_use.machines() if name not in here])
        nodes = sorted((*pool.nodes, *away), key=lambda node: natural(node.id))
        measured = self._cluster.measured()
        return MachinePage(
            machines=tuple(
                self._view(node, [slot for slot in slots if slot.node_id == node.id], measured.get(node.id))
                for node in nodes
            ),
            takes_machines=self.joining is not None,
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
        """Drain a machine or return it; see `OutOfUse`. Return how it is then.

        Raises:
            NotFound: there is none of that name.
        """
        change = self.out_of_use.drain if drained else self.out_of_use.put_back
        return self._after(name, visible, lambda: change(name, who))

    def exclude(
        self, name: str, slots: Sequence[int] | None, because: str, who: str, visible: VisibleJobs | None
    ) -> MachineView:
        """Exclude slots of a machine, or all of it; see `OutOfUse`. Return how it is then.

        Raises:
            NotFound, InvalidInput: see there.
        """
        return self._after(name, visible, lambda: self.out_of_use.exclude(name, slots, because, who))

    def include(self, name: str, slots: Sequence[int] | None, who: str, visible: VisibleJobs | None) -> MachineView:
        """Include slots of a machine again, or all of it; see `OutOfUse`. Return how it is then.

        Raises:
            NotFound, Conflict: see there.
        """
        return self._after(name, visible, lambda: self.out_of_use.include(name, slots, who))

    def label(self, name: str, labels: Mapping[str, str], who: str, visible: VisibleJobs | None) -> MachineView:
        """Give a machine labels, in place of those that people gave it; see `GivenLabels`. Return how it is then.

        Raises:
            NotFound, InvalidInput: see there.
        """
        return self._after(name, visible, lambda: self.labels.set(name, labels, who))

    def require_joining(self) -> JoiningRoom:
        """Return how machines join.

        Raises:
            Conflict: this server takes none.
        """
        if self.joining is None:
            raise Conflict(
                "no machine can join this server, since it was not started with --cluster; end it with `pliant down`, "
                "and start it with `pliant up --cluster`"
            )
        return self.joining

    def remove(self, name: str, who: str) -> None:
        """Forget a machine that has joined, with what is out of use of it and its labels. To come back it has to join
        again.

        Raises:
            NotFound: there is none of that name.
            Conflict: it has not joined, or tasks can be started there.
        """
        room = self.require_joining()
        with self.ledger.lock:
            view = self.get(name, None)
            state = view.state
            if room.joining.get(name) is None:
                raise Conflict(f"{name} has not joined this pool, so it cannot be removed from it; drain or exclude it")
            if state not in ("away", "drained"):
                raise Conflict(
                    f"{name} is {state}; drain it with `pliant machines drain {name}`, and remove it when it is drained"
                )
            if view.num_taken:
                raise Conflict(
                    f"tasks on {name} may be running still, though nothing is heard of it; it can be removed when "
                    f"its agent must have ended them (--orphan-s)"
                )
            room.joining.remove(name)
            room.forget(name)
            self.out_of_use.forget(name)
            self.labels.forget(name)
            message = f"{name} was removed by {who}: it is in the pool again when it has joined again"
            note_machine_change(self.ledger, message, name, who)

    def _nodes_of(self, away: Sequence[NodeId]) -> Sequence[NodeView]:
        """Return machines that are not here, without slots; of those that have joined what they told last."""
        room = self.joining
        joined = {} if room is None or not away else {one.name: one.node for one in room.joining.all()}
        nodes = (joined.get(name, NodeView(id=name, slots=())) for name in away)
        return self.labels.laid_over(tuple(replace(node, slots=()) for node in nodes))

    def _is_away(self, name: NodeId) -> bool:
        """Tell whether a machine has joined, and is not linked now."""
        room = self.joining
        return room is not None and not room.is_here(name) and room.joining.get(name) is not None

    def _after(self, name: str, visible: VisibleJobs | None, change: Callable[[], None]) -> MachineView:
        """Change a machine and return it; one that is not here, and now in use, as the last of it that there is."""
        before = self.get(name, visible)
        change()
        if name in self.out_of_use.machines():
            return self.get(name, visible)
        return replace(before, state="in use", drained_by=None, drained_at=None, excluded=None)

    def _view(self, node: NodeView, slots: Sequence[MachineSlot], measured: MeasuredMachine | None) -> MachineView:
        drain = self.out_of_use.drains.get(node.id)
        exclusions = {one.slot: _exclusion(one) for one in self.out_of_use.exclusions.get(node.id, ())}
        whole = exclusions.get(None)
        shown = tuple(replace(slot, excluded=exclusions.get(slot.slot, whole)) for slot in slots)
        num_taken = sum(slot.taken for slot in slots)
        state: MachineState = "in use" if whole is None else "excluded"
        if drain is not None:
            state = "draining" if num_taken else "drained"
        if self._is_away(node.id):
            state = "away"
        return MachineView(
            name=node.id,
            state=state,
            drained_by=None if drain is None else drain.owner,
            drained_at=None if drain is None else drain.at,
            excluded=whole,
            labels=node.labels,
            given_labels=self.labels.of(node.id),
            num_gpus=node.num_gpus,
            num_cpus=node.num_cpus,
            walls=node.walls,
            missing_walls=node.missing_walls,
            files="copied" if node.has_copies else "shared",
            num_taken=num_taken,
            num_excluded=sum(slot.excluded is not None for slot in shown),
            facts=None if measured is None else self._facts(measured),
            slots=shown,
        )

    def _facts(self, measured: MeasuredMachine) -> MachineFactsView:
        return fill(
            MachineFactsView, measured.facts, measured_at=self._now() - measured.age_s, age_s=round(measured.age_s, 1)
        )

    def _with_holders(self, slots: Iterable[SlotView]) -> Sequence[MachineSlot]:
        """Return slots with the jobs behind the tasks that they name."""
        jobs = self.ledger.jobs()
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
                    excluded=None,
                )
            )
        return found


def _holder(job: Job, queue_colour: int) -> SlotHolder:
    return SlotHolder(
        job_id=job.id, job_name=job.spec.name, queue=job.queue, colour=job.colour, queue_colour=queue_colour
    )


def _exclusion(noun: SlotExclusion) -> ExclusionView:
    return ExclusionView(by=noun.owner, at=noun.at, because=noun.because)
