"""What people ask control to do with jobs: submit, change, stop. Each is checked, written and then acted on.

Callable from any thread; everything happens under control's one lock.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pliant.api.jobs import JobPatch
from pliant.control.jobs.inputs import JobInputs
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.requests import changes
from pliant.control.requests.origin import FOLDER, copy_foreign, with_copies
from pliant.control.requests.queries import Queries
from pliant.control.requests.queues import Queues
from pliant.control.requests.reach import Reach
from pliant.control.requests.submission import resolve_jobs
from pliant.control.settings import ControlSettings, JobFolders
from pliant.core.access import VisibleJobs
from pliant.core.errors import NotFound, Unavailable
from pliant.core.job import Job, JobId, JobSpec
from pliant.files.space import disk_error


class JobRequests:
    """The use cases about jobs."""

    def __init__(
        self, *, ledger: Ledger, settings: ControlSettings, queries: Queries, queues: Queues, inputs: JobInputs
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._queries = queries
        self._queues = queues
        self._inputs = inputs

    def submit(
        self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None = None, notes: Sequence[str] = ()
    ) -> Job:
        """Check a submission and queue it; `visible` is which jobs its owner sees, for what it starts from.

        Of `notes`, what its owner has to know, each becomes an event.

        Raises:
            InvalidInput: with everything that is wrong with it.
            TooLarge: its code is over the limit.
            Unavailable: the server is going down, or its disk cannot take the code.
        """
        spec = self._queues.admit(spec)
        reach = Reach(
            jobs=self._settings.home / "jobs",
            sees=lambda job_id: self._queries.sees(job_id, visible),
            sees_all=visible is None,
            open_folders=self._settings.open_folders,
        )
        spec = resolve_jobs(spec, self._settings, reach.sees)
        with (
            self._inputs.hold(spec, visible) as (spec, check),
            changes.unpack_code(spec, archive, reach, self._ledger.kinds, check) as code,
            self._copied(spec, owner, code.parent) as spec_for,
            self._ledger.lock,
        ):
            if self._ledger.draining:
                raise Unavailable("the server is shutting down; submit again when it is back")
            draft = self._ledger.draft()
            job_id = JobId(f"job-{draft.next_id('job')}")
            self._queues.admit(spec)  # the queue may have been closed since
            folders = self._settings.folders(job_id)
            changes.submit(draft, self._ledger.kinds, job_id, spec_for(folders), owner, notes)
            with changes.place_code(code, folders):
                self._ledger.commit(draft)
            return self._queries.job(job_id)

    @contextmanager
    def _copied(self, spec: JobSpec, owner: str, to: Path) -> Iterator[Callable[[JobFolders], JobSpec]]:
        """Copy files of other users into a folder; yield what makes a job start from them at their place."""
        user = self._queues.user_for(spec.queue, owner)

        def is_foreign(job_id: str) -> bool:
            other = self._queries.job(job_id)
            return self._queues.user_for(other.queue, other.owner) != user

        try:
            copies = copy_foreign(spec, self._settings.home / "jobs", is_foreign, to / FOLDER)
        except OSError as error:
            raise disk_error(to, error) from error
        yield lambda folders: with_copies(spec, copies, folders)

    def change(self, job_id: str, patch: JobPatch, revision: int | None = None) -> Job:
        """Change priority, minimum, maximum or queue of a job that has not ended.

        Raises:
            NotFound, InvalidInput, Conflict, Stale: see `changes.change`.
        """
        with self._ledger.lock:
            live = self._require_unended(job_id)
            if patch.queue is not None and patch.queue != live.job.queue:
                self._queues.check_move(live, patch.queue)
            draft = self._ledger.draft()
            changes.change(draft, self._ledger.kinds, live, patch, revision)
            self._ledger.commit(draft)
            return self._queries.job(job_id)

    def stop(self, job_id: str, who: str = "a person") -> Job:
        """End a job at its next step boundary, at once if it holds no slots.

        Raises:
            NotFound: nothing of that name.
            Conflict: it has ended.
        """
        with self._ledger.lock:
            live = self._require_unended(job_id)
            draft = self._ledger.draft()
            changes.stop(draft, self._ledger.kinds, live, who)
            self._ledger.commit(draft)
            return self._queries.job(job_id)

    def _require_unended(self, job_id: str) -> LiveJob:
        changes.refuse_ended(self._queries.job(job_id))
        live = self._ledger.get(JobId(job_id))
        if live is None:
            raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
        return live
