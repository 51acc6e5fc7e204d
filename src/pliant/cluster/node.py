"""The port `Cluster` over one agent, wherever that lives. Only messages go between the two.

It keeps a copy of what the agent has sent about its node: the slots, the tasks, free addresses. From this copy it
answers callers at once, and refuses what cannot be; what it lets through becomes a message to the agent. A slot that
the agent holds is never free in the copy: it is taken here before the agent knows of the task, and freed here after the
agent has freed it. Exits wait here until somebody listens; the agent keeps each until the listener has acknowledged it.

An agent of another machine may be out of reach for a while, or be another one when it is there again. Then it is asked
for its account anew (`meet`). What was ordered before that and is not in the account, no longer lives: it exits here.
What is in the account and nobody ordered, as far as is known here, is killed; it holds its slots until it is gone.

Knows no processes.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from pliant.cluster.agent.messages import (
    Acknowledge,
    Addresses,
    Alive,
    Drain,
    EndSidecar,
    Exited,
    FromAgent,
    Introduce,
    Kill,
    Measured,
    NodeFound,
    Noted,
    Observed,
    Readiness,
    ResendExits,
    Retain,
    SidecarEnded,
    Spent,
    Start,
    StartSidecar,
    UpToDate,
    UseAddress,
    WriteStacks,
)
from pliant.cluster.agent.orders import check, held_slots
from pliant.cluster.channel import Channel
from pliant.core.errors import Unavailable
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.machine import MachineFacts, MeasuredMachine
from pliant.core.plan import NodeView
from pliant.core.ports import Address, LiveTask, Observation, StartOrder, TaskExit, TaskNote
from pliant.isolation.users import refusal

_BEGIN_S: Final = 30.0
STALLED_S: Final = 10.0
"""An agent, or a zygote, that says nothing for so long is stuck."""
_NEVER_STARTED: Final = "was not started: the agent of its machine ended before it had begun to start it"
_FORGOTTEN: Final = "was on a machine that has begun anew, and has nothing of it"
_RESTART: Final = "see the server's log, restart it if need be: tasks go on meanwhile"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNode:
    """What is remembered of a node whose agent has not been heard yet."""

    node: NodeView
    tasks: tuple[LiveTask, ...] = ()
    """Those that were started there and have not ended, as far as is known."""


class NodeCluster:
    """The slots of one node; implements `pliant.core.ports.Cluster`."""

    refuses_user = staticmethod(refusal)
    """Answered here: adapter and agent share a machine and a user of it."""

    def __init__(
        self, channel: Channel, *, known: KnownNode | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Open the channel, and wait for the agent's account of its node unless something is known of that.

        Args:
            channel: to the agent.
            known: what is remembered of a node of another machine.
            monotonic: tells how long it is silent.

        Raises:
            Unavailable: there is no agent at the other end.
        """
        self._channel = channel
        self._monotonic = monotonic
        self._alive = Alive()
        self._alive_at = monotonic()
        self._lock = threading.Lock()
        self._up_to_date = threading.Event()
        self._node: NodeView | None = None
        self._facts: tuple[MachineFacts, float] | None = None
        """The newest, and when they came."""
        self._tasks: dict[TaskId, LiveTask] = {}
        self._seen: Observation | None = None
        """What `observe` returned last; None once that is not so any more."""
        self._spent: set[TaskId] = set()
        self._addresses: dict[Address, None] = {}
        self._no_address = ""
        self._readiness = Readiness(pid=None, warm=False)
        self._exits: dict[TaskId, TaskExit] = {}
        """Those that no listener has been called with."""
        self._sidecars: dict[TaskId, Callable[[str], None]] = {}
        """Whom to tell of the ends of those that were ordered."""
        self._listener: Callable[[TaskExit], None] | None = None
        self._note_to: Callable[[TaskNote], None] = lambda _note: None
        self._closed = ""
        self._session = 0
        self._unconfirmed: frozenset[TaskId] = frozenset()
        """Those whose orders were sent before the agent was asked for its account, which has not come to them yet."""
        self._reported: set[TaskId] = set()
        """Whose exits the listener was called with and has not acknowledged."""
        self._strange: set[TaskId] = set()
        """Those in an account that nobody ordered; they are killed."""
        self._is_remote = known is not None
        if known is not None:
            self._node = known.node
            self._tasks = {task.task_id: task for task in known.tasks}
            channel.open(self._take)
            return
        channel.open(self._take)
        if not self._up_to_date.wait(_BEGIN_S) or self._node is None:
            channel.close()
            raise Unavailable("the agent that starts tasks does not answer; its log says why")

    # the port

    def observe(self) -> Observation:
        if (seen := self._seen) is not None:
            return seen
        with self._lock:
            self._seen = seen = Observation(nodes=(self._own_node(),), tasks=tuple(self._tasks.values()))
        return seen

    def unsteady_nodes(self) -> Mapping[NodeId, float]:
        return {}

    def silent_nodes(self) -> Collection[NodeId]:
        return ()

    def measured(self) -> Mapping[NodeId, MeasuredMachine]:
        with self._lock:
            if self._facts is None:
                return {}
            facts, at = self._facts
            return {self._own_node().id: MeasuredMachine(facts=facts, age_s=max(0.0, self._monotonic() - at))}

    def free_address(self, node_id: NodeId) -> Address:
        with self._lock:
            own = self._own_node().id
            if node_id != own:
                raise ValueError(f"there is no node {node_id!r}; the only one here is {own!r}")
            if not self._addresses:
                raise OSError(self._no_address or f"all free ports of {own} have just been given away; try again")
            address = next(iter(self._addresses))
            del self._addresses[address]
        self._channel.send(UseAddress(address=address))
        return address

    def start(self, order: StartOrder) -> None:
        with self._lock:
            if self._closed:
                raise Unavailable(f"task {order.task_id} cannot be started: {self._closed}")
            if order.task_id in self._spent:
                return
            node = self._own_node()
            check(order, node.id, len(node.slots), held_slots(self._tasks.values()))
            self._channel.send(Start(order=order))
            self._spent.add(order.task_id)
            self._tasks[order.task_id] = LiveTask(
                task_id=order.task_id, node_id=node.id, slots=order.slots, slot_share=order.slot_share, pid=None
            )
            self._seen = None

    def drain(self, task_id: TaskId) -> None:
        self._channel.send(Drain(task_id=task_id))

    def kill(self, task_id: TaskId) -> None:
        self._channel.send(Kill(task_id=task_id))

    def show_stacks(self, task_id: TaskId) -> None:
        self._channel.send(WriteStacks(task_id=task_id))

    def start_sidecar(self, order: StartOrder, beside: TaskId, ended: Callable[[str], None]) -> None:
        with self._lock:
            if self._closed:
                raise Unavailable(f"nothing can be started beside {beside}: {self._closed}")
            self._sidecars[order.task_id] = ended
        self._channel.send(StartSidecar(order=order, beside=beside))

    def end_sidecar(self, sidecar_id: TaskId) -> None:
        self._channel.send(EndSidecar(sidecar_id=sidecar_id))

    def watch(
        self, listener: Callable[[TaskExit], None], note: Callable[[TaskNote], None] = lambda _note: None
    ) -> None:
        with self._lock:
            self._listener, self._note_to = listener, note
        self._channel.send(ResendExits())  # so that the channel's thread calls the listener with those that wait

    def acknowledge(self, task_id: TaskId) -> None:
        with self._lock:
            self._reported.discard(task_id)
        self._channel.send(Acknowledge(task_id=task_id))

    def retain(self, job_ids: Collection[JobId]) -> None:
        self._channel.send(Retain(job_ids=tuple(job_ids)))

    def close(self) -> None:
        with self._lock:
            self._closed = "this cluster is closed"
            self._listener = None  # an exit that arrives from now on is the next server's
        self._channel.close()
        with self._lock:
            self._tasks.clear()
            self._seen = None

    # beyond the port

    def meet(self) -> int:
        """Ask an agent that is there, for the first time or again, for its account; return the number of the session.

        Orders that were sent before reach it before this does.
        """
        with self._lock:
            self._session += 1
            self._unconfirmed = frozenset(self._tasks)
            self._channel.send(Introduce(session=self._session))
            sidecars = list(self._sidecars) if self._session > 1 else []
        for sidecar_id in sidecars:  # its end may have been told to nobody
            self._channel.send(EndSidecar(sidecar_id=sidecar_id))
            self._end_sidecar(sidecar_id, "the link to its machine was lost")
        return self._session

    def give_up(self, why: str) -> None:
        """Take all tasks for ended: the node is gone, or has ended them by itself; each exits for this reason."""
        with self._lock:
            gone = [task_id for task_id in self._tasks if task_id not in self._strange]
            self._tasks.clear()
            self._seen = None
            self._strange.clear()
            self._addresses.clear()
        for sidecar_id in list(self._sidecars):
            self._end_sidecar(sidecar_id, why)
        for task_id in gone:
            self._tell(TaskExit(task_id=task_id, exit_code=None, cause=why))

    def holds(self, task_id: TaskId) -> bool:
        """Tell whether a task that was ordered lives here, as far as is known."""
        with self._lock:
            return task_id in self._tasks and task_id not in self._strange

    def readiness(self) -> Readiness:
        """Return how ready the zygote is."""
        return self._readiness

    def trouble(self) -> str:
        """Return what keeps tasks from being started and ended, in words; empty if nothing does."""
        with self._lock:
            if self._closed:
                return self._closed
            silent_s, zygote_silent_s = self._monotonic() - self._alive_at, self._alive.zygote_silent_s
        if silent_s > STALLED_S:
            return f"the agent that starts tasks has not looked at them for {silent_s:.0f} s; {_RESTART}"
        if zygote_silent_s > STALLED_S:
            return f"the zygote that forks tasks has not answered for {zygote_silent_s:.0f} s; {_RESTART}"
        return ""

    def _own_node(self) -> NodeView:
        assert self._node is not None, "the account of the node begins with it"
        return self._node

    def _take(self, message: FromAgent | None) -> None:
        """Take in what the agent has sent; None: it is gone."""
        if isinstance(message, Exited):
            self._take_exit(message.exit)
        elif isinstance(message, Noted):
            self._note_to(message.note)
        elif isinstance(message, SidecarEnded):
            self._end_sidecar(message.sidecar_id, message.error)
        elif isinstance(message, Alive):
            with self._lock:
                self._alive, self._alive_at = message, self._monotonic()
        else:
            self._note(message)
        if message is None:
            for sidecar_id in list(self._sidecars):
                self._end_sidecar(sidecar_id, "the agent of its node has ended")

    def _end_sidecar(self, sidecar_id: TaskId, error: str) -> None:
        with self._lock:
            ended = self._sidecars.pop(sidecar_id, None)
        if ended is not None:
            ended(error)

    def _note(self, message: NodeFound | Observed | Spent | Readiness | Addresses | Measured | UpToDate | None) -> None:
        """Take what changes the copy of the node."""
        lost: tuple[LiveTask, ...] = ()
        with self._lock:
            match message:
                case NodeFound():
                    self._node, self._seen = message.node, None
                    self._addresses.clear()
                case Observed():
                    self._observe(message.task)
                case Spent():
                    self._spent.update(message.task_ids)
                case Addresses():
                    self._note_addresses(message)
                case Measured():
                    self._facts = message.facts, self._monotonic()
                case Readiness():
                    self._readiness = message
                case UpToDate():
                    lost = tuple(self._tasks[task_id] for task_id in self._unconfirmed & self._tasks.keys())
                    self._unconfirmed = frozenset()
                    self._up_to_date.set()
                case None:
                    self._closed = self._closed or "the agent of its node has ended"
                    self._up_to_date.set()
                case _:
                    assert_never(message)
        for task in lost:
            cause = _NEVER_STARTED if task.pid is None else _FORGOTTEN  # the next one may start it, or another machine
            self._take_exit(TaskExit(task_id=task.task_id, exit_code=None, cause=cause))

    def _note_addresses(self, message: Addresses) -> None:
        for address in message.withdrawn:
            self._addresses.pop(address, None)
        self._addresses.update(dict.fromkeys(message.added))
        self._no_address = message.error

    def _observe(self, task: LiveTask) -> None:
        task_id = task.task_id
        if self._is_remote and task_id not in self._tasks and task_id not in self._strange:
            self._strange.add(task_id)
            self._channel.send(Kill(task_id=task_id))
        self._unconfirmed -= {task_id}
        self._tasks[task_id] = task
        self._seen = None

    def _take_exit(self, ended: TaskExit) -> None:
        """Free a task's slots and call the listener. An exit that is sent again counts only if none was called yet."""
        task_id = ended.task_id
        with self._lock:
            is_known = self._tasks.pop(task_id, None) is not None and task_id not in self._strange
            self._seen = None
            is_waited_for = task_id in self._reported or task_id in self._exits
            is_nobodys = self._is_remote and not is_known and not is_waited_for
            self._strange.discard(task_id)
        if is_nobodys:
            self._channel.send(Acknowledge(task_id=task_id))
        self._tell(ended, is_new=is_known)

    def _tell(self, ended: TaskExit, *, is_new: bool = True) -> None:
        with self._lock:
            if is_new:
                self._exits[ended.task_id] = ended
            if (listener := self._listener) is None or self._exits.pop(ended.task_id, None) is None:
                return
            self._reported.add(ended.task_id)
        listener(ended)
