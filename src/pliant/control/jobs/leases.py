"""Leases: who has shown a sign of life lately. Whoever has not is taken as hung.

A lease runs on *listened time*: the time that the server has spent reading the control links, told by whoever reads
them (`listen`, a few times a second). While nobody reads, as when the server was stopped, the machine slept or a long
computation held it up, listened time stands still, so that no task is blamed for what the server did not hear. If
nobody ever listens, as in the simulator, no lease ends.

A task has a lease from its first message on. It knows no store, scheduler or process; safe to call from any thread.
"""

import threading
from dataclasses import dataclass
from typing import Final

from pliant.core.job import TaskId
from pliant.core.link import FromTask, Hello, Ready

STARTING_FACTOR: Final = 15.0
"""A task that is not ready yet, or has said goodbye, has a lease this much longer: imports and exit handlers may hold
Python's interpreter lock."""
_MOST_PART: Final = 0.25
"""At most this part of a lease counts as listened between two calls of `listen`."""
_SLEPT_S: Final = 1.0
"""Standing still for less is no reason to move other deadlines."""


@dataclass(slots=True)
class _Lease:
    heard_at: float
    """In listened time."""
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listened:
    """What the time since the call of `listen` before has brought."""

    silent: tuple[TaskId, ...] = ()
    """Tasks whose lease has ended; each is told once."""
    slept_s: float = 0.0
    """The server stood still for this long, seconds; 0 if it did not to speak of."""


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
        self._caught_up_at: float | None = None

    def heard(self, task_id: TaskId, message: FromTask) -> None:
        """Renew the lease of a task that said something; one that is ready has the short lease from then on."""
        ready = isinstance(message, Ready) or (isinstance(message, Hello) and message.ready)
        with self._lock:
            lease = self._held.get(task_id)
            if lease is None:
                lease = self._held[task_id] = _Lease(self._listened_s, self.lease_s * STARTING_FACTOR)
            lease.heard_at = self._listened_s
            if ready:
                lease.length_s = self.lease_s

    def parted(self, task_id: TaskId) -> None:
        """Give a task that said goodbye the time to end."""
        with self._lock:
            if (lease := self._held.get(task_id)) is not None:
                lease.length_s = self.lease_s * STARTING_FACTOR

    def drop(self, task_id: TaskId) -> None:
        """Forget a task that has ended."""
        with self._lock:
            self._held.pop(task_id, None)

    def listen(self, now: float) -> Listened:
        """Let the time pass in which the links were read; return who was silent for too long."""
        with self._lock:
            passed_s = 0.0 if self._listened_at is None else max(0.0, now - self._listened_at)
            counted_s = min(passed_s, self.lease_s * _MOST_PART)
            self._listened_at = now
            self._listened_s += counted_s
            ended = [t for t, lease in self._held.items() if self._listened_s - lease.heard_at >= lease.length_s]
            for task_id in ended:
                del self._held[task_id]
        slept_s = passed_s - counted_s
        return Listened(silent=tuple(ended), slept_s=slept_s if slept_s >= _SLEPT_S else 0.0)

    def lives(self, task_id: TaskId) -> bool:
        """Tell whether a task has a lease: it was heard since one of its leases ended, if one did."""
        with self._lock:
            return task_id in self._held

    def caught_up(self, now: float) -> None:
        """Take note that everything `listen` returned was passed on."""
        self._caught_up_at = now

    def deaf(self, now: float) -> bool:
        """Tell whether the links were not read just before, so that what tasks have said may still be unread."""
        return self._caught_up_at is not None and now - self._caught_up_at > _SLEPT_S
