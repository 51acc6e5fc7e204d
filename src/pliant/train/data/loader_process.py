"""Loader processes: torch's DataLoader, made to take requests for batches and to die with the task.

Facts of torch that shape this file:
- an error in a loader process loses its type and its traceback on the way; so `LoadFailure` travels instead of a batch;
- its processes outlive a parent that is killed, and hold copies of its connections; so the kernel kills them with it;
- a process that is killed while it looks at the event that tells all to end takes the event's lock with it.

Private names of torch's DataLoader are used here and in no other file.
"""

import ctypes
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils.data import DataLoader, get_worker_info

from pliant.train.data.fetcher import BatchRequest, Fetcher
from pliant.train.errors import TrainingError

_LOCK_S: Final = 5.0
"""Loader processes hold their lock for microseconds, unless they were killed while they held it."""
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderProcesses:
    """How loader processes are started; the words are torch's."""

    num_workers: int
    prefetch_factor: int = 2
    """Parts that every process loads ahead."""
    pin_memory: bool = False
    worker_init_fn: Callable[[int], None] | None = None
    timeout: float = 0.0
    """Longest wait for a part, seconds; 0 waits for ever."""
    context: Any = "fork"

    @property
    def depth(self) -> int:
        return self.num_workers * self.prefetch_factor


class LoaderError(Exception):
    """The traceback of an error in a loader process; it stands as the cause of the error itself."""


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """Travels instead of a batch that could not be made."""

    error: Exception | None
    """None if it cannot travel between processes."""
    summary: str
    trace: str
    worker: int

    def throw(self) -> None:
        """Raise the error as it was raised in the loader process."""
        cause = LoaderError(f"in loader process {self.worker}:\n\n{self.trace}")
        if self.error is None:
            raise TrainingError(f"a sample could not be loaded: {self.summary}") from cause
        raise self.error from cause


def _describe(error: Exception) -> LoadFailure:
    info = get_worker_info()
    trace, summary = traceback.format_exc(), "".join(traceback.format_exception_only(error)).strip()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 (a user's exception can fail to travel in any way; its text travels)
        return LoadFailure(None, summary, trace, info.id if info else 0)
    return LoadFailure(error, summary, trace, info.id if info else 0)


@dataclass(slots=True)
class _Remote:
    """The data set as a loader process sees it: takes a request instead of a list of indices."""

    fetcher: Fetcher
    broken: LoadFailure | None = None
    """Why nothing can be loaded here."""

    def __getitems__(self, request: BatchRequest | None) -> Any:
        if request is None or self.broken is not None:
            return self.broken
        try:
            return self.fetcher.fetch(request)
        except Exception as error:  # noqa: BLE001 (it is raised in the training process, when its part is wanted)
            return _describe(error)


@dataclass(frozen=True, slots=True)
class _Init:
    """Runs first in a loader process."""

    remote: _Remote
    user_init: Callable[[int], None] | None
    parent: int | None

    def __call__(self, worker_id: int) -> None:
        if self.parent is not None and sys.platform == "linux":
            # The kernel kills this process with the task: it holds copies of connections whose end the peers wait for.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self.parent:
                os._exit(0)
        # Ctrl-C is for the training process: it may want to finish its step, and it ends this process itself.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        object.__setattr__(get_worker_info(), "dataset", self.remote.fetcher.dataset)  # user_init expects it there
        if self.user_init is not None:
            try:
                self.user_init(worker_id)
            except Exception as error:  # noqa: BLE001 (it is raised in the training process)
                self.remote.broken = _describe(error)


def _as_it_is(batch: Any) -> Any:
    return batch


class _EndEvent:
    """torch's event that tells loader processes to end, with a deadline.

    A process that is killed while it looks at the event takes the event's lock with it, and torch would then wait for
    the lock for ever. All processes are killed instead.
    """

    def __init__(self, event: Any, processes: Sequence[Any]) -> None:
        self._event = event
        self._processes = processes
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        lock = self._event._cond
        if lock.acquire(timeout=_LOCK_S):
            lock.release()
            self._event.set()
            return
        for process in self._processes:
            process.kill()


def start_loader(fetcher: Fetcher, processes: LoaderProcesses, requests: Iterator[BatchRequest | None]) -> Any:
    """Start the processes; return the iterator over the batches that `requests` ask for, in the same order."""
    remote = _Remote(fetcher)
    in_main_thread = threading.current_thread() is threading.main_thread()
    with warnings.catch_warnings():
        # Python 3.12 warns of forks of a process with threads: a lock that another thread holds stays held in the
        # child. torch's loaders always fork like this. A data set that deadlocks because of it needs a DataLoader with
        # multiprocessing_context="spawn".
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        loader: DataLoader[Any] = DataLoader(
            remote,  # type: ignore[arg-type]
            batch_sampler=requests,  # type: ignore[arg-type]
            collate_fn=_as_it_is,
            num_workers=processes.num_workers,
            prefetch_factor=processes.prefetch_factor,
            pin_memory=processes.pin_memory and torch.accelerator.is_available(),
            timeout=processes.timeout,
            worker_init_fn=_Init(remote, processes.worker_init_fn, os.getpid() if in_main_thread else None),
            multiprocessing_context=processes.context,
            generator=torch.Generator(),  # nothing is drawn from the script's generator
        )
        batches: Any = iter(loader)
        batches._workers_done_event = _EndEvent(batches._workers_done_event, batches._workers)
        return batches
