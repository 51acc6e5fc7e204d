"""Copies all jobs of a server, one after the other, and again: those that run, and what is left of those that ended.

While something long is sent, new checkpoints of the others go between its pieces.

A job that has ended is looked at until nothing new has come for a while. Then that is noted in its folder, and nobody
looks at it any more. If the store is away everything waits, longer each time, and what is due then is what the disk has
by then; no job ever waits for a copy.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.files.folder import write_whole
from pliant.objects.bringing import MARK
from pliant.objects.job_copies import FindFiles, JobCopies, folder_of
from pliant.objects.manifest import MANIFEST
from pliant.objects.store import ObjectStore, StoreAway

_log = logging.getLogger(__name__)

LOOK_S: Final = 2.0
"""How often a job that runs is looked at."""
QUIET_S: Final = 10.0
"""So long after a job has ended there may come something, from another machine."""
_FIRST_PAUSE_S: Final = 1.0
_LAST_PAUSE_S: Final = 60.0
_JOB: Final = re.compile(r"job-[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyState:
    """How the copying stands."""

    why_away: str = ""
    """Why the store does not take anything; empty: it does."""
    num_waiting: int = 0
    """Jobs of which something is still to be copied, as far as that is known."""


class Copier:
    """Copies the jobs below one folder."""

    def __init__(self, store: ObjectStore, jobs: Path, find: FindFiles, clock: Callable[[], float]) -> None:
        self.active: frozenset[str] = frozenset()
        """Jobs that have not ended, or whose last process is not gone."""
        self.state = CopyState()
        self._store = store
        self._jobs = jobs
        self._find = find
        self._clock = clock
        self._copies: dict[str, JobCopies] = {}
        self._ended: dict[str, float] = {}
        """Jobs that are over and not copied to their ends, and when something last came of them."""
        self._final: set[str] = set()
        self._current = ""
        self._urgent_at = 0.0
        self._aside: dict[str, float] = {}
        """Jobs that the store has not taken, though it takes others, and when they are tried again."""
        self._pause_s = _FIRST_PAUSE_S
        self._again_at = 0.0

    def turn(self, is_asked: Callable[[], bool] = lambda: False) -> None:
        """Copy what is due of every job, unless the store is to be left alone; stop between jobs if somebody asks."""
        if self._clock() < self._again_at:
            return
        self._aside = {job_id: until for job_id, until in self._aside.items() if until > self._clock()}
        waiting = [job_id for job_id in self._due_jobs() if job_id not in self._aside]
        for number, job_id in enumerate(waiting):
            try:
                self._copy(job_id)
            except StoreAway as error:
                if self._takes_others():
                    _log.warning("%s is not copied now: %s", job_id, error)
                    self._aside[job_id] = self._clock() + _LAST_PAUSE_S
                    continue
                self._again_at = self._clock() + self._pause_s
                self._pause_s = min(2 * self._pause_s, _LAST_PAUSE_S)
                self.state = CopyState(why_away=str(error), num_waiting=len(waiting) - number)
                return
            except OSError as error:
                _log.warning("%s is not copied now: %s", job_id, error.strerror or error)
            if is_asked():
                break
        self._pause_s = _FIRST_PAUSE_S
        self.state = CopyState(num_waiting=len(self._ended))

    def _takes_others(self) -> bool:
        """Tell whether the store takes something: then it is one job that it does not take."""
        try:
            self._store.guard()
            self._store.probe()
        except StoreAway:
            return False
        return True

    def forget(self, job_id: str) -> None:
        """Remove the copies of a job.

        Raises:
            StoreAway: the store does not answer.
        """
        self._copies.pop(job_id, None)
        self._ended.pop(job_id, None)
        self._store.guard()
        self._store.remove([f"{folder_of(job_id)}/{MANIFEST}"])
        self._store.remove_folder(folder_of(job_id))

    def _due_jobs(self) -> Iterator[str]:
        yield from sorted(self.active, key=_number)
        self._final -= self.active
        there = {entry.name for entry in os.scandir(self._jobs) if _JOB.fullmatch(entry.name)}
        self._final &= there
        self._ended = {job_id: at for job_id, at in self._ended.items() if job_id in there - self.active}
        self._copies = {job_id: copies for job_id, copies in self._copies.items() if job_id in there}
        for job_id in sorted(there - self.active - self._final, key=_number):
            if job_id not in self._ended and self._is_marked(job_id):
                self._final.add(job_id)
            else:
                self._ended.setdefault(job_id, self._clock())
                yield job_id

    def _is_marked(self, job_id: str) -> bool:
        try:
            return (self._jobs / job_id / MARK).read_text() == self._store.url
        except FileNotFoundError:
            return False

    def _copy(self, job_id: str) -> None:
        if not (self._jobs / job_id).is_dir():
            return
        self._current = job_id
        now, since = self._clock(), self._ended.get(job_id)
        copies = self._copies_of(job_id)
        is_quiet = since is not None and now - since >= QUIET_S
        came = copies.copy(now, is_over=since is not None, is_final=is_quiet)
        if since is None:
            return
        if came:
            self._ended[job_id] = now
        elif is_quiet:
            write_whole(self._jobs / job_id / MARK, self._store.url.encode(), durable=False)
            self._final.add(job_id)
            del self._ended[job_id], self._copies[job_id]

    def _copies_of(self, job_id: str) -> JobCopies:
        made = JobCopies(self._store, self._jobs, job_id, self._find, self._copy_urgent)
        return self._copies.setdefault(job_id, made)

    def _copy_urgent(self) -> None:
        """Copy new checkpoints of other jobs now and then while one job sends something long."""
        now = self._clock()
        if now - self._urgent_at < LOOK_S:
            return
        self._urgent_at = now
        for job_id in sorted(self.active - {self._current} - self._aside.keys(), key=_number):
            with suppress(OSError):  # said when its turn comes
                self._copies_of(job_id).copy(now, is_over=False, only_urgent=True)


def _number(job_id: str) -> int:
    return int(job_id.partition("-")[2])
