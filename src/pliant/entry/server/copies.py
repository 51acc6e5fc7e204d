"""Copies in an object store when a server starts and ends: whether it can be used, and what comes back from it."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.control.loop.tick import Control
from pliant.control.requests.origin import CHECKPOINT, jobs_started_from
from pliant.control.settings import JobFolders
from pliant.control.upkeep.cleanup import Upkeep
from pliant.core.errors import Conflict, PliantError, Unavailable
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import ENDED_STATES, UNENDED_STATES, JobState
from pliant.core.ports import Clock, Store, Writes
from pliant.entry.server.rooms.copies import CopiesRoom
from pliant.files.folder import write_whole
from pliant.files.space import free_bytes, size_of_disk
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove
from pliant.files.untrusted.walking import list_folder
from pliant.objects.messages import BeginCopying, StoreReached

log = logging.getLogger("pliant.copies")

LOG: Final = "copier.log"
USED: Final = "results-to"
"""A file of the state folder: where this server has copied to."""
_PAGE: Final = 1000
_LEFT_FREE: Final = 0.2
"""So much of a disk is left free by what comes back of jobs that are over."""


def has_copies(url: str | None, home: Path, pool: str) -> bool:
    """Tell whether a store has the copies of a pool whose folder is lost.

    Raises:
        Conflict: it has those of another pool.
        Unavailable: it cannot be asked.
    """
    if url is None:
        return False
    room = _room(url, home, pool)
    try:
        return _open(room, was_used=False)
    finally:
        room.close()


def open_copies(url: str | None, home: Path, pool: str) -> CopiesRoom | None:
    """Return the room of copies, open; None if nothing is copied.

    That the store is away is no reason not to start if this server has copied there before.

    Raises:
        Conflict: the store has the copies of another pool.
        Unavailable: it cannot be used.
    """
    if url is None:
        return None
    room = _room(url, home, pool)
    try:
        _open(room, was_used=_was_used(home, url))
    except PliantError:
        room.close()
        raise
    write_whole(home / USED, url.encode())
    return room


def _room(url: str, home: Path, pool: str) -> CopiesRoom:
    begin = BeginCopying(url=url, jobs=str(home / "jobs"), pool=pool)
    return CopiesRoom(begin, home / LOG)


def _open(room: CopiesRoom, *, was_used: bool) -> bool:
    answer = room.open()
    if isinstance(answer, StoreReached):
        return answer.is_known
    if answer.is_other:
        raise Conflict(f"--results-to: {answer.reason}")
    if not was_used:
        raise Unavailable(f"--results-to: {answer.reason}")
    return False


def _was_used(home: Path, url: str) -> bool:
    try:
        return (home / USED).read_text() == url
    except FileNotFoundError:
        return False


class Returns:
    """What comes back of a pool's jobs from the copies."""

    def __init__(self, room: CopiesRoom, store: Store, home: Path) -> None:
        self._room = room
        self._store = store
        self._jobs = home / "jobs"

    def bring_needed(self) -> None:
        """Bring back what jobs that are not over need, before they go on: their folders, and newest checkpoints.

        Raises:
            Unavailable: the store is away, and the folder of such a job is not here.
        """
        for job in self._all(UNENDED_STATES):
            for job_id in (job.id, *sorted(jobs_started_from(job.spec, self._jobs))):
                has_trained = job_id != job.id or job.progress is not None
                if not self._has_folder(job_id) or (has_trained and not self._has_checkpoint(job_id)):
                    self._bring(JobId(job_id), is_needed=job_id == job.id)

    def bring_others(self, stopped: threading.Event) -> None:
        """Bring back the folders of jobs that are over, the newest first, as long as a fifth of the disk stays free."""
        for job in self._all(ENDED_STATES):
            if stopped.is_set():
                return
            if self._has_folder(job.id):
                continue
            if free_bytes(self._jobs) < _LEFT_FREE * size_of_disk(self._jobs):
                log.warning("the disk is too full to bring back what %s and older jobs wrote", job.id)
                return
            self._bring(job.id, is_needed=False)

    def _bring(self, job_id: JobId, *, is_needed: bool) -> None:
        try:
            what = self._room.bring_back(job_id)
        except Unavailable as error:
            if is_needed and not self._has_folder(job_id) and self._room.why_away:
                raise Unavailable(f"the files of {job_id} are not here, and cannot be brought back: {error}") from error
            log.warning("nothing is brought back of %s: %s", job_id, error)
        else:
            if self._store.job(job_id) is None:  # it was deleted meanwhile
                remove(UntrustedPath(self._jobs, job_id))
            elif what:
                log.info("brought back of %s: %s", job_id, what)

    def _has_folder(self, job_id: str) -> bool:
        return (self._jobs / job_id).is_dir()

    def _has_checkpoint(self, job_id: str) -> bool:
        checkpoints = JobFolders(root=self._jobs / job_id).checkpoints
        return any(CHECKPOINT.fullmatch(name) for name, _ in list_folder(checkpoints))

    def _all(self, states: tuple[JobState, ...]) -> Iterator[Job]:
        before: JobId | None = None
        while page := self._store.jobs(JobFilter(states=states), before=before, limit=_PAGE):
            yield from page
            before = page[-1].id


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """All that a server does about copies."""

    room: CopiesRoom
    store: Store
    clock: Clock
    home: Path
    notify: Callable[[], None]
    """Called after events were stored."""

    def start(self, control: Control, upkeep: Upkeep) -> None:
        """Bring back what jobs need, before control starts.

        Raises:
            Unavailable: that is not possible.
        """
        Returns(self.room, self.store, self.home).bring_needed()
        control.deletions.forget_copies = upkeep.forget_copies = self.room.forget

    def go_on(self, control: Control) -> None:
        """Copy from now on, and bring back the rest meanwhile."""
        self.room.start(control.jobs, self._warn)
        others = Returns(self.room, self.store, self.home).bring_others
        threading.Thread(target=others, args=(self.room.stopped,), name="pliant-returns", daemon=True).start()

    def _warn(self, message: str) -> None:
        log.warning("%s", message)
        try:
            self.store.write(Writes(events=(Event(at=self.clock.now(), kind=EventKind.WARNING, message=message),)))
        except PliantError as error:
            log.warning("that could not be stored: %s", error)
        self.notify()
