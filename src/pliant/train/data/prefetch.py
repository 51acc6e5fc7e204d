"""Loads parts ahead of their use, in loader processes that live as long as the training.

Loader processes answer a stream of requests in order. Whenever a batch is taken out, the part that will be needed next
and was not requested yet goes in. So a change of members costs no process and no pause: as soon as it is known which
worker this task will be in the next generation, that worker's parts of the coming steps are requested too. What is not
needed in the end is dropped.

Example: 4 virtual workers, 2 tasks, one process that loads 2 parts ahead (`depth` is 2). This task computes the parts 0
and 1 of every step. During step 0 it learns that it will soon train alone and compute all four parts. A switch comes
after step 0 at the earliest, so the requests are, as STEP.PART: 0.0, 0.1, 1.0, 1.2, 1.1, 1.3, 2.0, 2.2, …

Invariants: batches come back in the order of the requests; `depth` requests are always out (empty ones where there is
nothing to ask for); a part is out or held at most once; at most `MAX_DEPTHS * depth` parts are out or held.

Knows nothing of data sets; `request` says which samples a part has.
"""

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from pliant.train.data.fetcher import BatchRequest, Fetcher
from pliant.train.data.loader_process import LoaderProcesses, LoadFailure, start_loader
from pliant.train.data.sharding import Part, ShardingPlan, Worker

MAX_DEPTHS: Final = 4

Key = tuple[int, int, int]
"""Step, first position, end: what a part's batch depends on."""


class _Requests:
    """The DataLoader's batch sampler: gives the request that was put in, or an empty one if there is none."""

    def __init__(self) -> None:
        self._next: tuple[Key | None, BatchRequest | None] = (None, None)
        self.out: deque[Key | None] = deque()
        """Requests that went out and whose batches did not come back, by part."""

    def __iter__(self) -> "_Requests":
        return self

    def __next__(self) -> BatchRequest | None:
        key, request = self._next
        self._next = (None, None)
        self.out.append(key)
        return request

    def put(self, key: Key, request: BatchRequest) -> None:
        self._next = (key, request)


def key_of(part: Part) -> Key:
    return part.step, part.positions.start, part.positions.stop


class Prefetcher:
    """Batches of parts, loaded ahead.

    Args:
        request: returns which samples a part has.

    The constructor starts the processes: before the first part is needed, and before they could inherit connections.
    """

    def __init__(
        self, fetcher: Fetcher, processes: LoaderProcesses, plan: ShardingPlan, request: Callable[[Part], BatchRequest]
    ) -> None:
        self._plan = plan
        self._request = request
        self._depth = processes.depth
        self._stop_at: int | None = None
        self._step = 0
        self._worker: Worker | None = None
        self._next_worker: Worker | None = None
        self._coming: Iterator[Part | None] = iter(())
        self._held: dict[Key, Any] = {}
        self._used: set[Key] = set()
        self._requests = _Requests()
        self._batches: Any = start_loader(fetcher, processes, self._requests)

    def stop_at(self, step: int) -> None:
        """Load nothing of this step or a later one."""
        self._stop_at = step

    def begin_step(self, step: int, worker: Worker, next_worker: Worker | None) -> None:
        """Load the parts of these workers from this step on."""
        goes_on = step == self._step + 1 and (worker, next_worker) == (self._worker, self._next_worker)
        self._step, self._worker, self._next_worker = step, worker, next_worker
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
            if wanted in self._requests.out:
                self._put_next()
            else:
                self._requests.put(wanted, self._request(part))
            self._receive(wanted)
        self._used.add(wanted)
        batch = self._held.pop(wanted)
        if isinstance(batch, LoadFailure):
            batch.throw()
        return batch

    def close(self) -> None:
        """End the processes."""
        batches, self._batches = self._batches, None
        if batches is not None:
            # until all are closed, torch's SIGCHLD handler raises for a killed process whenever any child ends
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
        key = self._requests.out.popleft()
        if key is not None and (key == wanted or self._needs(key)):
            self._held[key] = batch

    def _put_next(self) -> None:
        """Request the part that is needed next and was not requested yet."""
        if len(self._held) + len(self._requests.out) >= MAX_DEPTHS * self._depth:
            return
        for part in self._coming:
            if part is None:
                return
            key = key_of(part)
            if key not in self._used and key not in self._held and key not in self._requests.out:
                self._requests.put(key, self._request(part))
                return

    def _parts_to_come(self) -> Iterator[Part | None]:
        """Yield the parts in the order of need; None where it is too early to tell.

        Of the next worker's parts of a step only the first `depth` are loaded beside this one's: more would not be
        loaded ahead after the switch either.
        """
        assert self._worker is not None
        for step in itertools.count(self._step):
            while step > self._step + self._depth or (self._stop_at is not None and step >= self._stop_at):
                yield None
            mine, others = self._plan.parts(step, self._worker), list[Part]()
            if self._next_worker is not None and step > self._step:
                known = {key_of(part) for part in mine}
                others = [part for part in self._plan.parts(step, self._next_worker) if key_of(part) not in known]
            for pair in itertools.zip_longest(mine, others[: self._depth]):
                yield from (part for part in pair if part is not None)

    def _needs(self, key: Key) -> bool:
        step = key[0]
        if step < self._step or key in self._used or self._worker is None:
            return False
        if any(key == key_of(part) for part in self._plan.parts(step, self._worker)):
            return True
        if self._next_worker is None or step == self._step:
            return False
        return any(key == key_of(part) for part in self._plan.parts(step, self._next_worker))
