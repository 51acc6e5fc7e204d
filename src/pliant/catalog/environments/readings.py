"""Finds out in the background what there is to build for jobs that bring their requirements.

Files of a code folder are a person's: they may be long, and lie on a disk that does not answer. Whoever asks serves
everybody and cannot wait for them.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from pliant.catalog.environments.builds import BuildRequest
from pliant.core.job import JobId

_NUM_THREADS: Final = 2
_MAX_WAITING: Final = 10_000


class RequirementsReadings:
    """What is read for jobs. `ask` is called by one thread at a time; no call waits."""

    def __init__(self, notify: Callable[[], None]) -> None:
        """Prepare to read; `notify` is called from another thread whenever something was read."""
        self._notify = notify
        self._futures: dict[JobId, Future[BuildRequest]] = {}
        self._pool = ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="pliant-requirements")

    def ask(self, job_id: JobId, read: Callable[[], BuildRequest]) -> BuildRequest | None:
        """Return what was read for a job; None until it was, and then read it.

        Raises:
            Exception: what `read` raised.
        """
        future = self._futures.get(job_id)
        if future is None:
            while len(self._futures) >= _MAX_WAITING:
                del self._futures[next(iter(self._futures))]  # its job was stopped, or it is read again
            future = self._futures[job_id] = self._pool.submit(read)
            future.add_done_callback(lambda _: self._notify())
            return None
        if not future.done():
            return None
        del self._futures[job_id]
        return future.result()

    def close(self) -> None:
        """Begin nothing any more, and wait for nothing."""
        self._pool.shutdown(wait=False, cancel_futures=True)
