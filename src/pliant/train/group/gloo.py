"""Collectives of CPU tensors: c10d's gloo, built directly, outside c10d's global state.

Facts of gloo that shape this file:
- it has no abort, and its destructor waits for its operations; `abort` shuts the connections of exactly this group
  down, which ends the operations in them with an error, here and at the peers;
- but an operation that had begun to write to a peer that went away, and waits for nothing else, never ends: it keeps
  two threads and its tensor until its time-out. Its group is closed late (`num_closing_groups` counts it until then);
- a dead peer is seen as a closed connection by its neighbours only, and the others see it when those close theirs;
- an operation that was given up may still write into its tensor until the connections are shut down.

Private names of c10d are used in this room only here and in `pliant.train.group.nccl`.
"""

import contextlib
import gc
import os
import socket
import stat
import struct
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

import torch
from torch._C import _distributed_c10d

from pliant.train.errors import GenerationLost
from pliant.train.group.rendezvous_client import RendezvousClient

_c10d: Any = _distributed_c10d
"""Its stubs lack half of the names used here."""

_OPERATION_TIMEOUT: Final = timedelta(hours=2)
"""The coordinator notices hangs long before. This frees what gloo would keep for ever; no step may take longer."""
_POLL: Final = timedelta(milliseconds=50)
_NUM_THREADS: Final = 2

_Connection = tuple[Any, Any]
"""Both ends of a TCP connection, as the socket module writes them."""


class Operation(Protocol):
    """A collective that was started."""

    def wait(self, is_lost: Callable[[], bool]) -> None:
        """Wait until its tensors can be used by what comes next, on the host or on the same stream.

        Raises:
            GenerationLost: it failed, or `is_lost()` became true.
        """

    def finish(self, is_lost: Callable[[], bool]) -> None:
        """Wait until it is over on its device too, and whether it succeeded is certain; raises as `wait` does."""


class CollectiveBackend(Protocol):
    """Runs the collectives of one group; all members start the same ones in the same order."""

    def all_reduce(self, tensor: torch.Tensor) -> Operation: ...

    def all_to_all(
        self, output: torch.Tensor, source: torch.Tensor, *, received: Sequence[int], sent: Sequence[int]
    ) -> Operation: ...

    def broadcast(self, tensor: torch.Tensor, source: int) -> Operation: ...

    def abort(self) -> None:
        """End every operation with an error, at once and from any thread; nothing can be started after it."""

    def close(self) -> None:
        """End all threads and connections; return when they are gone."""


class C10dBackend:
    """The collectives in the form that every backend of c10d takes; a subclass starts them."""

    def all_reduce(self, tensor: torch.Tensor) -> Operation:
        options = _c10d.AllreduceOptions()
        options.reduceOp = _c10d.ReduceOp.SUM
        return self._start(lambda backend: backend.allreduce([tensor], options))

    def all_to_all(
        self, output: torch.Tensor, source: torch.Tensor, *, received: Sequence[int], sent: Sequence[int]
    ) -> Operation:
        options = _c10d.AllToAllOptions()
        return self._start(lambda backend: backend.alltoall_base(output, source, list(received), list(sent), options))

    def broadcast(self, tensor: torch.Tensor, source: int) -> Operation:
        options = _c10d.BroadcastOptions()
        options.rootRank, options.rootTensor = source, 0
        return self._start(lambda backend: backend.broadcast([tensor], options))

    def _start(self, begin: Callable[[Any], Any]) -> Operation:
        raise NotImplementedError


class GlooBackend(C10dBackend):
    """The gloo group of one generation, connected when constructed.

    Args:
        host: this task's own address.
        timeout_s: for the connections, once all members have met at the rendezvous.

    Raises:
        GenerationLost: it did not connect.
    """

    def __init__(self, rendezvous: RendezvousClient, *, rank: int, size: int, host: str, timeout_s: float) -> None:
        store = RendezvousStore(rendezvous)
        try:
            options = _c10d.ProcessGroupGloo._Options()
            options._timeout = timedelta(seconds=timeout_s)
            options._devices = [_c10d.ProcessGroupGloo.create_device(hostname=host)]
            options._threads = _NUM_THREADS
            self._backend: Any = _c10d.ProcessGroupGloo(store, rank, size, options)
            self._backend._set_default_timeout(_OPERATION_TIMEOUT)
        except RuntimeError as error:
            raise GenerationLost(_advice(host, error)) from None
        self._store = store  # c10d keeps a pointer to it, not its Python half
        self._connections = _connections(store.sent, store.received)

    def _start(self, begin: Callable[[Any], Any]) -> Operation:
        backend = self._backend
        if backend is None:
            raise GenerationLost("the generation was dropped")
        try:
            return _GlooOperation(begin(backend))
        except RuntimeError as error:
            raise GenerationLost(first_line(error)) from None

    def abort(self) -> None:
        shut_down(self._connections)

    def close(self) -> None:
        forgotten = weakref.ref(self._backend)
        self._backend = None  # waits for its operations and threads, if this was the last reference
        if forgotten() is not None:
            gc.collect()


class _GlooOperation:
    """Drops what c10d returned as soon as the operation is over, since that keeps the group's connections open."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self._error = ""

    def wait(self, is_lost: Callable[[], bool]) -> None:
        while self._work is not None:
            completed = self._work.is_completed()
            try:
                self._work.wait(_POLL)
            except RuntimeError as error:
                if completed:  # not our poll that timed out, but the operation that failed
                    self._error = first_line(error)
                elif is_lost():
                    self._error = "the coordinator gave this generation up"
                else:
                    continue
            self._work = None
        if self._error:
            raise GenerationLost(self._error)

    finish = wait


class RendezvousStore(_distributed_c10d.Store):
    """A rendezvous in the form of the store that c10d wants. Keeps what was sent and received."""

    def __init__(self, rendezvous: RendezvousClient) -> None:
        super().__init__()
        self._rendezvous = rendezvous
        self.sent: dict[str, bytes] = {}
        self.received: dict[str, bytes] = {}

    def set(self, key: str, value: bytes) -> None:  # type: ignore[override]  # the stubs say str, c10d gives bytes
        self.sent[key] = bytes(value)
        self._rendezvous.set(key, bytes(value))

    def get(self, key: str) -> bytes:
        if key not in self.sent:
            self._receive([key])
        return self.sent.get(key) or self.received[key]

    def wait(self, keys: list[str], _timeout: timedelta | None = None) -> None:
        """Wait for values; the client knows for how long."""
        self._receive([key for key in keys if key not in self.sent])

    def check(self, keys: list[str]) -> bool:
        """Tell whether all these are known here; c10d's own threads ask, long after the client is closed."""
        return all(key in self.sent or key in self.received for key in keys)

    def _receive(self, keys: list[str]) -> None:
        unknown = [key for key in keys if key not in self.received]
        if unknown:
            self.received.update(zip(unknown, self._rendezvous.get(*unknown), strict=True))


def first_line(error: Exception) -> str:
    """Return the message of an error of c10d, without its stack."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _advice(host: str, error: RuntimeError) -> str:
    text = first_line(error)
    if "local" in text and "address" in text:
        return (
            f"this task cannot use its address {host}: {text}; the machine's agent sets PLIANT_HOST, and it must be an "
            f"address of this machine that the others reach"
        )
    return f"{text}; my address is {host} (PLIANT_HOST): all machines of a job must reach each other"


# -- which connections are a group's -----------------------------------------------------------------------------------


def _connections(sent: dict[str, bytes], received: dict[str, bytes]) -> frozenset[_Connection]:
    """Return the connections between this task and the other members.

    What gloo sends through the store holds the address that a member listens at, as the kernel writes it. A connection
    that ends at such an address of a peer, or begins at this task's, belongs to the group: they have no other use.
    """
    mine, theirs = b"|".join(sent.values()), b"|".join(received.values())
    found = set()
    for connection in _open_sockets():
        ends = _ends(connection)
        if ends and (_sockaddr(connection, ends[0]) in mine or _sockaddr(connection, ends[1]) in theirs):
            found.add(ends)
    return frozenset(found)


def shut_down(connections: frozenset[_Connection]) -> int:
    """Shut down those of this process's sockets that are these very connections; return how many were."""
    num = 0
    for connection in _open_sockets() if connections else ():
        if _ends(connection) in connections:
            with contextlib.suppress(OSError):  # the peer was faster
                connection.shutdown(socket.SHUT_RDWR)
                num += 1
    return num


def _open_sockets() -> Iterator[socket.socket]:
    """Yield a second handle of every socket of this process, one after the other.

    While it is open, the number of the socket cannot be used for another one; closing it does not close the socket.
    """
    for number in _descriptors():
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            handle = os.dup(number)
        except OSError:  # closed since it was listed
            continue
        try:
            found = socket.socket(fileno=handle)
        except OSError:  # of a kind that Python does not know
            os.close(handle)
            continue
        with found:
            yield found


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # no descriptor is left to read the list with: try all numbers
        return list(range(os.sysconf("SC_OPEN_MAX")))


def _ends(connection: socket.socket) -> _Connection | None:
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return None
    try:
        return connection.getsockname(), connection.getpeername()
    except OSError:  # it only listens, or is closed already
        return None


def _sockaddr(connection: socket.socket, end: Any) -> bytes:
    """Return the beginning of a `struct sockaddr`: family, port, address."""
    head = struct.pack("=H", connection.family) + struct.pack("!H", end[1])
    if connection.family == socket.AF_INET:
        return head + socket.inet_pton(socket.AF_INET, end[0])
    return head + struct.pack("!I", end[2]) + socket.inet_pton(socket.AF_INET6, end[0].partition("%")[0])
