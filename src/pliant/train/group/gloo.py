"""Collectives of CPU tensors: c10d's gloo, built directly, outside c10d's global state.

Facts of gloo that shape this file:
- it has no abort, and its destructor waits for its operations; `abort` shuts the connections of exactly this group
  down, which ends the operations in them with an error, here and at the peers;
- but an operation is told of a connection's end only if it has not begun to send in it, or to receive. One that waits
  for the rest of a message alone keeps a thread and its tensors until its time-out, as happens in every second loss of
  a host that says nothing. Its group is closed late (`num_closing_groups` counts it until then);
- a dead peer is seen as a closed connection by its neighbours only, and the others see it when those close theirs;
- an operation that was given up may still write into its tensor until the connections are shut down;
- it takes in whoever connects. So its port is closed to new connections once all members are connected, and the members
  compare their connections at the rendezvous: one that does not lead to a member is shut down before it is used.

Private names of c10d are used in this room only here and in `pliant.train.group.nccl`.
"""

import gc
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

import torch
from torch._C import _distributed_c10d

from pliant.train.errors import GenerationLost
from pliant.train.group.mesh import Mesh
from pliant.train.group.rendezvous_client import RendezvousClient

_c10d: Any = _distributed_c10d
"""Its stubs lack half of the names used here."""

OPERATION_TIMEOUT: Final = timedelta(hours=2)
"""The coordinator notices hangs long before. This frees what gloo would keep for ever; no step may take longer."""
_POLL: Final = timedelta(milliseconds=50)
_NUM_THREADS: Final = 2


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
            options._devices = [_c10d.ProcessGroupGloo.create_device(hostname=host, lazy_init=False)]
            options._threads = _NUM_THREADS
            self._backend: Any = _c10d.ProcessGroupGloo(store, rank, size, options)
            self._backend._set_default_timeout(OPERATION_TIMEOUT)
        except RuntimeError as error:
            raise GenerationLost(_advice(host, error)) from None
        self._store = store  # c10d keeps a pointer to it, not its Python half
        self.has_ended = False
        """It was closed, and all its operations are over: nothing writes to their tensors any more."""
        self._mesh = Mesh(sent=store.sent, received=store.received)
        self._mesh.close_ports()
        self._compare_ends(rendezvous, rank=rank, size=size)

    def _compare_ends(self, rendezvous: RendezvousClient, *, rank: int, size: int) -> None:
        """Shut down what leads to no member."""
        others = [f"mesh/{other}" for other in range(size) if other != rank]
        rendezvous.set(f"mesh/{rank}", self._mesh.ends())
        num_found = self._mesh.keep(rendezvous.get(*others))
        if num_found < size - 1:
            self.abort()
            raise GenerationLost(f"gloo connected with {num_found} of {size - 1} other members and somebody else")

    def _start(self, begin: Callable[[Any], Any]) -> Operation:
        backend = self._backend
        if backend is None:
            raise GenerationLost("the generation was dropped")
        try:
            return _GlooOperation(begin(backend))
        except RuntimeError as error:
            raise GenerationLost(first_line(error)) from None

    def abort(self) -> None:
        self._mesh.shut_down()

    def close(self) -> None:
        forgotten = weakref.ref(self._backend)
        self._backend = None  # waits for its operations and threads, if this was the last reference
        if forgotten() is not None:
            gc.collect()
        self.has_ended = forgotten() is None


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
