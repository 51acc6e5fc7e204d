"""The room of the cluster: the server's own machine with its agent in this process, or those that have joined.

Where machines may join, the server's own is one of them: its agent is a process like theirs, so that it is known by the
next server too, wherever that runs.
"""

import os
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pliant.cluster.agent.settings import PRELOAD, AgentSettings
from pliant.cluster.channel import AgentThread
from pliant.cluster.node import NodeCluster
from pliant.control.loop.tick import Control
from pliant.control.requests.autoscaling import AutoscaledPool
from pliant.control.requests.joining import JoiningRoom
from pliant.core.job import NodeId
from pliant.core.joining import JoinedMachine
from pliant.core.plan import NodeView
from pliant.core.ports import Cluster
from pliant.entry.clock import SystemClock
from pliant.entry.own_machine import FOR_TORCH, SHARED_MEMORY, homes
from pliant.entry.server.home import Home
from pliant.entry.server.isolation import max_disk_bytes
from pliant.entry.server.listener import Listener
from pliant.entry.server.rooms.machines import MachinesRoom, open_machines, own_address
from pliant.entry.server.settings import ServerSettings
from pliant.isolation.report import walls_for
from pliant.isolation.variables import allowed
from pliant.store.sql import SqlStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRoom:
    """The nodes of a pool, as one cluster."""

    nodes: Cluster
    here: NodeView
    """The server's own machine; without slots if it is one of those that join."""
    trouble: Callable[[], str]
    """Tells what keeps tasks from being started on the server's own machine, in words."""
    machines: MachinesRoom | None
    """None: no machine may join."""

    @property
    def joining(self) -> JoiningRoom | None:
        """How machines join."""
        return None if self.machines is None else self.machines.joining

    def joined(self, name: str) -> JoinedMachine | None:
        """Return a machine that has joined; None: none of this name belongs to the pool."""
        return None if self.joining is None else self.joining.joining.get(name)

    def with_here(self) -> Collection[NodeView]:
        """Return all machines that are known, and the server's own also if it has no slots."""
        return {node.id: node for node in (self.here, *self.nodes.observe().nodes)}.values()

    def start(self, control: Control, removed: Callable[[str], None]) -> None:
        """Let agents of other machines connect; `control` is told when one has come or gone, `removed` of a machine
        that was taken out of the pool.
        """
        if self.machines is not None:
            self.machines.hub.removed = removed
            self.machines.nodes.changed = control.wake
            self.machines.start(AutoscaledPool(control.inquiries.machines, control.standing, control.queues))


def open_cluster(
    settings: ServerSettings,
    home: Home,
    listener: Listener,
    store: SqlStore,
    stack: ExitStack,
    *,
    is_sure: Callable[[], bool],
) -> ClusterRoom:
    """Start this machine's agent, or listen for those of all; what is to be closed goes onto the stack.

    `is_sure` tells that this server leads, for sure.
    """
    agent = _agent(settings, home, listener)
    if settings.cluster is None:
        own = _open_own(agent, settings, stack)
        return ClusterRoom(nodes=own, here=own.observe().nodes[0], trouble=own.trouble, machines=None)
    earlier = replace(agent, num_slots=0, preload=())
    own_tasks = _open_own(earlier, settings, stack) if agent.state_dir.exists() else None
    machines = open_machines(settings, agent, own_tasks, home, listener, store, is_sure=is_sure)
    stack.callback(machines.close)
    found = walls_for(agent.isolation, agent.uid)
    here = NodeView(id=NodeId(machines.own_name), slots=(), walls=found.walls, missing_walls=found.missing)
    trouble = own_tasks.trouble if own_tasks is not None else str  # of nobody there is none
    return ClusterRoom(nodes=machines.nodes, here=here, trouble=trouble, machines=machines)


def _open_own(agent: AgentSettings, settings: ServerSettings, stack: ExitStack) -> NodeCluster:
    """Start an agent in this process; it is closed with the stack."""
    base_env = allowed({**FOR_TORCH, **os.environ}, settings.pass_env)
    own = NodeCluster(AgentThread(agent, clock=SystemClock(), base_env=base_env))
    stack.callback(own.close)
    return own


def _agent(settings: ServerSettings, home: Home, listener: Listener) -> AgentSettings:
    encrypts = settings.cluster is not None and settings.cluster.encrypt_state
    encryption = ("pliant.files.certificates",) if encrypts else ()  # by which tasks make certificates
    return AgentSettings(
        node_id=NodeId("local"),
        state_dir=home.path / "agent",
        num_slots=settings.num_slots,
        labels=settings.labels,
        host=own_address(settings, listener),
        preload=(*PRELOAD, *encryption, *settings.preload),
        memory_root=SHARED_MEMORY / f"pliant-{os.getuid()}",
        isolation=settings.isolation,
        uid=None if settings.uids is None else settings.uids.start,
        may_read=settings.may_read,
        may_write=settings.may_write,
        hides=homes(),
        max_disk_bytes=max_disk_bytes(settings.max_disk, home.path),
        max_log_bytes=settings.max_log_bytes,
    )
