"""The agent of a node: it owns the slots there, and starts, watches, records and ends the tasks that hold them.

Theory of operation
-------------------

An adapter (`pliant.cluster.node`) and the agent exchange messages over a channel, and share nothing else. The agent
has one thread. In one selector it waits for three kinds of files: the channel, the socket to its zygote, and a pidfd
for every task's process. Whenever it wakes (`tick`) it obeys what has arrived, does what can be done now, and sends
what is to be sent. So nothing in the agent needs a lock, and the messages about one task are in order.

Who is whose parent, when the agent is a thread of the server's:

    server (adapter + agent)
     └─ zygote            has imported torch once; in a session of its own
         ├─ job-1.1       a fork of it; in a session of its own, with all that it starts
         └─ job-1.2

One task from order to exit, in milliseconds (medians on two busy cores, torch imported by the zygote):

     0.0  `start(job-1.1, slots 0 and 1)`: the adapter finds both slots free in its copy, notes the task as their
          holder, sends `Start` and returns after 0.1; whoever observes now sees the task without a pid
     1.0  the agent has written the record `job-1.1.json`, without a pid, and sends the zygote a `Launch`
    13    the zygote has forked, completed the record with the pid, and let the child run; the agent has opened a pidfd
          and sent `Observed` with the pid
    29    the first line of the task's program runs
          …
     0.0  `kill(job-1.1)`: the agent sends SIGKILL through the pidfd
    14    the zygote has reaped the process, killed what was left of its session, and written the exit code to the
          record; the agent has freed the slots and sent `Exited`; the adapter has called its listener
    15    `Acknowledge` has arrived: the record says that the exit was reported, and no later agent reports it

What survives what: tasks survive all but the machine. If the adapter goes, the agent goes on until its last task has
ended: it still enforces memory limits. If the agent goes, the zygote goes on until its last child has ended and keeps
writing records. If the zygote goes, the agent sees its tasks' processes end through their pidfds, without exit codes.

A new agent on the same folder takes the next number (`term`) before it reads the records, and adopts what they name. An
older agent that still runs, say after SIGSTOP and SIGCONT, finds the newer number at its next tick and does nothing any
more; its zygote finds it under the lock that it forks under. So no task ever has two agents, nor a slot two tasks.
"""

import logging
import selectors
import signal
import time
from collections import deque
from collections.abc import Mapping
from typing import Final, assert_never

from pliant.cluster.agent.channel import AgentChannel
from pliant.cluster.agent.devices import Devices, discover
from pliant.cluster.agent.file_mover import FileMover
from pliant.cluster.agent.free_ports import FreePorts
from pliant.cluster.agent.machine_watch import MachineReader, MachineWatch
from pliant.cluster.agent.messages import (
    Acknowledge,
    Alive,
    Close,
    Drain,
    EndSidecar,
    FromAgent,
    Introduce,
    Kill,
    Measured,
    NodeFound,
    ResendExits,
    Retain,
    Start,
    StartSidecar,
    ToAgent,
    UpToDate,
    UseAddress,
    WriteStacks,
)
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.agent.tasks import Outside, Tasks
from pliant.cluster.zygote import records
from pliant.cluster.zygote.deadline import LEFT_ALONE, OrphanDeadline
from pliant.core.plan import NodeView
from pliant.core.ports import Clock
from pliant.isolation.report import walls_for

_log = logging.getLogger(__name__)

_IDLE_S: Final = 1.0
_ALIVE_EVERY_S: Final = 0.9
"""A little less than an idle agent waits, so that it says so at every tick."""
_PAUSE_AFTER_ERROR_S: Final = 0.1
_NUM_SPARE_PORTS: Final = 16


class Agent:
    """One node; its thread calls `run` and nobody else calls anything."""

    def __init__(
        self,
        settings: AgentSettings,
        channel: AgentChannel,
        *,
        clock: Clock,
        base_env: Mapping[str, str],
        deadline: OrphanDeadline | None = None,
        files: FileMover | None = None,
    ) -> None:
        """Begin a new term: adopt what an earlier agent left running, start a zygote, send the account of the node.

        Args:
            settings: see there.
            channel: to the adapter; the agent closes it.
            clock: dates the exits in the records.
            base_env: what every task's environment starts from; names that begin with PLIANT_ are left out.
            deadline: until when its tasks may go on without a server; None: for ever.
            files: brings and sends files of jobs; None: this machine sees the server's.

        Raises:
            ValueError: fewer than one slot was declared.
        """
        devices = discover(settings.num_slots, base_env)
        self._node_id = settings.node_id
        self._state_dir = settings.state_dir.absolute()
        self._state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._channel: AgentChannel | None = channel
        self._deadline, self._waits = deadline, settings.waits_for_a_server
        self._arrived: deque[ToAgent] = deque()
        self._node = _node_view(settings, devices)
        self._unsent: deque[FromAgent] = deque([NodeFound(node=self._node)])
        self._closing = self._superseded = False
        self._alive_at = 0.0
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ, self._receive)
        self._ports = FreePorts(settings.host, num_ready=_NUM_SPARE_PORTS + devices.num_slots)
        self._term = records.new_term(self._state_dir)
        self._tasks = Tasks(
            settings,
            devices,
            self._selector,
            term=self._term,
            clock=clock,
            base_env={name: value for name, value in base_env.items() if not name.startswith("PLIANT_")},
            outside=Outside(send=self._unsent.append, files=files),
        )
        self._machine = MachineWatch(MachineReader(devices).read)
        self._update_ports()
        self._unsent.append(UpToDate())
        self._send()

    @property
    def is_superseded(self) -> bool:
        """Tell whether a later agent has begun, whose everything is now."""
        return self._superseded

    def run(self) -> None:
        """Serve until `Close` arrives; without an adapter until the last task has ended, or a later agent has begun.

        An agent that is not to wait for a server ends when it has ended its tasks.
        """
        while not self._closing and (self._channel is not None or (len(self._tasks) and not self._superseded)):
            try:
                self.tick(self._wait_s())
            except Exception:  # noqa: BLE001 - the top of the loop
                _log.exception("the agent of node %s goes on after an error", self._node_id)
                time.sleep(_PAUSE_AFTER_ERROR_S)
        self._tasks.close(newest=self._is_newest())
        if self._channel is not None:
            self._channel.close()
        self._selector.close()

    def tick(self, timeout_s: float) -> None:
        """Wait for something to happen, no longer than this, and deal with it."""
        for key, _ in self._selector.select(timeout_s):
            key.data()
        if not self._is_newest():
            self._closing |= any(isinstance(message, Close) for message in self._arrived)
            self._arrived.clear()
            time.sleep(_PAUSE_AFTER_ERROR_S)
            return
        while self._arrived:
            self._execute(self._arrived.popleft())
        self._keep_deadline()
        self._tasks.advance()
        self._update_ports()
        self._note_alive()
        self._note_machine()
        self._send()

    def _wait_s(self) -> float:
        """Return how long a tick may wait for something to happen, seconds."""
        return 0.0 if self._unsent else (self._tasks.wait_s() or _IDLE_S)

    def _execute(self, message: ToAgent) -> None:
        match message:
            case Start():
                self._tasks.start(message.order)
            case Drain() | Kill():  # the zygote ends the rest of the task's session when it reaps it
                number = signal.SIGKILL if isinstance(message, Kill) else signal.SIGTERM
                self._tasks.send_signal(message.task_id, number)
            case WriteStacks():
                self._tasks.show_stacks(message.task_id)
            case StartSidecar() | EndSidecar():
                self._tasks.obey_about_sidecar(message)
            case ResendExits():
                self._tasks.exits.resend()
            case Acknowledge():
                self._tasks.exits.acknowledge(message.task_id)
            case Retain():
                self._tasks.retain(message.job_ids)
            case UseAddress() | Introduce():
                self._obey_about_node(message)
            case Close():
                self._closing = True
            case _:
                assert_never(message)

    def _obey_about_node(self, message: UseAddress | Introduce) -> None:
        """Take an address out of the stock, or send the account of the node as it is now."""
        if isinstance(message, UseAddress):
            self._ports.use(message.address.port)
            return
        self._unsent.append(NodeFound(node=self._node, session=message.session))
        self._tasks.give_account()
        self._unsent.append(self._ports.all())
        self._unsent.append(UpToDate())

    def _receive(self) -> None:
        if self._channel is None:
            return
        try:
            arrived = self._channel.receive()
        except ValueError as error:
            _log.error("the agent of node %s hangs up on its adapter: %s", self._node_id, error)
            arrived = None
        if arrived is not None:
            self._arrived.extend(arrived)
            return
        _log.warning("the adapter of node %s is gone; its tasks go on", self._node_id)
        self._selector.unregister(self._channel)
        self._channel.close()
        self._channel = None

    def _send(self) -> None:
        """Send what was noted for the adapter; without one nobody is to know."""
        if self._channel is None:
            self._unsent.clear()
            return
        while self._unsent:
            self._channel.send(self._unsent.popleft())
        more = selectors.EVENT_WRITE if self._channel.flush() else 0
        self._selector.modify(self._channel, selectors.EVENT_READ | more, self._receive)

    def _keep_deadline(self) -> None:
        """End all tasks if no server has been heard of for too long: their job may be started elsewhere from now on."""
        if self._deadline is not None and self._deadline.is_over():
            self._tasks.end_all(LEFT_ALONE)
            self._closing |= not (self._waits or len(self._tasks))

    def _update_ports(self) -> None:
        if (changes := self._ports.changes()) is not None:
            self._unsent.append(changes)

    def _note_alive(self) -> None:
        """Say once a second that all goes on, and whether the zygote answers."""
        now = time.monotonic()
        if now >= self._alive_at:
            self._alive_at = now + _ALIVE_EVERY_S
            self._unsent.append(Alive(zygote_silent_s=self._tasks.ask_zygote(now)))

    def _note_machine(self) -> None:
        """Say how the machine is, if that was read anew."""
        if (facts := self._machine.newest()) is not None:
            self._unsent.append(Measured(facts=facts))

    def _is_newest(self) -> bool:
        """Return whether no later agent has begun. If one has, the tasks and their records are that one's."""
        if records.term(self._state_dir) in (self._term, None):
            return True
        if not self._superseded:
            _log.warning("a later agent has taken over node %s; this one does nothing any more", self._node_id)
        self._superseded = True
        return False


def _node_view(settings: AgentSettings, devices: Devices) -> NodeView:
    found = walls_for(settings.isolation, settings.uid)
    return NodeView(
        id=settings.node_id,
        slots=tuple(range(devices.num_slots)),
        labels=settings.labels,
        num_gpus=len(devices.gpus),
        num_cpus=devices.num_cpus,
        walls=found.walls,
        missing_walls=found.missing,
        has_copies=settings.has_copies,
    )
