"""Leases: who has shown a sign of life lately. Whoever has not is taken as hung.

Theory of operation. A lease runs on *listened time*: the time in which the server has read the control links. Whoever
reads them calls `listen` a few times a second. While nobody reads, because the server was stopped, the machine slept or
a long computation held it up, listened time stands still, so that no task is blamed for what the server did not hear.
Between two calls at most a quarter of a lease counts. With leases of 2 s:

    time      call                 listened time
    100.0 s   listen               0.0 s
    100.3 s   listen               0.3 s      0.3 s have passed, all of it counts
    100.4 s   renew(job-1.1)       0.3 s      its lease ends at 2.3 s of listened time
              the machine sleeps for an hour
    3700.4 s  listen               0.8 s      3600.1 s have passed, 0.5 s count; the server stood still for 3599.6 s
    3701.9 s  listen (15 later)    2.3 s      job-1.1 has been silent for 2 s: its lease ends now

Had job-1.1 been read in the second after the sleep, its lease would have been renewed. A task has a lease from its
first message on. If nobody ever listens, as in the simulator, no lease ends. It knows no store, scheduler or process;
safe to call from any thread.
"""

import threading
from dataclasses import dataclass
from typing import Final

from pliant.core.job import TaskId
from pliant.core.link import FromTask, Hello, Ready

STARTING_FACTOR: Final = 15.0
"""A task that is not ready yet, or has closed its link itself, has a lease this much longer: imports and exit handlers
may hold Python's interpreter lock."""
AGAIN_S: Final = 0.25
"""A task of which nobody knows whether it is to blame is looked at again so much later, or when that is known."""
_MOST_PART: Final = 0.25
"""At most this part of a lease counts as listened between two calls of `listen`."""
_STALLED_S: Final = 1.0
"""Standing still for less is no reason to move other deadlines."""


@dataclass(slots=True)
class _Lease:
    renewed_at: float
    """In listened time."""
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listened:
    """What the time since the call of `listen` before has brought."""

    ended: tuple[TaskId, ...] = ()
    """Tasks whose lease has ended; each is named once."""
    stalled_s: float = 0.0
    """The server stood still for this long, seconds; 0 if for less than a second."""


class Leases:
    """The leases of all connected tasks.

    Args:
        lease_s: seconds that a ready task may be silent.
    """

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self._held: dict[TaskId, _Lease] = {}
        self._lock = threading.Lock()
        self._listened_s = 0.0
        self._listened_at: float | None = None
        self._delivered_at: float | None = None

    def renew(self, task_id: TaskId, message: FromTask) -> None:
        """Renew the lease of a task that said something; one that is ready has the short lease from then on."""
        ready = isinstance(message, Ready) or (isinstance(message, Hello) and message.ready)
        with self._lock:
            lease = self._held.get(task_id)
            if lease is None:
                lease = self._held[task_id] = _Lease(self._listened_s, self.lease_s * STARTING_FACTOR)
            lease.renewed_at = self._listened_s
            if ready:
                lease.length_s = self.lease_s

    def wait_again(self, task_id: TaskId, doubt_s: float) -> None:
        """Let the lease of a task end once more in a moment: nobody knows for so long whether it is to blame."""
        with self._lock:
            renewed_at = self._listened_s - self.lease_s + min(doubt_s, AGAIN_S)
            self._held.setdefault(task_id, _Lease(renewed_at, self.lease_s))

    def extend(self, task_id: TaskId) -> None:
        """Give a task that has closed its link itself the time to end."""
        with self._lock:
            if (lease := self._held.get(task_id)) is not None:
                lease.length_s = self.lease_s * STARTING_FACTOR

    def drop(self, task_id: TaskId) -> None:
        """Forget a task that has ended."""
        with self._lock:
            self._held.pop(task_id, None)

    def listen(self, now: float) -> Listened:
        """Count the time in which the links were read; return who was silent for too long."""
        with self._lock:
            passed_s = 0.0 if self._listened_at is None else max(0.0, now - self._listened_at)
            counted_s = min(passed_s, self.lease_s * _MOST_PART)
            self._listened_at = now
            self._listened_s += counted_s
            ended = [t for t, lease in self._held.items() if self._listened_s - lease.renewed_at >= lease.length_s]
            for task_id in ended:
                del self._held[task_id]
        stalled_s = passed_s - counted_s
        return Listened(ended=tuple(ended), stalled_s=stalled_s if stalled_s >= _STALLED_S else 0.0)

    def has_lease(self, task_id: TaskId) -> bool:
        """Tell whether a task has a lease; one whose lease has ended has a new one if it said something since."""
        with self._lock:
            return task_id in self._held

    def note_delivered(self, now: float) -> None:
        """Take note that what `listen` returned is in the inbox."""
        self._delivered_at = now

    def is_behind(self, now: float) -> bool:
        """Tell whether the links were not read just before, so that what tasks have said may still be unread."""
        return self._delivered_at is not None and now - self._delivered_at > _STALLED_S
