"""The only file that touches c10d's private names: process groups built directly, outside its global state.

Two groups can live at once, which is what makes a change of members possible without stopping. Knows nothing of
generations' meaning, jobs or models.

Facts of gloo that shape this file: it has no abort; a dead peer is seen as a closed connection by its neighbours only,
and the others see it when those close theirs, so everything of a lost group is dropped at once; dropping a group waits
for its operations, so it is done in a thread of its own; an abandoned operation may still write into its tensor.
"""

import gc
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import torch
from torch._C import _distributed_c10d

from pliant.train.errors import GenerationLost

_c10d: Any = _distributed_c10d
"""Its stubs lack half of the names used here."""

CONNECT_TIMEOUT_S: Final = 20.0
"""A group that is not connected by then has failed."""
_OPERATION_TIMEOUT_S: Final = 24 * 3600.0
"""Hangs are noticed by the coordinator, never by this."""
_POLL: Final = timedelta(milliseconds=50)


class Rendezvous:
    """A store in this process at which groups that this task is first member of meet; it listens when constructed."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._store = _c10d.TCPStore(
            host, 0, None, True, timedelta(seconds=CONNECT_TIMEOUT_S), wait_for_workers=False, use_libuv=True
        )
        self.port: int = self._store.port


@dataclass(slots=True)
class Group:
    """The process group of one generation. A group of one needs no connections and does nothing."""

    number: int
    rank: int
    size: int
    backend: Any
    works: list[Any] = field(default_factory=list)

    def all_reduce(self, tensors: Sequence[torch.Tensor], *, lost: Callable[[], bool]) -> None:
        """Sum every tensor over the members, in place.

        Raises:
            GenerationLost: a peer is gone or `lost()` became true; the tensors must not be used again.
        """
        if self.backend is None:
            if lost():  # others may go on without me
                raise GenerationLost("the coordinator gave this generation up")
            return
        options = _c10d.AllreduceOptions()
        options.reduceOp = _c10d.ReduceOp.SUM
        self.works = [self.backend.allreduce([tensor], options) for tensor in tensors]
        for work in self.works:
            _wait(work, lost)
        self.works = []

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Send a contiguous CPU tensor; returns when the peer took it."""
        assert self.backend is not None
        _block(self.backend.send([tensor], to, 0))

    def receive(self, tensor: torch.Tensor, source: int) -> None:
        """Fill a contiguous CPU tensor with what `source` sends."""
        assert self.backend is not None
        _block(self.backend.recv([tensor], source, 0))

    def drop(self) -> None:
        """Close all connections, in the background: peers that wait in this group notice at once."""
        if self.backend is None:
            return
        grave: list[object] = [self.backend, self.works]
        self.backend, self.works = None, []
        threading.Thread(target=_bury, args=(grave,), name=f"pliant-bury-{self.number}", daemon=True).start()


def connect(number: int, *, rank: int, size: int, host: str, address: tuple[str, int], prefix: str) -> Group:
    """Connect with all other members; `host` is my own address, `address` the rendezvous of the first member.

    Raises:
        GenerationLost: somebody did not come within `CONNECT_TIMEOUT_S`.
    """
    if size == 1:
        return Group(number=number, rank=0, size=1, backend=None)
    try:
        store = _c10d.TCPStore(
            address[0],
            address[1],
            None,
            False,
            timedelta(seconds=CONNECT_TIMEOUT_S),
            wait_for_workers=False,
            use_libuv=True,
        )
        options = _c10d.ProcessGroupGloo._Options()
        options._timeout = timedelta(seconds=CONNECT_TIMEOUT_S)
        options._devices = [_c10d.ProcessGroupGloo.create_device(hostname=host)]
        options._threads = 2
        backend = _c10d.ProcessGroupGloo(_c10d.PrefixStore(prefix, store), rank, size, options)
        backend._set_default_timeout(timedelta(seconds=_OPERATION_TIMEOUT_S))
    except RuntimeError as error:
        raise GenerationLost(f"generation {number} did not connect: {_first_line(error)}") from None
    return Group(number=number, rank=rank, size=size, backend=backend)


def _wait(work: Any, lost: Callable[[], bool]) -> None:
    while True:
        completed = work.is_completed()
        try:
            work.wait(_POLL)
        except RuntimeError as error:
            if completed:  # not our poll that timed out, but the operation that failed
                raise GenerationLost(_first_line(error)) from None
            if lost():
                raise GenerationLost("the coordinator gave this generation up") from None
        else:
            return


def _block(work: Any) -> None:
    try:
        work.wait()
    except RuntimeError as error:
        raise GenerationLost(_first_line(error)) from None


def _first_line(error: RuntimeError) -> str:
    return str(error).splitlines()[0][:300]


def _bury(grave: list[object]) -> None:
    grave.clear()
    gc.collect()
