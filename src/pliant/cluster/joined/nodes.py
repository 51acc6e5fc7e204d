"""The port `Cluster` over the machines that have joined, of which the server's own is one like the others.

Each machine has an adapter of its own (`NodeCluster`), and this one knows which is asked. What is known of a machine
outlives its connections, and what it is, the server: one that starts while machines are away begins with what is
remembered of them, and their tasks count as living until their agents tell, or must have ended them. Tasks that the
server has started in its own process, before other machines could join, are seen as long as there are any.

Three laws keep work from being done twice:
- a slot is offered only while its agent is heard;
- a task of a machine that is not heard exits here only when its agent says so, or when that has ended it for sure: the
  orphan time is over, and a little more;
- who comes back with tasks that have exited here, or that nobody ordered, has to end them first.

Knows no sockets: whoever has the connections calls `greet`, `hear` and `look`.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import is_
from secrets import token_hex
from typing import Final

from pliant.cluster.joined.hearing import Hearing, ListenedTime
from pliant.cluster.joined.leftovers import Leftovers
from pliant.cluster.joined.outbox import Outbox
from pliant.cluster.node import KnownNode, NodeCluster
from pliant.cluster.zygote.deadline import boot_time
from pliant.core.errors import Unavailable
from pliant.core.job import JobId, NodeId, TaskId
from pliant.core.machine import MeasuredMachine
from pliant.core.plan import NodeView
from pliant.core.ports import Address, Observation, StartOrder, TaskExit, TaskNote

DEFAULT_ORPHAN_S: Final = 60.0
_GONE: Final = "was on a machine of which nothing was heard for {:.0f} s, and was ended there"
_LOST: Final = "; what it wrote and that machine had not sent by then is lost, the end of its log too"
"""Of a machine that does not see the state folder."""
_NOTHING: Final = Observation(nodes=(), tasks=())


@dataclass(slots=True, kw_only=True)
class JoinedNode:
    """A machine that has joined."""

    cluster: NodeCluster
    outbox: Outbox
    hearing: Hearing
    _seen: Observation | None = field(default=None, init=False)
    _seen_away: Observation = field(default=_NOTHING, init=False)
    """What `_seen` looks like while it is away."""

    def observe(self, listened: ListenedTime) -> Observation:
        """Return what is known of it, the same value as before unless something has changed.

        While it is away, its free slots are not among that.
        """
        seen = self.cluster.observe()
        if not self.hearing.is_away(listened):
            return seen
        if seen is not self._seen:
            held = {slot for task in seen.tasks for slot in task.slots}
            nodes = tuple(replace(node, slots=tuple(sorted(held)), away=True) for node in seen.nodes)
            self._seen_away, self._seen = Observation(nodes=nodes, tasks=seen.tasks), seen
        return self._seen_away


class ClusterOfNodes:
    """All nodes of a pool; implements `pliant.core.ports.Cluster`. Safe to call from any thread.

    Args:
        own: has what a server started on its own machine before others could join; None: there is no such thing.
        known: what is remembered of those that have joined.
        lease_s: so long a machine may be silent before nothing is started there.
        orphan_s: so long its agent lets tasks go on without a server.
    """

    def __init__(
        self,
        own: NodeCluster | None,
        known: Collection[KnownNode] = (),
        *,
        lease_s: float = 2.0,
        orphan_s: float = DEFAULT_ORPHAN_S,
    ) -> None:
        self.listened = ListenedTime(lease_s)
        self.orphan_s = orphan_s
        self.changed: Callable[[], None] = lambda: None
        """Called when a machine has come or gone."""
        self.sign: Callable[[StartOrder], str] = lambda _order: ""
        """Returns the ticket of an order, for machines that do not see the state folder."""
        self._own = own
        self._lock = threading.RLock()
        self._joined: dict[NodeId, JoinedNode] = {}
        self._places: dict[TaskId, NodeCluster] = {}
        """Where tasks of joined machines are, until their exits are acknowledged."""
        self._observed: tuple[Sequence[Observation], Observation] = (), _NOTHING
        """What `observe` returned last, and what of each node it was made of."""
        self._leftovers = Leftovers()
        self._listener: Callable[[TaskExit], None] | None = None
        self._note: Callable[[TaskNote], None] = lambda _note: None
        for one in known:
            self._add(one)

    # the port

    def observe(self) -> Observation:
        parts = [self._observe_own(), *(one.observe(self.listened) for _, one in self._all())]
        before, observed = self._observed
        if len(parts) == len(before) and all(map(is_, parts, before)):
            return observed
        nodes, tasks = observed.nodes, tuple(chain.from_iterable(part.tasks for part in parts))
        if (found := tuple(chain.from_iterable(part.nodes for part in parts))) != nodes:
            nodes = found
        self._observed = parts, (observed := Observation(nodes=nodes, tasks=tasks))
        return observed

    def silent_nodes(self) -> Collection[NodeId]:
        return frozenset(node_id for node_id, one in self._all() if one.hearing.is_silent(self.listened))

    def unsteady_nodes(self) -> Mapping[NodeId, float]:
        found = ((node_id, one.hearing.unsteady_s(self.listened)) for node_id, one in self._all())
        return {node_id: left_s for node_id, left_s in found if left_s is not None}

    def measured(self) -> Mapping[NodeId, MeasuredMachine]:
        found: dict[NodeId, MeasuredMachine] = {}
        if self._own is not None and self._observe_own().nodes:
            found.update(self._own.measured())
        for _, one in self._all():
            if not one.hearing.is_away(self.listened):
                found.update(one.cluster.measured())
        return found

    def free_address(self, node_id: NodeId) -> Address:
        return self._of(node_id).free_address(node_id)

    refuses_user = staticmethod(NodeCluster.refuses_user)

    def start(self, order: StartOrder) -> None:
        with self._lock:
            one = self._joined.get(order.node_id)
            if one is not None and one.hearing.is_gone:
                raise Unavailable(f"task {order.task_id} cannot be started: nothing is heard of {order.node_id}")
            self._leftovers.note(JobId(order.task_id.rpartition(".")[0]), order.node_id)
        signed = replace(order, ticket=self.sign(order))
        self._place(order.task_id, self._of(order.node_id), lambda cluster: cluster.start(signed))

    def drain(self, task_id: TaskId) -> None:
        for cluster in self._with(task_id):
            cluster.drain(task_id)

    def kill(self, task_id: TaskId) -> None:
        for cluster in self._with(task_id):
            cluster.kill(task_id)

    def show_stacks(self, task_id: TaskId) -> None:
        for cluster in self._with(task_id):
            cluster.show_stacks(task_id)

    def start_sidecar(self, order: StartOrder, beside: TaskId, ended: Callable[[str], None]) -> None:
        for place in self._with(beside):
            self._place(order.task_id, place, lambda cluster: cluster.start_sidecar(order, beside, ended))
            return
        raise Unavailable(f"nothing can be started beside {beside}: it is on no machine of this pool")

    def end_sidecar(self, sidecar_id: TaskId) -> None:
        for cluster in self._with(sidecar_id):
            cluster.end_sidecar(sidecar_id)
        self._places.pop(sidecar_id, None)

    def watch(
        self, listener: Callable[[TaskExit], None], note: Callable[[TaskNote], None] = lambda _note: None
    ) -> None:
        with self._lock:
            self._listener, self._note = listener, note
            joined = list(self._joined.values())
        for cluster in (*self._own_alone(), *(one.cluster for one in joined)):
            cluster.watch(listener, note)

    def acknowledge(self, task_id: TaskId) -> None:
        for cluster in self._with(task_id):
            cluster.acknowledge(task_id)
        self._places.pop(task_id, None)

    def retain(self, job_ids: Collection[JobId]) -> None:
        with self._lock:
            concerned = self._leftovers.take(job_ids, self._joined, boot_time())
            joined = [self._joined[node_id].cluster for node_id in concerned if node_id in self._joined]
        for cluster in (*self._own_alone(), *joined):
            cluster.retain(job_ids)

    def close(self) -> None:
        for cluster in (*self._own_alone(), *(one.cluster for _, one in self._all())):
            cluster.close()

    # for whoever has the connections

    def greet(self, node_id: NodeId) -> JoinedNode:
        """Return a machine whose agent is there, and that is heard from now on.

        One that was away, or is new, is away until its account is here: it may have begun anew with nothing of what it
        had, and what it is to end first holds its slots.
        """
        with self._lock:
            one = self._joined.get(node_id) or self._add(KnownNode(node=NodeView(id=node_id, slots=(), away=True)))
            if one.hearing.is_away(self.listened):
                one.hearing.is_met = False
                self._leftovers.come(node_id)
            one.hearing.note(self.listened, boot_time())
        return one

    def introduce(self, one: JoinedNode) -> int:
        """Ask the agent of a machine that was greeted for its account; return the number of the session."""
        session = one.cluster.meet()
        self.changed()
        return session

    def meet(self, one: JoinedNode) -> None:
        """Take note that the account of a machine is here."""
        with self._lock:
            one.hearing.is_gone, one.hearing.is_met = False, True
        self.changed()

    def hear(self, one: JoinedNode) -> None:
        """Take note that the agent of a machine was heard just now."""
        was_away = one.hearing.is_away(self.listened)
        one.hearing.note(self.listened, boot_time())
        if was_away:
            self.changed()

    def look(self) -> None:
        """Count the time in which the links were read, and give up machines whose tasks must have ended."""
        was_away = [one for _, one in self._all() if one.hearing.is_away(self.listened)]
        self.listened.look()
        real = boot_time()
        for _, one in self._all():
            if one.hearing.is_over(real, self.orphan_s):
                self._give_up(one, _GONE.format(real - one.hearing.real_at))
        if was_away != [one for _, one in self._all() if one.hearing.is_away(self.listened)]:
            self.changed()

    def forget(self, node_id: NodeId) -> None:
        """Know nothing of a machine any more; what may run there is taken for ended."""
        with self._lock:
            one = self._joined.pop(node_id, None)
        if one is not None:
            self._give_up(one, "was on a machine that was removed from the pool")
            self.changed()

    def is_living(self, node_id: NodeId) -> bool:
        """Tell whether the agent of a machine was heard just now."""
        one = self._joined.get(node_id)
        return one is not None and not one.hearing.is_silent(self.listened)

    def is_here(self, node_id: NodeId) -> bool:
        """Tell whether tasks are started on a machine, as far as its agent is concerned."""
        one = self._joined.get(node_id)
        return one is not None and not one.hearing.is_away(self.listened)

    def job_of(self, node_id: NodeId, task_id: TaskId) -> str | None:
        """Return whose task it is that lives on a machine, as far as is known; None: nobody's."""
        one = self._joined.get(node_id)
        return None if one is None or not one.cluster.holds(task_id) else task_id.rpartition(".")[0]

    def _give_up(self, one: JoinedNode, why: str) -> None:
        one.hearing.is_gone = True
        one.outbox.drop()
        has_copies = any(node.has_copies for node in one.cluster.observe().nodes)
        one.cluster.give_up(why + _LOST if has_copies else why)
        self.changed()

    def _add(self, known: KnownNode) -> JoinedNode:
        outbox = Outbox(token_hex(16))
        cluster = NodeCluster(outbox, known=known)
        hearing = Hearing(listened_at=self.listened.total_s, real_at=boot_time())
        self._places.update({task.task_id: cluster for task in known.tasks})
        self._joined[known.node.id] = one = JoinedNode(cluster=cluster, outbox=outbox, hearing=hearing)
        if self._listener is not None:
            cluster.watch(self._listener, self._note)
        return one

    def _all(self) -> Iterator[tuple[NodeId, JoinedNode]]:
        with self._lock:
            return iter(tuple(self._joined.items()))

    def _place(self, task_id: TaskId, cluster: NodeCluster, start: Callable[[NodeCluster], None]) -> None:
        """Start something; where it is, is known before it can exit."""
        before = self._places.get(task_id)
        if cluster is not self._own:
            self._places[task_id] = cluster
        try:
            start(cluster)
        except (Unavailable, ValueError):
            if before is None:
                self._places.pop(task_id, None)
            else:
                self._places[task_id] = before
            raise

    def _observe_own(self) -> Observation:
        """Return what is known of what an earlier server has started by itself."""
        seen = _NOTHING if self._own is None else self._own.observe()
        return seen if seen.tasks or any(node.slots for node in seen.nodes) else _NOTHING

    def _of(self, node_id: NodeId) -> NodeCluster:
        """Raises ValueError: there is no such node."""
        if (one := self._joined.get(node_id)) is not None:
            return one.cluster
        if self._own is not None:
            return self._own
        raise ValueError(f"there is no node {node_id!r:.80}")

    def _with(self, task_id: TaskId) -> Collection[NodeCluster]:
        """Return who has a task, or may have it: one, or nobody."""
        found = self._places.get(task_id, self._own)
        return () if found is None else (found,)

    def _own_alone(self) -> Collection[NodeCluster]:
        return () if self._own is None else (self._own,)
