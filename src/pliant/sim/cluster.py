"""A cluster without processes: what happens to its tasks is scripted, and happens when the virtual clock moves.

Everything is deterministic and runs in the thread that moves the clock; the listener is called from there, never from
inside a call of the port. Knows no jobs.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pliant.core.errors import Unavailable
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.machine import MeasuredMachine
from pliant.core.plan import NodeView
from pliant.core.ports import (
    MAX_STDERR_BYTES,
    Address,
    ExitFacts,
    LiveTask,
    Observation,
    StartOrder,
    TaskExit,
    TaskNote,
)
from pliant.core.slot import WHOLE_SLOT
from pliant.sim.clock import VirtualClock

_SIGKILL = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SimTimes:
    """How long things take in a simulated cluster, seconds."""

    start_s: float = 0.0
    """From the order until the process exists."""
    exit_s: float = 0.0
    """From a process's end until it is reported."""
    drain_s: float | None = 0.0
    """From SIGTERM until the task ends by itself with code 0; None: it ends only when the script says so."""


@dataclass(slots=True, kw_only=True)
class _Sim:
    order: StartOrder
    pid: int | None = None
    draining: bool = False
    ending: bool = False
    """How it ends is settled; it is about to be reported."""


class SimCluster:
    """Slots without a machine; implements `pliant.core.ports.Cluster`.

    `orders`, `drained` and `shown` (whose stacks) keep, in order, what was asked for.
    """

    def __init__(self, clock: VirtualClock, nodes: Sequence[NodeView], times: SimTimes | None = None) -> None:
        self._clock = clock
        self._nodes = {node.id: node for node in nodes}
        self._times = times or SimTimes()
        self._tasks: dict[TaskId, _Sim] = {}
        self._tasks_of: defaultdict[NodeId, dict[TaskId, _Sim]] = defaultdict(dict)
        """The same, by their nodes."""
        self._seen: Observation | None = None
        """What `observe` returned last; None once that is not so any more."""
        self._lived: set[TaskId] = set()
        self._refused: dict[TaskId, tuple[str, bool]] = {}
        self._facts: dict[TaskId, ExitFacts] = {}
        self._pids = itertools.count(1000)
        self._ports = itertools.count(20_000)
        self._listener: Callable[[TaskExit], None] | None = None
        self.note: Callable[[TaskNote], None] = lambda _note: None
        self._begun: Callable[[StartOrder, int], None] | None = None
        self._gone: Callable[[TaskId], None] | None = None
        self._asked: Callable[[TaskId], None] | None = None
        self._unreported: list[TaskExit] = []
        self._unacknowledged: dict[TaskId, TaskExit] = {}
        self._closed = False
        self.orders: list[StartOrder] = []
        self.retained: frozenset[JobId] | None = None
        self.drained: list[TaskId] = []
        self.shown: list[TaskId] = []
        self.sidecars: dict[TaskId, tuple[StartOrder, TaskId, Callable[[str], None]]] = {}
        """Those that live: what was ordered, beside which task, and whom to tell of the end."""
        self.machines: dict[NodeId, MeasuredMachine] = {}
        """What machines tell of themselves."""
        self.silent: frozenset[NodeId] = frozenset()
        """Machines that nothing is heard of."""
        self.unsteady: Mapping[NodeId, float] = {}
        """Machines that are silent, or heard again, since a moment only, and for how long they stay so."""
        self.users: frozenset[str] = frozenset()
        """Of the operating system, that processes can run as."""

    # the port

    def unsteady_nodes(self) -> Mapping[NodeId, float]:
        return self.unsteady

    def silent_nodes(self) -> Collection[NodeId]:
        return self.silent

    def measured(self) -> Mapping[NodeId, MeasuredMachine]:
        return {node_id: one for node_id, one in self.machines.items() if node_id in self._nodes}

    def observe(self) -> Observation:
        if self._seen is not None:
            return self._seen
        tasks = tuple(
            LiveTask(
                task_id=sim.order.task_id,
                node_id=sim.order.node_id,
                slots=sim.order.slots,
                slot_share=sim.order.slot_share,
                pid=sim.pid,
            )
            for sim in self._tasks.values()
        )
        self._seen = seen = Observation(nodes=tuple(self._nodes.values()), tasks=tasks)
        return seen

    def refuses_user(self, user: str) -> str:
        return "" if user in self.users else f"there is no user {user!r} on this machine"

    def free_address(self, node_id: NodeId) -> Address:
        if node_id not in self._nodes:
            raise ValueError(f"there is no node {node_id!r}; there are {sorted(self._nodes)}")
        return Address(host=str(node_id), port=next(self._ports))

    def start(self, order: StartOrder) -> None:
        if self._closed:
            raise Unavailable(f"task {order.task_id} cannot be started: this cluster is closed")
        if order.task_id in self._lived:
            return
        self._check(order)
        self.orders.append(order)
        self._lived.add(order.task_id)
        self._tasks[order.task_id] = self._tasks_of[order.node_id][order.task_id] = _Sim(order=order)
        self._seen = None
        self._clock.call_later(self._times.start_s, lambda: self._begin(order.task_id))

    def drain(self, task_id: TaskId) -> None:
        sim = self._tasks.get(task_id)
        if sim is None or sim.draining:
            return
        sim.draining = True
        self.drained.append(task_id)
        if self._asked is not None:
            self._asked(task_id)
        if self._times.drain_s is not None:
            self._clock.call_later(self._times.drain_s, lambda: self.exit(task_id, 0))

    def kill(self, task_id: TaskId) -> None:
        self.exit(task_id, -_SIGKILL)

    def show_stacks(self, task_id: TaskId) -> None:
        if task_id in self._tasks:
            self.shown.append(task_id)

    def start_sidecar(self, order: StartOrder, beside: TaskId, ended: Callable[[str], None]) -> None:
        if self._closed:
            raise Unavailable(f"nothing can be started beside {beside}: this cluster is closed")
        sim = self._tasks.get(beside)
        self.sidecars[order.task_id] = (order, beside, ended)
        if sim is None or sim.pid is None or sim.ending:
            self._clock.call_later(0.0, lambda: self._end_sidecar(order.task_id, "its task does not run"))

    def end_sidecar(self, sidecar_id: TaskId) -> None:
        self._clock.call_later(0.0, lambda: self._end_sidecar(sidecar_id, ""))

    def watch(
        self, listener: Callable[[TaskExit], None], note: Callable[[TaskNote], None] = lambda _note: None
    ) -> None:
        self._listener, self.note = listener, note
        self._clock.call_later(0.0, self._report_all)

    def acknowledge(self, task_id: TaskId) -> None:
        self._unacknowledged.pop(task_id, None)

    def retain(self, job_ids: Collection[JobId]) -> None:
        self.retained = frozenset(job_ids)

    def close(self) -> None:
        self._closed = True
        self._listener = None

    # the script

    def attend(
        self,
        begun: Callable[[StartOrder, int], None],
        gone: Callable[[TaskId], None],
        asked: Callable[[TaskId], None],
    ) -> None:
        """Call `begun` with the pid when a process exists, `asked` when it is sent SIGTERM, `gone` when it ends.

        What runs inside a process sees its end before the port's listener does, also inside a call of `kill`.
        """
        self._begun, self._gone, self._asked = begun, gone, asked

    def exit(self, task_id: TaskId, exit_code: int | None) -> None:
        """Let a task end with this code; does nothing if it does not live or is ending already."""
        self._end(task_id, TaskExit(task_id=task_id, exit_code=exit_code))

    def lose(self, task_id: TaskId, cause: str) -> None:
        """Take a task for ended with its machine, for this reason; nobody has seen its exit code."""
        self._end(task_id, TaskExit(task_id=task_id, exit_code=None, cause=cause))

    def leave_behind(self, task_id: TaskId, **facts: Any) -> None:
        """Let a task leave behind these facts (`ExitFacts`) when it ends, besides those scripted before."""
        left = replace(self._facts.get(task_id, ExitFacts()), **facts)
        self._facts[task_id] = replace(left, stderr=left.stderr[-MAX_STDERR_BYTES:])

    def forget_listener(self) -> None:
        """Let whoever watches be a server that has died: the next one is told what it did not acknowledge."""
        self._listener = None
        self._unreported = [*self._unacknowledged.values(), *self._unreported]

    def vanish(self, task_id: TaskId) -> None:
        """Let nothing be left of a task, and nobody be told."""
        del self._tasks_of[self._tasks.pop(task_id).order.node_id][task_id]
        self._seen = None

    def refuse(self, task_id: TaskId, error: str, *, is_unfit: bool = False) -> None:
        """Let the start of this task fail for this reason, which is one of its machine's or not."""
        self._refused[task_id] = error, is_unfit

    def lose_node(self, node_id: NodeId) -> None:
        """Take a node away with all its tasks; nobody sees their exit codes."""
        del self._nodes[node_id]
        self._seen = None
        for task_id in list(self._tasks_of[node_id]):
            self.exit(task_id, None)

    def add_node(self, node: NodeView) -> None:
        """Add a node, or give one other slots."""
        self._nodes[node.id] = node
        self._seen = None

    def _check(self, order: StartOrder) -> None:
        node = self._nodes.get(order.node_id)
        if node is None:
            raise ValueError(f"there is no node {order.node_id!r}; there are {sorted(self._nodes)}")
        if not order.slots or len(set(order.slots)) < len(order.slots):
            raise ValueError(f"task {order.task_id} is given slots {order.slots}; name at least one, and none twice")
        mine = [sim.order for sim in self._tasks_of[order.node_id].values()]
        for slot in order.slots:
            if slot not in node.slots:
                raise ValueError(f"there is no slot {slot} on node {order.node_id}; it has {node.slots}")
            holders = [held for held in mine if slot in held.slots]
            if sum(held.slot_share for held in holders) + order.slot_share > WHOLE_SLOT:
                raise ValueError(f"slot {slot} of node {order.node_id} is held by task {holders[0].task_id}")

    def _begin(self, task_id: TaskId) -> None:
        sim = self._tasks.get(task_id)
        if sim is None:
            return
        if task_id in self._refused:
            error, is_unfit = self._refused[task_id]
            self._end(task_id, TaskExit(task_id=task_id, exit_code=None, error=error, is_unfit=is_unfit))
        else:
            sim.pid, self._seen = next(self._pids), None
            if self._begun is not None:
                self._begun(sim.order, sim.pid)

    def _end(self, task_id: TaskId, ended: TaskExit) -> None:
        sim = self._tasks.get(task_id)
        if sim is None or sim.ending:
            return
        sim.ending = True
        if self._gone is not None:
            self._gone(task_id)
        self._clock.call_later(self._times.exit_s, lambda: self._report(ended))

    def _end_sidecar(self, sidecar_id: TaskId, error: str) -> None:
        *_, ended = self.sidecars.pop(sidecar_id, (None, lambda _error: None))
        ended(error)

    def _report(self, ended: TaskExit) -> None:
        for sidecar_id in [name for name, (_, beside, _) in self.sidecars.items() if beside == ended.task_id]:
            self._end_sidecar(sidecar_id, "its task has ended")
        self.vanish(ended.task_id)
        self._unreported.append(replace(ended, facts=self._facts.pop(ended.task_id, ExitFacts())))
        self._report_all()

    def _report_all(self) -> None:
        while self._listener is not None and self._unreported:
            ended = self._unreported.pop(0)
            self._unacknowledged[ended.task_id] = ended
            self._listener(ended)
