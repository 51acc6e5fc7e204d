"""One connection of a machine: a stranger's at first, a machine's once it has said who it is.

Whoever has no certificate of the pool's may ask to join, with a token; whoever has one is the machine that it names,
and speaks of no other. What a machine sends after that is checked like everything that comes from where people's code
runs: its form here, its sense by the adapter of its node.
"""

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final

from pliant.cluster.agent.messages import FromAgent, NodeFound, Observed, UpToDate
from pliant.cluster.joined.admission import HubSettings, NodeAdmission
from pliant.cluster.joined.carrying import FilesConnection, stream_of
from pliant.cluster.joined.nodes import ClusterOfNodes, JoinedNode
from pliant.cluster.joined.writes import LoopWrites
from pliant.cluster.json_lines import MAX_LINE_BYTES, decode, encode
from pliant.cluster.link.messages import (
    FROM_NODE,
    GREETINGS,
    MAX_GREETING_BYTES,
    Carry,
    Carrying,
    Greeting,
    Here,
    Join,
    JoinRefused,
    NodeRules,
    Renew,
    RenewCertificate,
    ToNode,
    Versions,
    Welcome,
)
from pliant.cluster.mirror.keeper import FileKeeper
from pliant.core.errors import Forbidden, PliantError, Unauthorized, Unavailable
from pliant.core.job import NodeId
from pliant.core.plan import NodeView
from pliant.core.ports import LiveTask
from pliant.core.slot import WHOLE_SLOT

_log = logging.getLogger(__name__)

RENEW_S: Final = 0.25
GREETING_S: Final = 10.0
_MAX_STRANGERS: Final = 256
"""Connections that have not said who they are."""
_MAX_UNSENT_BYTES: Final = 64 << 20
"""A machine that leaves more unread is cut off; it connects again."""
_MAX_SLOTS: Final = 4096
_MAX_CARRYING: Final = 16
"""Connections of one machine for files."""
RENEW_LINE: Final = re.compile(rb'\{"number": ([0-9]{1,15}), "received": ([0-9]{1,15}), "kind": "renew"\}')
"""A `Renew` as agents write it; nearly all that arrives is one. Whatever else is one is read as any message is."""
RENEWED_LINE: Final = b'{"number": %d, "kind": "renewed"}\n'
"""The answer, as `encode` makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubState:
    """What the connections of a hub share."""

    nodes: ClusterOfNodes
    admission: NodeAdmission
    settings: HubSettings
    loop: asyncio.AbstractEventLoop
    writes: LoopWrites
    in_thread: Callable[[Callable[[], Any]], "asyncio.Future[Any]"]
    """Does what may wait."""
    begin: Callable[[Coroutine[Any, Any, None]], None]
    """Does something while the loop goes on."""
    strangers: dict["NodeConnection", None] = field(default_factory=dict)
    """The oldest first."""
    connections: dict[NodeId, "NodeConnection"] = field(default_factory=dict)
    keeper: FileKeeper | None = None
    """Hands out and takes in files; None: all machines see the state folder."""
    carrying: dict[NodeId, set[asyncio.Transport]] = field(default_factory=dict)
    """Connections for files."""
    disks: tuple[Executor, Executor]
    """Where files are waited for, and where all of a tree may have to be read."""


class NodeConnection(asyncio.Protocol):
    """One connection; used in the hub's loop alone, but for `write`."""

    def __init__(self, hub: HubState) -> None:
        self._hub = hub
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._max_bytes = MAX_GREETING_BYTES
        self._is_greeted = False
        self._name: NodeId | None = None
        self._node: JoinedNode | None = None
        self._incarnation = ""
        self._session = 0
        self._is_accounted = False
        """The account that was asked for has begun."""
        self._num_slots = 0
        """As the account says."""
        self._is_signing = False
        """A certificate is being renewed: one at a time."""
        self._timer: asyncio.TimerHandle | None = None

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._hub.strangers) >= _MAX_STRANGERS:  # a machine says at once who it is: the oldest is none
            next(iter(self._hub.strangers)).abort()
        self._hub.strangers[self] = None
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timer = self._hub.loop.call_later(GREETING_S, self.abort)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if b"\n" not in data and len(self._buffer) <= self._max_bytes:
            return
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        if len(rest) > self._max_bytes or any(len(line) > self._max_bytes for line in lines):
            self.end(f"a line is longer than {self._max_bytes} bytes")
            return
        for line in lines:
            try:
                self._take(line)
            except ValueError as error:
                self.end(f"what this machine sends is not understood: {error}")
                return

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._hub.strangers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        if self._node is not None:
            self._node.outbox.detach(self.write)
        if self._name is not None and self._hub.connections.get(self._name) is self:
            del self._hub.connections[self._name]
            _log.info("the link to %s is lost", self._name)
        self._transport = None

    def write(self, data: bytes) -> None:
        """Send, from any thread."""
        self._hub.writes.put(self._write, data)

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self._transport.abort()

    def end(self, reason: str, *, is_final: bool = False, is_removed: bool = False) -> None:
        """End, and say why."""
        if self._transport is None or self._transport.is_closing():
            return
        _log.warning("a link is ended (%s): %s", self._name or "a stranger's", reason)
        self._send(JoinRefused(reason=reason, is_final=is_final, is_removed=is_removed))
        self._transport.close()

    def _write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > _MAX_UNSENT_BYTES:
            _log.warning("%s leaves too much unread; it is cut off", self._name)
            self.abort()

    def _send(self, message: ToNode) -> None:
        self._write(encode(message))

    # what arrives

    def _take(self, line: bytes) -> None:
        """Raises ValueError: it is no message that belongs here."""
        if not self._is_greeted:
            self._is_greeted = True
            greeting = decode(line, GREETINGS)
            self._hub.begin(self._answer(self._greet(greeting)))
            return
        if self._node is None or self._name is None:
            raise ValueError("it speaks before it was answered")
        if self._node.outbox.is_closed:  # while the link stood still; its account begins anew with the next connection
            self.end("this machine was taken for gone, and its tasks for ended; it is to connect again")
            return
        self._take_from(self._name, self._node, line)

    def _take_from(self, name: NodeId, node: JoinedNode, line: bytes) -> None:
        if renew := RENEW_LINE.fullmatch(line):
            self._renew(int(renew[1]), int(renew[2]), node)
            return
        message = decode(line, FROM_NODE)
        if isinstance(message, Renew):
            self._renew(message.number, message.received, node)
        elif isinstance(message, RenewCertificate):
            if not self._is_signing:
                self._is_signing = True
                self._hub.begin(self._answer(self._renew_certificate(name, message.request)))
        else:
            self._hub.nodes.hear(node)
            self._deliver(message, name, node)

    def _renew(self, number: int, received: int, node: JoinedNode) -> None:
        node.outbox.confirm(received)
        if self._hub.settings.may_renew():
            self._hub.nodes.hear(node)
            self._write(RENEWED_LINE % number)

    def _deliver(self, message: FromAgent, name: NodeId, node: JoinedNode) -> None:
        if isinstance(message, NodeFound):
            if message.session != self._session or self._is_accounted:
                return  # an account that another connection asked for, or nobody
            _check_node(message.node, name)
            self._is_accounted, self._num_slots = True, len(message.node.slots)
            self._hub.in_thread(lambda: self._hub.admission.note(message.node)).add_done_callback(_log_failure)
            self._hub.loop.call_soon(self._hub.nodes.changed)
        if not self._is_accounted:
            return  # an agent that has just begun tells how things stand before it is asked
        if isinstance(message, Observed):
            _check_task(message.task, name, self._num_slots)
        node.outbox.take(message)
        if isinstance(message, UpToDate):
            self._hub.nodes.meet(node)

    async def _answer(self, answering: Coroutine[Any, Any, None]) -> None:
        """Answer a greeting, or refuse it."""
        try:
            await answering
        except PliantError as error:
            is_removed = isinstance(error, Unauthorized | Forbidden)
            self.end(str(error), is_final=not isinstance(error, Unavailable), is_removed=is_removed)
        except Exception:  # noqa: BLE001 - the top of what one stranger has asked for
            _log.exception("a machine that has connected could not be answered")
            self.end("the server cannot answer this machine just now; its log says why")

    async def _join(self, join: Join) -> None:
        hub = self._hub
        joined = await hub.in_thread(lambda: hub.admission.join(join, is_living=hub.nodes.is_living))
        _log.info("%s was taken into the pool", join.name)
        self._send(joined)
        if self._transport is not None:
            self._transport.close()

    def _greet(self, greeting: Greeting) -> Coroutine[Any, Any, None]:
        if isinstance(greeting, Join):
            return self._join(greeting)
        return self._carry(greeting) if isinstance(greeting, Carry) else self._meet(greeting)

    async def _carry(self, carry: Carry) -> None:
        """Serve files by this connection from now on."""
        name = await self._name_of(carry.versions)
        hub, transport = self._hub, self._transport
        if name is None or transport is None or transport.is_closing():
            return
        held = hub.carrying.setdefault(name, set())
        if hub.keeper is None or len(held) >= _MAX_CARRYING:
            self.end(
                "this server hands out no files" if hub.keeper is None else "it has too many connections for files"
            )
            return
        self._let_go()
        self._send(Carrying())
        held.add(transport)
        try:
            reader, writer = stream_of(transport, bytes(self._buffer), hub.loop)
            may_write = hub.settings.may_renew
            await FilesConnection(name, hub.keeper, reader, writer, hub.disks, may_write=may_write).serve()
        finally:
            held.discard(transport)

    async def _meet(self, here: Here) -> None:
        if (name := await self._name_of(here.versions)) is not None:
            rules = await self._hub.in_thread(lambda: self._hub.settings.rules_of(name))
            self._welcome(name, here, rules)

    async def _name_of(self, versions: Versions) -> NodeId | None:
        """Return which machine this is; None: it is told why it is none."""
        if difference := self._hub.settings.versions.difference(versions):
            self.end(f"this machine has {difference}; install the same on both", is_final=True)
            return None
        certificate = self._certificate()
        if certificate is None:
            self.end("this machine has shown no certificate of the pool's; join it with a token", is_final=True)
            return None
        name: NodeId = await self._hub.in_thread(lambda: self._hub.admission.check(certificate))
        return name

    def _let_go(self) -> None:
        """Take note that this is no stranger any more."""
        self._hub.strangers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def _certificate(self) -> bytes | None:
        transport = self._transport
        found = None if transport is None else transport.get_extra_info("ssl_object")
        return found.getpeercert(binary_form=True) if isinstance(found, ssl.SSLObject) else None

    def _welcome(self, name: NodeId, here: Here, rules: NodeRules) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        nodes, settings = self._hub.nodes, self._hub.settings
        if not settings.may_renew():  # a welcome prolongs the life of tasks as an answered `Renew` does
            self.end("this server is not sure to lead its pool just now; another one may; try again")
            return
        before = self._hub.connections.get(name)
        if before is not None:
            if before.is_of_another(here) and nodes.is_living(name):
                self.end(
                    f"a machine called {name} is connected already: two have the same certificate, or its agent "
                    f"was started twice; give every machine a certificate of its own with `pliant agent --join`"
                )
                return
            before.abort()
        self._let_go()
        self._name, self._incarnation, self._max_bytes = name, here.incarnation, MAX_LINE_BYTES
        self._hub.connections[name] = self
        self._node = node = nodes.greet(name)
        key = node.outbox.key

        def welcome(first: int) -> bytes:
            return encode(Welcome(channel=key, first=first, renew_s=RENEW_S, orphan_s=nodes.orphan_s, rules=rules))

        node.outbox.attach(self.write, welcome, received=here.received if here.channel == key else 0)
        self._session = nodes.introduce(node)
        _log.info("%s is there (%s)", name, here.incarnation)

    def is_of_another(self, here: Here) -> bool:
        """Tell whether another process of an agent says so than the one of this connection."""
        return here.incarnation != self._incarnation

    async def _renew_certificate(self, name: NodeId, request: str) -> None:
        try:
            self._send(await self._hub.in_thread(lambda: self._hub.admission.renew(name, request)))
        finally:
            self._is_signing = False


def _check_node(node: NodeView, name: NodeId) -> None:
    """Raise ValueError if what a machine says of itself cannot be."""
    if node.id != name:
        raise ValueError(f"it calls itself {node.id!r:.80}, and its certificate {name!r}")
    if node.slots != tuple(range(len(node.slots))) or not 0 < len(node.slots) <= _MAX_SLOTS:
        raise ValueError(f"its slots are not numbered from 0 to {_MAX_SLOTS - 1} at most")


def _check_task(task: LiveTask, name: NodeId, num_slots: int) -> None:
    """Raise ValueError if a machine says of a task what cannot be."""
    if task.node_id != name:
        raise ValueError(f"it speaks of a task of {task.node_id!r:.80}, and its certificate is for {name!r}")
    if not set(task.slots) <= set(range(num_slots)) or not 0 < task.slot_share <= WHOLE_SLOT:
        raise ValueError(f"its task {task.task_id!r:.80} holds what it has not: {task.slots!r:.80}")


def _log_failure(done: "asyncio.Future[Any]") -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _log.error("what a machine is could not be remembered: %s", error)
