"""Loads parts ahead of their use in loader processes: one torch DataLoader for the whole training.

The DataLoader's batch sampler is a stream that this side fills: whenever a batch is taken out, the part that will be
needed next and was not asked for yet goes in. So a resize costs no process and no pause: from the moment that the next
owner is known, its parts of the coming steps are asked for too, and what is not needed in the end is thrown away.

Invariants: what was asked for comes back in the order of asking; `depth` requests are always out (empty ones where
there is nothing to ask for); a part is out or held at most once; at most `MAX_DEPTHS * depth` parts are out or held.

Knows nothing of data sets; who asks for which samples is told by `request`.
"""

import contextlib
import ctypes
import itertools
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils.data import DataLoader, get_worker_info

from pliant.train.data.fetcher import Fetcher, Request
from pliant.train.data.sharding import Owner, Part, Plan
from pliant.train.errors import TrainingError

MAX_DEPTHS: Final = 4
_LOCK_S: Final = 5.0
"""Loader processes hold their lock for microseconds, unless they were killed while they held it."""
_PR_SET_PDEATHSIG: Final = 1

Key = tuple[int, int, int]
"""Step, first position, end: what a part's batch depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
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
class Failure:
    """Takes the place of a batch that could not be made."""

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


def _failure(error: Exception) -> Failure:
    info = get_worker_info()
    trace, summary = traceback.format_exc(), "".join(traceback.format_exception_only(error)).strip()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 (a user's exception can fail to travel in any way; its text travels)
        return Failure(None, summary, trace, info.id if info else 0)
    return Failure(error, summary, trace, info.id if info else 0)


@dataclass(slots=True)
class _Remote:
    """The loader process's end: takes a request instead of a list of indices."""

    fetcher: Fetcher
    broken: Failure | None = None
    """Why nothing can be loaded here."""

    def __getitems__(self, request: Request | None) -> Any:
        if request is None or self.broken is not None:
            return self.broken
        try:
            return self.fetcher.fetch(request)
        except Exception as error:  # noqa: BLE001 (it is raised in the training process, when its part is wanted)
            return _failure(error)


@dataclass(frozen=True, slots=True)
class _Begin:
    """Runs first in a loader process."""

    remote: _Remote
    user_init: Callable[[int], None] | None
    parent: int | None

    def __call__(self, worker_id: int) -> None:
        if self.parent is not None and sys.platform == "linux":
            # Killed with the task at once: this process holds copies of its connections, and peers wait for their end.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self.parent:
                os._exit(0)
        # Ctrl-C is for the training process, which may want to finish its step and ends this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        object.__setattr__(get_worker_info(), "dataset", self.remote.fetcher.dataset)  # user_init expects it there
        if self.user_init is not None:
            try:
                self.user_init(worker_id)
            except Exception as error:  # noqa: BLE001 (it is raised in the training process)
                self.remote.broken = _failure(error)


def _as_it_is(batch: Any) -> Any:
    return batch


class _Stream:
    """The DataLoader's batch sampler: gives what was put in, and empty requests where there is nothing."""

    def __init__(self) -> None:
        self._next: tuple[Key | None, Request | None] = (None, None)
        self.out: deque[Key | None] = deque()
        """What was given and did not come back."""

    def __iter__(self) -> "_Stream":
        return self

    def __next__(self) -> Request | None:
        key, request = self._next
        self._next = (None, None)
        self.out.append(key)
        return request

    def put(self, key: Key, request: Request) -> None:
        self._next = (key, request)


def key_of(part: Part) -> Key:
    return part.step, part.positions.start, part.positions.stop


class _Done:
    """torch's event that tells loader processes to end, as this side sees it.

    A process that is killed while it looks at the event takes the event's lock with it, and torch would then wait for
    the lock for ever. All are killed here instead.
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


class Prefetch:
    """Batches of parts, loaded ahead.

    Args:
        request: tells the samples of a part.

    Starts the processes, so that they are there before the first part is needed and hold no connection to a peer.
    """

    def __init__(self, fetcher: Fetcher, processes: Processes, plan: Plan, request: Callable[[Part], Request]) -> None:
        self._plan = plan
        self._request = request
        self._depth = processes.depth
        self._stop_at: int | None = None
        self._step = 0
        self._owner: Owner | None = None
        self._next_owner: Owner | None = None
        self._coming: Iterator[Part | None] = iter(())
        self._held: dict[Key, Any] = {}
        self._used: set[Key] = set()
        self._stream = _Stream()
        self._batches: Any = _start(fetcher, processes, self._stream)

    def stop_at(self, step: int) -> None:
        """Load nothing of this step or a later one."""
        self._stop_at = step

    def aim(self, step: int, owner: Owner, next_owner: Owner | None) -> None:
        """Say whose parts are needed from this step on."""
        goes_on = step == self._step + 1 and (owner, next_owner) == (self._owner, self._next_owner)
        self._step, self._owner, self._next_owner = step, owner, next_owner
        self._used.clear()
        if not goes_on:
            self._coming = self._parts_to_come()
        if self._held:
            self._held = {key: batch for key, batch in self._held.items() if self._needs(key)}

    def load(self, part: Part) -> Any:
        """Return the batch of a part.

        Raises:
            Exception: what the data set raised in a loader process, with that traceback as its cause.
            RuntimeError: a loader process is gone, or the DataLoader's timeout is over.
        """
        wanted = key_of(part)
        while wanted not in self._held:
            if wanted in self._stream.out:
                self._put_next()
            else:
                self._stream.put(wanted, self._request(part))
            self._receive(wanted)
        self._used.add(wanted)
        batch = self._held.pop(wanted)
        if isinstance(batch, Failure):
            batch.throw()
        return batch

    def close(self) -> None:
        """End the processes."""
        batches, self._batches = self._batches, None
        if batches is not None:
            # torch's SIGCHLD handler tells of a killed process whenever a child ends, until all are closed
            with contextlib.suppress(RuntimeError):
                batches._shutdown_workers()

    def _receive(self, wanted: Key) -> None:
        try:
            batch = next(self._batches)
        except RuntimeError:
            self.close()
            raise
        except (OSError, EOFError) as error:  # a batch is taken over through a socket of the process that made it
            self.close()
            raise RuntimeError(
                f"a DataLoader worker was killed while its batch was taken over ({error}); if it was for memory, lower "
                f"num_workers or prefetch_factor"
            ) from error
        key = self._stream.out.popleft()
        if key is not None and (key == wanted or self._needs(key)):
            self._held[key] = batch

    def _put_next(self) -> None:
        """Ask for the part that is needed next and was not asked for yet."""
        if len(self._held) + len(self._stream.out) >= MAX_DEPTHS * self._depth:
            return
        for part in self._coming:
            if part is None:
                return
            key = key_of(part)
            if key not in self._used and key not in self._held and key not in self._stream.out:
                self._stream.put(key, self._request(part))
                return

    def _parts_to_come(self) -> Iterator[Part | None]:
        """Yield the parts in the order of need; None where it is too early to tell.

        The next owner takes over after the present step at the earliest. Of its parts of a step only the first `depth`
        are loaded beside mine: more would not be loaded ahead of need after the switch either.
        """
        assert self._owner is not None
        for step in itertools.count(self._step):
            while step > self._step + self._depth or (self._stop_at is not None and step >= self._stop_at):
                yield None
            mine, others = self._plan.parts(step, self._owner), list[Part]()
            if self._next_owner is not None and step > self._step:
                known = {key_of(part) for part in mine}
                others = [part for part in self._plan.parts(step, self._next_owner) if key_of(part) not in known]
            for pair in itertools.zip_longest(mine, others[: self._depth]):
                yield from (part for part in pair if part is not None)

    def _needs(self, key: Key) -> bool:
        step = key[0]
        if step < self._step or key in self._used or self._owner is None:
            return False
        if any(key == key_of(part) for part in self._plan.parts(step, self._owner)):
            return True
        if self._next_owner is None or step == self._step:
            return False
        return any(key == key_of(part) for part in self._plan.parts(step, self._next_owner))


def _start(fetcher: Fetcher, processes: Processes, stream: _Stream) -> Any:
    remote = _Remote(fetcher)
    in_main_thread = threading.current_thread() is threading.main_thread()
    with warnings.catch_warnings():
        # Python 3.12 warns of forks of a process with threads: a lock that another thread holds stays held in the
        # child. torch's loaders always fork like this. A data set that deadlocks because of it needs a DataLoader with
        # multiprocessing_context="spawn".
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        loader: DataLoader[Any] = DataLoader(
            remote,  # type: ignore[arg-type]
            batch_sampler=stream,  # type: ignore[arg-type]
            collate_fn=_as_it_is,
            num_workers=processes.num_workers,
            prefetch_factor=processes.prefetch_factor,
            pin_memory=processes.pin_memory and torch.accelerator.is_available(),
            timeout=processes.timeout,
            worker_init_fn=_Begin(remote, processes.worker_init_fn, os.getpid() if in_main_thread else None),
            multiprocessing_context=processes.context,
            generator=torch.Generator(),  # nothing is drawn from the script's generator
        )
        batches: Any = iter(loader)
        batches._workers_done_event = _Done(batches._workers_done_event, batches._workers)
        return batches
