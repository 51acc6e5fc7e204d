"""What people ask control to do with jobs: submit, change, stop. Each is checked, written and then acted on.

Callable from any thread; everything happens under control's one lock.
"""

from collections.abc import Sequence
from pathlib import Path

from pliant.api.jobs import JobPatch
from pliant.control.jobs.data import placed
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.requests import changes
from pliant.control.requests.queries import Queries
from pliant.control.requests.queues import Queues
from pliant.control.requests.submission import resolved
from pliant.control.settings import ControlSettings
from pliant.core.access import Sight
from pliant.core.dataset import DataPlaces
from pliant.core.errors import NotFound, Unavailable
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.ports import Store
from pliant.core.preparation import Preparations


class Desk:
    """The use cases about jobs; control fills in what they work with."""

    settings: ControlSettings
    queries: Queries
    queues: Queues
    _store: Store
    _ledger: Ledger
    _data: DataPlaces
    _prepare: Preparations
    _draining: bool

    def submit(
        self, spec: JobSpec, archive: Path, owner: str, sight: Sight | None = None, notes: Sequence[str] = ()
    ) -> Job:
        """Check a submission and queue it; `sight` is which jobs its owner sees, for what it starts from.

        Of `notes`, what its owner has to know, each becomes an event.

        Raises:
            InvalidInput: with everything that is wrong with it.
            TooLarge: its code is over the limit.
            Unavailable: the server is going down, or its disk cannot take the code.
        """
        spec = self.queues.admitted(spec)
        spec = resolved(spec, self.settings, lambda job_id: self.queries.sees(job_id, sight))
        with (
            placed(spec, self._data, sight, self._prepare) as (spec, also),
            changes.unpacked(spec, archive, self.settings.home / "jobs", also) as code,
            self._ledger.lock,
        ):
            if self._draining:
                raise Unavailable("the server is shutting down; submit again when it is back")
            job_id = JobId(f"job-{self._store.next_id('job')}")
            self.queues.admitted(spec)  # the queue may have been closed since
            draft = self._ledger.draft()
            changes.submitted(draft, job_id, spec, owner, notes)
            with changes.kept(code, self.settings.folders(job_id)):
                self._ledger.commit(draft)
            return self.queries.job(job_id)

    def change(self, job_id: str, patch: JobPatch, revision: int | None = None) -> Job:
        """Change priority, minimum, maximum or queue of a job that has not ended.

        Raises:
            NotFound, InvalidInput, Conflict, Stale: see `workloads.changed`.
        """
        with self._ledger.lock:
            live = self._unended(job_id)
            if patch.queue is not None and patch.queue != live.job.queue:
                self.queues.check_move(live, patch.queue)
            draft = self._ledger.draft()
            changes.changed(draft, live, patch, revision)
            self._ledger.commit(draft)
            return self.queries.job(job_id)

    def stop(self, job_id: str, who: str = "a person") -> Job:
        """End a job at its next step boundary, at once if it holds no slots.

        Raises:
            NotFound: nothing of that name.
            Conflict: it has ended.
        """
        with self._ledger.lock:
            live = self._unended(job_id)
            draft = self._ledger.draft()
            changes.stopped(draft, live, who)
            self._ledger.commit(draft)
            return self.queries.job(job_id)

    def _unended(self, job_id: str) -> LiveJob:
        changes.refuse_ended(self.queries.job(job_id))
        live = self._ledger.get(JobId(job_id))
        if live is None:
            raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
        return live
