"""Collectives of tensors on a device over gloo: through pinned memory of the host.

For tasks that share a GPU, which NCCL cannot connect. A thread starts the exchange of each tensor when its copy has
arrived in the host's memory, so that the backward pass need not wait for the copies. It is one thread, so that all
members start the same operations in the same order.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final

import torch

from pliant.train.errors import GenerationLost
from pliant.train.group.gloo import CollectiveBackend, Operation

_LOOK_S: Final = 0.05


class StagedBackend:
    """A `CollectiveBackend` of tensors on any device over one of CPU tensors, which it does not own.

    The tensors must be contiguous. Copies run on the present stream of the thread that starts or waits.
    """

    def __init__(self, host: CollectiveBackend, *, rank: int, number: int) -> None:
        self._host = host
        self._rank = rank
        self._queue: queue.SimpleQueue[_StagedOperation | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"pliant-stage-{number}", daemon=True)
        self._thread.start()

    def all_reduce(self, tensor: torch.Tensor) -> Operation:
        host = _host_like(tensor)
        return self._start(given=[(tensor, host)], begin=lambda: self._host.all_reduce(host), results=[(host, tensor)])

    def all_to_all(
        self, output: torch.Tensor, source: torch.Tensor, *, received: Sequence[int], sent: Sequence[int]
    ) -> Operation:
        into, out_of = _host_like(output), _host_like(source)
        return self._start(
            given=[(source, out_of)],
            begin=lambda: self._host.all_to_all(into, out_of, received=received, sent=sent),
            results=[(into, output)],
        )

    def broadcast(self, tensor: torch.Tensor, source: int) -> Operation:
        host = _host_like(tensor)
        mine = source == self._rank
        return self._start(
            given=[(tensor, host)] if mine else [],
            begin=lambda: self._host.broadcast(host, source),
            results=[] if mine else [(host, tensor)],
        )

    def _start(
        self,
        *,
        given: Sequence[tuple[torch.Tensor, torch.Tensor]],
        begin: Callable[[], Operation],
        results: Sequence[tuple[torch.Tensor, torch.Tensor]],
    ) -> Operation:
        for tensor, host in given:
            host.copy_(tensor, non_blocking=True)
        operation = _StagedOperation(begin, results, _record_copies(given))
        self._queue.put(operation)
        return operation

    def _work(self) -> None:
        while (operation := self._queue.get()) is not None:
            operation.start()

    def abort(self) -> None:
        """Do nothing: the owner of the CPU backend ends its operations."""

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()


def _host_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)


def _record_copies(given: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> torch.cuda.Event | None:
    """Record an event at the end of the copies from a GPU; copies from a CPU are synchronous."""
    devices = [tensor.device for tensor, _ in given if tensor.is_cuda]
    if not devices:
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(devices[0]))
    return event


class _StagedOperation:
    def __init__(
        self,
        begin: Callable[[], Operation],
        results: Sequence[tuple[torch.Tensor, torch.Tensor]],
        copied: torch.cuda.Event | None,
    ) -> None:
        self._begin = begin
        self._results = results
        self._copied = copied
        self._started = threading.Event()
        self._operation: Operation | None = None
        self._error = ""
        self._delivered = False

    def start(self) -> None:
        """Start the exchange once its tensors are in the host's memory."""
        try:
            if self._copied is not None:
                self._copied.synchronize()
            self._operation = self._begin()
        except (GenerationLost, RuntimeError) as error:
            self._error = str(error) or type(error).__name__
        self._started.set()

    def wait(self, is_lost: Callable[[], bool]) -> None:
        if self._delivered:
            return
        while not self._started.wait(_LOOK_S):
            if is_lost():
                raise GenerationLost("the coordinator gave this generation up")
        if self._operation is None:
            raise GenerationLost(self._error)
        self._operation.wait(is_lost)
        for host, tensor in self._results:
            tensor.copy_(host, non_blocking=True)
        self._delivered = True

    finish = wait
