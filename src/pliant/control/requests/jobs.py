"""What people ask control to do with jobs: submit, change, stop. Each is checked, written and then acted on.

Callable from any thread; everything happens under control's one lock.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pliant.api.jobs import JobPatch, NotedJob, StacksAsked
from pliant.api.view import fill
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
from pliant.control.upkeep.results import note_of_patterns
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput, NotFound, Problem, Unavailable
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.notice import NO_NOTICES, NoticeSettings
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
        self,
        spec: JobSpec,
        archive: Path,
        owner: str,
        visible: VisibleJobs | None = None,
        notes: Sequence[str] = (),
        notices: NoticeSettings = NO_NOTICES,
    ) -> NotedJob:
        """Check a submission and queue it; `visible` is which jobs its owner sees, for what it starts from.

        What its owner has to know is in the answer and becomes events: `notes`, and what is found here. `notices` is
        what is sent when the job is over.

        Raises:
            InvalidInput: with everything that is wrong with it.
            TooLarge: its code is over the limit.
            Unavailable: the server is going down, or its disk cannot take the code.
        """
        refused: tuple[Problem, ...] = ()
        try:
            spec = self._queues.admit(spec)
        except InvalidInput as error:
            refused = error.problems  # told with all else that is wrong
        refused += self._inputs.notices.problems(notices)
        reach = Reach(
            jobs=self._settings.home / "jobs",
            sees=lambda job_id: self._queries.sees(job_id, visible),
            sees_all=visible is None,
            open_folders=self._settings.open_folders,
        )
        spec = resolve_jobs(spec, self._settings, reach.sees)
        with (
            self._inputs.hold(spec, visible) as (spec, check),
            changes.unpack_code(
                spec, archive, reach, self._ledger.kinds, lambda code: (*refused, *check(code))
            ) as code,
            self._copied(spec, owner, code.parent) as spec_for,
        ):
            notes = (*notes, *self._ledger.kinds.of_spec(spec).notes(spec, code), *note_of_patterns(code))
            with self._ledger.lock:
                return self._queue(spec, spec_for, code, owner, notes, notices)

    def _queue(
        self,
        spec: JobSpec,
        spec_for: Callable[[JobFolders], JobSpec],
        code: Path,
        owner: str,
        notes: Sequence[str],
        notices: NoticeSettings,
    ) -> NotedJob:
        """Give a submission that was checked its number and its folders, and queue it."""
        if self._ledger.draining:
            raise Unavailable("the server is shutting down; submit again when it is back")
        draft = self._ledger.draft()
        job_id = JobId(f"job-{draft.next_id('job')}")
        self._queues.admit(spec)  # the queue may have been closed since
        notes = (*notes, *self._queues.misfit(spec.queue, spec.min_tasks, spec.slots_per_task))
        folders = self._settings.folders(job_id)
        changes.submit(draft, self._ledger.kinds, job_id, spec_for(folders), owner, notes)
        self._inputs.notices.keep(job_id, notices, owner)  # before the job: it may be over at once
        with changes.place_code(code, folders):
            self._ledger.commit(draft)
        return fill(NotedJob, self._queries.job(job_id), notes=notes)

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

    def change(self, job_id: str, patch: JobPatch, revision: int | None = None) -> NotedJob:
        """Change priority, minimum, maximum or queue of a job that has not ended.

        The answer says, as does an event, if it cannot run with that on what is here now.

        Raises:
            NotFound, InvalidInput, Conflict, Stale: see `changes.change`.
        """
        with self._ledger.lock:
            live = self._require_unended(job_id)
            if patch.queue is not None and patch.queue != live.job.queue:
                self._queues.check_move(live, patch.queue)
            draft = self._ledger.draft()
            notes = self._notes_of(live, patch)
            changes.change(draft, self._ledger.kinds, live, patch, revision, notes)
            self._ledger.commit(draft)
            return fill(NotedJob, self._queries.job(job_id), notes=notes)

    def _notes_of(self, live: LiveJob, patch: JobPatch) -> tuple[str, ...]:
        """Return what somebody should know who changes where a job runs, or how small it may be."""
        if patch.queue is None and patch.min_tasks is None:
            return ()
        job = live.job
        return self._queues.misfit(patch.queue or job.queue, patch.min_tasks or job.min_tasks, job.spec.slots_per_task)

    def stop(self, job_id: str, who: str = "a person", *, now: bool = False) -> Job:
        """End a job at its next step boundary; at once if it holds no slots, or if `now` says so.

        Raises:
            NotFound: nothing of that name.
            Conflict: it has ended.
        """
        with self._ledger.lock:
            live = self._require_unended(job_id)
            draft = self._ledger.draft()
            changes.stop(draft, self._ledger.kinds, live, who, now=now)
            self._ledger.commit(draft)
            return self._queries.job(job_id)

    def ask_stacks(self, job_id: str) -> StacksAsked:
        """Ask the processes of a job where their threads are.

        Raises:
            NotFound: nothing of that name.
            Conflict: see `changes.ask_stacks`.
        """
        with self._ledger.lock:
            live = self._require_unended(job_id)
            after = self._queries.last_event()
            draft = self._ledger.draft()
            asked = changes.ask_stacks(draft, self._ledger.kinds, live)
            self._ledger.commit(draft)
            speaks = self._ledger.kinds.of(live.job).speaks
            return StacksAsked(task_ids=asked, after=after, answer="events" if speaks else "stderr")

    def _require_unended(self, job_id: str) -> LiveJob:
        changes.refuse_ended(self._queries.job(job_id))
        live = self._ledger.get(JobId(job_id))
        if live is None:
            raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
        return live
