"""Where the agents of other machines connect: a thread with a loop of its own, and one TLS connection for each.

What anybody can send is bounded: so many connections that have not said who they are, so many bytes of their first
line, so many seconds for it. Whatever waits (the database) waits in threads of their own: the loop answers renewals in
time.
"""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pliant.cluster.joined.admission import HubSettings, NodeAdmission
from pliant.cluster.joined.connection import GREETING_S, HubState, NodeConnection
from pliant.cluster.joined.nodes import ClusterOfNodes
from pliant.cluster.joined.writes import LoopWrites
from pliant.cluster.mirror.keeper import FileKeeper
from pliant.core.job import NodeId

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.1
_NUM_WAITING_THREADS: Final = 4
_NUM_DISK_THREADS: Final = 8
_NUM_LISTING_THREADS: Final = 32
_END_S: Final = 5.0
_CLOSE_S: Final = 0.02


class NodeHub:
    """Listens for the agents of other machines, and connects each with the adapter of its node."""

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        nodes: ClusterOfNodes,
        admission: NodeAdmission,
        settings: HubSettings,
        keeper: FileKeeper | None = None,
    ) -> None:
        """Take a bound socket, the server's end of TLS (which asks for certificates), and who decides what."""
        self._loop = asyncio.new_event_loop()
        self._disk = ThreadPoolExecutor(_NUM_DISK_THREADS, thread_name_prefix="pliant-files")
        self._listing = ThreadPoolExecutor(_NUM_LISTING_THREADS, thread_name_prefix="pliant-listing")
        self._hub = HubState(
            nodes=nodes,
            admission=admission,
            settings=settings,
            loop=self._loop,
            writes=LoopWrites(self._loop),
            in_thread=self._in_thread,
            begin=self._begin,
            keeper=keeper,
            disks=(self._disk, self._listing),
        )
        self.removed: Callable[[str], None] = lambda _name: None
        """Called with the name of a machine that does not belong to the pool any more; must be quick."""
        self._sock = sock
        self._context = context
        self._waiting = ThreadPoolExecutor(_NUM_WAITING_THREADS, thread_name_prefix="pliant-nodes")
        self._under_way: set[asyncio.Task[None]] = set()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pliant-nodes", daemon=True)

    def start(self) -> None:
        """Begin to listen, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Hang up; the machines wait for the next server."""
        if self._thread.is_alive():
            self._listens.wait(_END_S)  # or the loop would end in the middle of its beginning
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_S)
        self._sock.close()
        for threads in (self._waiting, self._disk, self._listing):
            threads.shutdown(wait=False, cancel_futures=True)

    def hang_up(self, node_id: NodeId) -> None:
        """End the connection of a machine, from any thread: it does not belong to the pool any more."""
        self._loop.call_soon_threadsafe(self._hang_up, node_id)
        self.removed(node_id)

    def _hang_up(self, node_id: NodeId) -> None:
        if (connection := self._hub.connections.get(node_id)) is not None:
            connection.end("this machine was removed from the pool", is_final=True, is_removed=True)
        if self._hub.keeper is not None:
            self._hub.keeper.holders.forget(node_id)
        for transport in self._hub.carrying.pop(node_id, ()):
            transport.abort()

    def _in_thread(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        return self._loop.run_in_executor(self._waiting, work)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.create_server(
            lambda: NodeConnection(self._hub), sock=self._sock, ssl=self._context, ssl_handshake_timeout=GREETING_S
        )
        server = self._loop.run_until_complete(listening)
        self._listens.set()
        self._look()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for connection in [*self._hub.strangers, *self._hub.connections.values()]:
                connection.abort()
            for transport in [one for held in self._hub.carrying.values() for one in held]:
                transport.abort()
            self._loop.run_until_complete(_let_go(server, [*self._under_way]))
            self._loop.close()

    def _look(self) -> None:
        try:
            self._hub.nodes.look()
        except Exception:  # noqa: BLE001 - the top of the loop
            _log.exception("the machines could not be looked at; it is tried again")
        self._loop.call_later(_LOOK_S, self._look)


async def _let_go(server: asyncio.Server, under_way: Collection["asyncio.Task[None]"]) -> None:
    """Let what was aborted be closed, and what is under way end."""
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)
    await server.wait_closed()
    await asyncio.sleep(_CLOSE_S)  # connections close at the loop's next turns
