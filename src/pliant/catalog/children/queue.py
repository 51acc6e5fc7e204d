"""Works on what is submitted under keys, so much at a time. It knows no data set and no environment.

A queue has a few threads. What is submitted waits for one of them, and then runs its programs one after the other. With
two threads and three imports of ten minutes each, the third begins after ten minutes. `stop` takes it out of the queue
at once; `stop` of the first kills its process and waits until its work has returned, so that nothing of it is left.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pliant.catalog.children.child import Child, ChildStopped

log = logging.getLogger(__name__)


class ChildQueue:
    """Works on what is submitted under keys, so much at a time. Safe to call from any thread."""

    def __init__(self, max_running: int, name: str) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._children: dict[str, Child] = {}
        """What waits or runs, in the order in which it came."""
        self._pool = ThreadPoolExecutor(max_running, thread_name_prefix=name)

    def submit(self, key: str, work: Callable[[Child], object]) -> None:
        """Call `work` in a thread of the queue as soon as its turn comes; never, if the queue is closed before."""
        with self._lock:
            if not self._is_closed:
                child = self._children[key] = Child()
                child.future = self._pool.submit(self._work, key, child, work)

    def is_active(self, key: str) -> bool:
        """Tell whether something waits or runs under a key."""
        with self._lock:
            return key in self._children

    def num_ahead(self, key: str) -> int:
        """Return how many others run while this one waits; 0 if it does not wait."""
        with self._lock:
            child = self._children.get(key)
            if child is None or child.is_running:
                return 0
            return sum(each.is_running for each in self._children.values())

    def release(self, key: str) -> None:
        """Forget what runs under a key though it has not returned yet, so that the key is free for the next one."""
        with self._lock:
            self._children.pop(key, None)

    def stop(self, key: str, reason: str, wait_s: float) -> bool:
        """Stop what is done under a key and wait until its work has returned; tell whether it had not begun.

        Raises:
            TimeoutError: its work has not returned in time.
        """
        with self._lock:
            child = self._children.get(key)
            if child is None or child.future is None:
                return False
            if child.future.cancel():
                del self._children[key]
                return True
        child.stop(reason)
        child.future.result(wait_s)
        return False

    def close(self) -> None:
        """Stop everything and wait for the threads; what has not begun never does."""
        with self._lock:
            self._is_closed = True
            for child in self._children.values():
                child.stop("")
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(self, key: str, child: Child, work: Callable[[Child], object]) -> None:
        with self._lock:
            child.is_running = True
        try:
            work(child)
        except ChildStopped as stopped:
            log.info("%s is not finished: %s", key, stopped)
        except Exception:
            log.exception("%s could not be finished", key)
        finally:
            with self._lock:
                if self._children.get(key) is child:  # else the key was released, and is another's now
                    del self._children[key]
