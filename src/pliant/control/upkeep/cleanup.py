"""Cleans up after jobs that have ended or were deleted, and the audit log, by the rules of this server.

Touches nothing that an unfinished job needs.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from pliant.control.settings import ControlSettings, JobFolders
from pliant.control.upkeep.deletion import ForgetCopies, forget_nothing, remove_what_is_left
from pliant.control.upkeep.results import new_work_files
from pliant.core.errors import PliantError
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId
from pliant.core.job_filter import JobFilter
from pliant.core.lifecycle import ENDED_STATES, UNENDED_STATES, JobState
from pliant.core.ports import Clock, Store, Writes
from pliant.core.registry import AuditEntry, Kept
from pliant.core.upkeep import Holding, Material, Records, Removal, Retention, Rule, Sweep
from pliant.files.folder import write_whole
from pliant.files.space import cause_of
from pliant.files.untrusted.removal import empty_trash, remove
from pliant.files.untrusted.walking import list_folder, measure
from pliant.policy.retain import forgotten_before, removals

log = logging.getLogger(__name__)

POINT_BYTES = 100
"""What a point of a series is taken to need in the database."""
ENTRY_BYTES = 200
"""What an entry of the audit log is taken to need there."""
CLEAN_UP = "clean up"
"""The action that the audit log names for entries that are not in it any more."""
EVERY_S = 3600.0
_DAY_S = 86_400.0
_PAGE = 1000
_NAME = "retention"
_NOT_RESULTS = frozenset({"log", "checkpoint"})
_MAX_LISTS = 1000
"""Of a folder with more results than are listed at once."""


class Upkeep:
    """The rules, and what they remove."""

    def __init__(
        self,
        *,
        store: Store,
        records: Records,
        clock: Clock,
        settings: ControlSettings,
        notify: Callable[[], None] = lambda: None,
        trainings: Callable[[], Collection[str]] = tuple,
        trials: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """Take what it needs.

        Args:
            notify: called after events were stored.
            trainings: the jobs that are trainings of models, which keep all but their checkpoints.
            trials: the jobs of searches that are not over, which keep all.
        """
        self.forget_copies: ForgetCopies = forget_nothing
        """Removes what an object store has of a job that was deleted."""
        self._store = store
        self._records = records
        self._registry = store.registry
        self._clock = clock
        self._settings = settings
        self._notify = notify
        self._trainings = trainings
        self._trials = trials
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def rules(self) -> Kept[Retention]:
        """Return the rules; revision 0 if none were ever given."""
        kept = self._registry.get(Retention, _NAME)
        return kept or Kept(noun=Retention(), revision=0, created_at=0.0, changed_at=0.0)

    def change(self, rules: tuple[Rule, ...], revision: int | None = None) -> Kept[Retention]:
        """Replace the rules.

        Raises:
            Stale: they are not at this revision any more.
        """
        wanted = Retention(rules=rules)
        if self.rules().revision == 0 and revision in (None, 0):
            return self._registry.add(wanted, at=self._clock.now())
        return self._registry.replace(wanted, at=self._clock.now(), revision=revision)

    def sweep(self, *, dry_run: bool) -> Sweep:
        """Remove what the rules remove, or only tell what that would be. One at a time."""
        with self._lock:
            now = self._clock.now()
            rules = self.rules().noun.rules
            before = forgotten_before(rules, now)
            chosen = (*removals(self._holdings(), rules, now), *self._old_entries(before, now))
            failed = [] if dry_run else [trouble for removal in chosen if (trouble := self._remove(removal, before))]
            done = Sweep(
                at=now,
                dry_run=dry_run,
                removals=chosen,
                num_bytes=sum(removal.num_bytes for removal in chosen),
                failed=tuple(failed),
            )
            if chosen and not dry_run:
                self._report(done)
            return done

    def run(self) -> None:
        """Clean up now and then until `close`."""
        while not self._closed.is_set():
            try:
                remove_what_is_left(self._store, self._clock, self._settings.home / "jobs", self.forget_copies)
                if self.rules().noun.rules:
                    self.sweep(dry_run=False)
            except (PliantError, OSError):
                log.exception("the clean-up failed; it is tried again in an hour")
            self._closed.wait(EVERY_S)

    def close(self) -> None:
        """End `run`."""
        self._closed.set()

    def _holdings(self) -> Iterator[Holding]:
        points = self._records.num_points()
        needed = self._find_needed()
        trainings, trials = frozenset(self._trainings()), frozenset(self._trials())
        for job in self._jobs(ENDED_STATES):
            folders = self._settings.folders(job.id)
            if job.id in trials or job.ended_at is None or any(folders.root in path.parents for path in needed):
                continue
            sizes = {
                Material.LOGS: measure(folders.logs),
                Material.METRICS: points.get(job.id, 0) * POINT_BYTES,
                Material.CHECKPOINTS: measure(folders.checkpoints),
                Material.RESULTS: measure(folders.result, exclude=_NOT_RESULTS) + _work_bytes(folders),
            }
            for material, num_bytes in sizes.items():
                if job.id in trainings and material is not Material.CHECKPOINTS:
                    continue
                yield Holding(job_id=job.id, material=material, num_bytes=num_bytes, ended_at=job.ended_at)

    def _old_entries(self, before: float, now: float) -> Iterator[Removal]:
        number = self._records.num_entries(before=before) if before > 0 else 0
        if number:
            why = f"{number:,} entries of the audit log are older than {(now - before) / _DAY_S:g} days"
            yield Removal(job_id=None, material=Material.AUDIT, num_bytes=number * ENTRY_BYTES, why=why)

    def _find_needed(self) -> frozenset[Path]:
        """Return the files of other jobs that unfinished ones start from."""
        origins = [origin for job in self._jobs(UNENDED_STATES) for origin in (job.spec.weights, job.spec.resume_from)]
        return frozenset(Path(origin) for origin in origins if origin)

    def _jobs(self, states: tuple[JobState, ...]) -> Iterator[Job]:
        before: JobId | None = None
        while page := self._store.jobs(JobFilter(states=states), before=before, limit=_PAGE):
            yield from page
            before = page[-1].id

    def _remove(self, removal: Removal, before: float) -> str:
        """Remove one thing, of the audit log what is older than `before`; return what went wrong, in words."""
        try:
            if removal.job_id is None:
                entry = AuditEntry(at=self._clock.now(), who="", action=CLEAN_UP, target=removal.why, status=200)
                self._records.forget_entries(before=before, entry=entry)
            else:
                self._remove_of(removal.job_id, removal)
        except (OSError, PliantError) as error:
            what = f"the {removal.material} of {removal.job_id or 'the server'} could not be removed"
            log.warning("%s: %s", what, error)
            return f"{what}: {cause_of(error)}"
        return ""

    def _remove_of(self, job_id: JobId, removal: Removal) -> None:
        folders = self._settings.folders(job_id)
        if folders.root.is_dir():
            empty_trash(folders.root)
        match removal.material:
            case Material.METRICS:
                self._records.forget_points([job_id])
            case Material.LOGS:
                day = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(sep=" ", timespec="seconds")
                write_whole(folders.logs_removed, f"{day} by the clean-up: {removal.why}".encode())
                remove(folders.logs)
            case Material.CHECKPOINTS:
                remove(folders.checkpoints)
            case Material.RESULTS:
                _remove_results(folders)
            case Material.AUDIT:
                raise AssertionError("the audit log belongs to no job")

    def _report(self, done: Sweep) -> None:
        jobs = [removal.job_id for removal in done.removals if removal.job_id is not None]
        what = [f"{_count(len(jobs), 'thing')} of {_count(len(set(jobs)), 'ended job')}"] if jobs else []
        what += ["old entries of the audit log"] if len(jobs) < len(done.removals) else []
        message = f"the clean-up removed {' and '.join(what)}, {done.num_bytes:,} bytes"
        event = Event(
            at=done.at,
            kind=EventKind.CLEANED_UP,
            message=message + "".join(f"; {trouble}" for trouble in done.failed),
            data={"num_removals": len(done.removals), "num_bytes": done.num_bytes, "num_failed": len(done.failed)},
        )
        self._store.write(Writes(events=(event,)))
        self._notify()


def _count(how_many: int, noun: str) -> str:
    return f"{how_many} {noun}{'s' * (how_many != 1)}"


def _work_bytes(folders: JobFolders) -> int:
    return sum(num_bytes for _, num_bytes in new_work_files(folders))


def _remove_results(folders: JobFolders) -> None:
    for path, _ in new_work_files(folders):
        remove(path)
    for _ in range(_MAX_LISTS):
        names = [name for name, _ in list_folder(folders.result) if name not in _NOT_RESULTS]
        for name in names:
            remove(folders.result / name)
        if not names:
            return
