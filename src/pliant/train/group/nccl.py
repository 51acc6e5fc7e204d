"""Collectives of CUDA tensors between tasks that have a GPU each: c10d's NCCL, built directly.

Facts of NCCL that shape this file:
- one GPU can be in a group only once, so tasks that share one use gloo (`pliant.train.group.staged`);
- its operations run on a stream of their own; waiting for one orders the present stream after it and returns at once.
  A kernel whose peer is gone runs for ever, and reading its results on the host would wait for ever inside CUDA. So a
  loop asks whether operations are over, and values are read only after that;
- an abort makes such kernels end as if they had succeeded: after an abort, no result counts;
- c10d's own watchdog would kill the process when an operation fails, so it is told not to.
"""

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import torch
from torch._C import _distributed_c10d

from pliant.train.errors import GenerationLost
from pliant.train.group.gloo import C10dBackend, Operation, RendezvousStore, first_line
from pliant.train.group.rendezvous_client import RendezvousClient

_c10d: Any = _distributed_c10d

_OPERATION_TIMEOUT: Final = timedelta(hours=24)
_SETTINGS: Final = {
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
    "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_PROPAGATE_ERROR": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_BLOCKING_WAIT": "0",
    "NCCL_NVLS_ENABLE": "0",
}
"""No watchdog that kills, no monitor that talks to a store that is gone, no multicast memory that cannot be aborted."""
_SPIN_S: Final = 0.0002
_PATIENT_S: Final = 0.01


def is_usable() -> bool:
    """Tell whether this torch has NCCL, and nobody set PLIANT_NCCL=0."""
    return hasattr(_c10d, "ProcessGroupNCCL") and os.environ.get("PLIANT_NCCL") != "0"


class NcclBackend(C10dBackend):
    """The NCCL group of one generation on one GPU, ready when constructed; a `Carrier`.

    Raises:
        GenerationLost: it did not become ready, or was given up.
    """

    def __init__(
        self,
        rendezvous: RendezvousClient,
        *,
        rank: int,
        size: int,
        device: torch.device,
        is_cancelled: Callable[[], bool],
    ) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        self._device = device
        self._aborted = threading.Event()
        self._store = RendezvousStore(rendezvous)  # c10d keeps a pointer to it, not its Python half
        try:
            options = _c10d.ProcessGroupNCCL.Options()
            options.config.blocking = 0
            options._timeout = _OPERATION_TIMEOUT
            self._backend: Any = _c10d.ProcessGroupNCCL(self._store, rank, size, options)
            with torch.cuda.device(device):
                self._backend.eager_connect_single_device(device)
            while not self._backend._is_initialized():
                if is_cancelled():
                    raise GenerationLost("the coordinator gave this generation up")
                time.sleep(_PATIENT_S)
        except RuntimeError as error:
            self._end()
            raise GenerationLost(f"NCCL: {first_line(error)}") from None
        except GenerationLost:
            self._end()
            raise

    def _start(self, begin: Callable[[Any], Any]) -> Operation:
        backend = self._backend
        if backend is None or self._aborted.is_set():
            raise GenerationLost("the generation was dropped")
        try:
            return _NcclOperation(begin(backend), self._device, self._aborted)
        except RuntimeError as error:
            raise GenerationLost(f"NCCL: {first_line(error)}") from None

    def abort(self) -> None:
        """End every operation; the kernels follow in a moment."""
        if not self._aborted.is_set():
            self._aborted.set()  # first of all: a thread that waits must not take the end of its operation for success
            threading.Thread(target=self._end, name="pliant-abort-nccl", daemon=True).start()

    def close(self) -> None:
        if not self._aborted.is_set():
            torch.cuda.synchronize(self._device)  # a thread may still wait for what was started
            self._aborted.set()
        self._end()
        self._backend = None

    def _end(self) -> None:
        backend = getattr(self, "_backend", None)
        if backend is not None:
            backend.abort()


class _NcclOperation:
    def __init__(self, work: Any, device: torch.device, aborted: threading.Event) -> None:
        self._work = work
        self._device = device
        self._aborted = aborted

    def wait(self, is_lost: Callable[[], bool]) -> None:
        if self._aborted.is_set() or is_lost():
            raise GenerationLost("the coordinator gave this generation up")
        try:
            with torch.cuda.device(self._device):
                self._work.wait()
        except RuntimeError as error:
            raise GenerationLost(f"NCCL: {first_line(error)}") from None

    def finish(self, is_lost: Callable[[], bool]) -> None:
        try:
            while not self._work.is_completed():
                if self._aborted.is_set() or is_lost():
                    raise GenerationLost("the coordinator gave this generation up")
                time.sleep(_SPIN_S)
            failure = self._work.exception()
        except RuntimeError as error:
            raise GenerationLost(f"NCCL: {first_line(error)}") from None
        if failure is not None:
            raise GenerationLost(f"NCCL: {failure}")
        self.wait(is_lost)
