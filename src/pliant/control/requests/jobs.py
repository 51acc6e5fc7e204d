"""What people ask control to do with jobs: submit, change, stop. Each is checked, written and then acted on.

Callable from any thread; everything happens under control's one lock.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pliant.api.arrays import ArrayView
from pliant.api.job_views import StacksAsked
from pliant.api.jobs import JobPatch, NotedJob
from pliant.api.view import fill
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.waiting import Awaited
from pliant.control.requests import changes
from pliant.control.requests.acceptance import Acceptance
from pliant.control.requests.arrays import multiply, specs_of
from pliant.control.requests.predecessors import Predecessors
from pliant.control.requests.queries import Queries
from pliant.control.requests.queues import Queues
from pliant.control.settings import ControlSettings, JobFolders
from pliant.core.access import VisibleJobs
from pliant.core.array import ArraySettings, combinations
from pliant.core.errors import Conflict, NotFound, UserError
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.notice import NO_NOTICES, NoticeSettings
from pliant.files.untrusted.opening import take_file


class JobRequests:
    """The use cases about jobs."""

    def __init__(
        self, *, ledger: Ledger, settings: ControlSettings, queries: Queries, queues: Queues, acceptance: Acceptance
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._queries = queries
        self._queues = queues
        self._acceptance = acceptance
        self._predecessors = Predecessors(queries=queries, live=ledger.get)

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
        with (
            self._acceptance.checked(spec, archive, owner, visible, notes, notices) as checked,
            self._ledger.lock,
        ):
            (job_id,), found = self._acceptance.queue(checked, [checked.spec], [checked.code])
            return fill(NotedJob, self._queries.job(job_id), notes=found)

    def submit_array(
        self,
        spec: JobSpec,
        array: ArraySettings,
        archive: Path,
        owner: str,
        visible: VisibleJobs | None = None,
        notices: NoticeSettings = NO_NOTICES,
    ) -> ArrayView:
        """Check a submission and queue a job for each combination of values: all of them, or none.

        `notices` is what is sent when one of them is over.

        Raises:
            InvalidInput, TooLarge, Unavailable: as for `submit`.
        """
        num_jobs = len(combinations(array.array))
        with self._acceptance.checked(spec, archive, owner, visible, (), notices) as checked:
            codes = multiply(checked.code, num_jobs)
            with self._ledger.lock:
                array_id = f"array-{self._ledger.draft().next_id('array')}"
                _, found = self._acceptance.queue(checked, specs_of(checked.spec, array, array_id), codes)
                return self._queries.array_view(array_id, notes=found)

    def rerun(
        self,
        job: Job,
        spec: JobSpec,
        owner: str,
        visible: VisibleJobs | None = None,
        notes: Sequence[str] = (),
        notices: NoticeSettings = NO_NOTICES,
    ) -> NotedJob:
        """Check a submission of the code that another job was submitted with, and queue it.

        If `spec` is of an array, the new job is the only one of an array of its own, with the values that this one has.

        Raises:
            Conflict: that code is not kept.
            InvalidInput, TooLarge, Unavailable: as for `submit`.
        """
        _refuse_serving(job, "deploy the version again instead")
        with (
            open_archive(job, self._settings.folders(job.id)) as archive,
            self._acceptance.checked(spec, archive, owner, visible, notes, notices) as found,
            self._ledger.lock,
        ):
            checked, specs = replace(found, rerun_of=job.id), [found.spec]
            if (array := spec.array) is not None:
                number = self._ledger.draft().next_id("array")
                values = {name: (value,) for name, value in array.values.items()}
                specs = [*specs_of(found.spec, ArraySettings(array=values), f"array-{number}")]
            (job_id,), said = self._acceptance.queue(checked, specs, [checked.code])
            return fill(NotedJob, self._queries.job(job_id), notes=said)

    def change(
        self,
        job_id: str,
        patch: JobPatch,
        revision: int | None = None,
        visible: VisibleJobs | None = None,
        who: str = "",
    ) -> NotedJob:
        """Change priority, minimum, maximum or queue of a job that has not ended, or what it waits for; tags of any.

        The answer says, as does an event, if it cannot run with that on what is here now. `who` changes it.

        Raises:
            NotFound, InvalidInput, Conflict, Stale: see `changes.change`.
        """
        with self._ledger.lock:
            draft = self._ledger.draft()
            draft.who = who
            notes = self.note_change(draft, job_id, patch, revision, visible)
            self._ledger.commit(draft)
            return fill(NotedJob, self._queries.job(job_id), notes=notes)

    def note_change(
        self, draft: Draft, job_id: str, patch: JobPatch, revision: int | None, visible: VisibleJobs | None
    ) -> Sequence[str]:
        """Note a change in a draft, and return what somebody should know of it; under the lock. See `change`."""
        live = self._find_any(job_id) if changes.only_tags(patch) else self._require_own_master(job_id)
        if patch.queue is not None and patch.queue != live.job.queue:
            self._queues.check_move(live, patch.queue)
        notes = self._notes_of(live, patch)
        awaited = self._awaited_after(live.job, patch, visible)
        changes.change(draft, self._ledger.kinds, live, patch, revision, notes, awaited)
        return notes

    def change_all(self, job_ids: Sequence[str], patch: JobPatch, who: str = "") -> Mapping[str, UserError]:
        """Change several jobs at once; return those that it is refused for, each with why. The others are changed."""
        return self._each(job_ids, lambda draft, job_id: self.note_change(draft, job_id, patch, None, None), who)

    def stop_all(self, job_ids: Sequence[str], who: str, *, now: bool = False) -> Mapping[str, UserError]:
        """Stop several jobs at once, as `stop` does; return those that it is refused for, each with why."""

        def stop(draft: Draft, job_id: str) -> None:
            changes.stop(draft, self._ledger.kinds, self._require_own_master(job_id), who, now=now)

        return self._each(job_ids, stop, who)

    def _each(self, job_ids: Sequence[str], note: Callable[[Draft, str], object], who: str) -> Mapping[str, UserError]:
        """Note something of each of these jobs in one draft, but for those that refuse, and commit it."""
        refused: dict[str, UserError] = {}
        with self._ledger.lock:
            draft = self._ledger.draft()
            draft.who = who
            for job_id in dict.fromkeys(job_ids):
                try:
                    note(draft, job_id)
                except UserError as error:
                    refused[job_id] = error
            self._ledger.commit(draft)
        return refused

    def _awaited_after(self, job: Job, patch: JobPatch, visible: VisibleJobs | None) -> Awaited | None:
        """Return what a job waits for after a change; None if the change does not concern that.

        Raises:
            Conflict: it has started.
            InvalidInput: it cannot wait for these.
        """
        if patch.after is None and patch.after_any is None:
            return None
        if job.started_at is not None:
            raise Conflict(f"{job.id} has started; only a job that has not can be made to wait for others")
        after = job.after if patch.after is None else patch.after
        after_any = job.after_any if patch.after_any is None else patch.after_any
        awaited = self._predecessors.left(after, after_any, visible)
        self._predecessors.refuse_ring(job, (*awaited[0], *awaited[1]))
        return awaited

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
            live = self._require_own_master(job_id)
            draft = self._ledger.draft()
            changes.stop(draft, self._ledger.kinds, live, who, now=now)
            self._ledger.commit(draft)
            return self._queries.job(job_id)

    def stop_array(self, array_id: str, who: str = "a person", *, now: bool = False) -> ArrayView:
        """End all jobs of an array that have not ended, as `stop` does.

        Raises:
            NotFound: nothing of that name.
            Conflict: all have ended.
        """
        with self._ledger.lock:
            lives = [self._ledger.get(job.id) for job in self._queries.array(array_id, None) if not job.ended]
            if not lives:
                raise Conflict(f"all jobs of {array_id} have ended already")
            draft = self._ledger.draft()
            for live in lives:
                if live is not None:
                    changes.stop(draft, self._ledger.kinds, live, who, now=now)
            self._ledger.commit(draft)
            return self._queries.array_view(array_id)

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

    def _find_any(self, job_id: str) -> LiveJob:
        """Return a job, also one that has ended."""
        job = self._queries.job(job_id)
        return self._ledger.get(job.id) or LiveJob(job=job)

    def _require_own_master(self, job_id: str) -> LiveJob:
        live = self._require_unended(job_id)
        _refuse_serving(live.job, "change or stop the endpoint instead")
        return live

    def _require_unended(self, job_id: str) -> LiveJob:
        changes.refuse_ended(self._queries.job(job_id))
        live = self._ledger.get(JobId(job_id))
        if live is None:
            raise NotFound(f"no job is named {job_id!r}; list them to see which there are")
        return live


def _refuse_serving(job: Job, instead: str) -> None:
    """Refuse to treat a job that serves an endpoint as one of its own.

    Raises:
        Conflict: it does.
    """
    if job.spec.endpoint is not None:
        name = job.spec.endpoint.name
        raise Conflict(f"{job.id} serves the endpoint {name}; {instead}: `pliant endpoints show {name}`")


@contextmanager
def open_archive(job: Job, folders: JobFolders) -> Iterator[Path]:
    """Yield a path of the code that a job was submitted with, packed.

    It leads to the file that is open: whatever takes its place meanwhile is not read.

    Raises:
        Conflict: it is not kept.
    """
    try:
        kept = take_file(folders.archive)
    except OSError as error:
        raise Conflict(
            f"the code that {job.id} was submitted with is not kept here: it was removed, or the job was submitted to "
            f"an earlier version; submit it again from its folder"
        ) from error
    try:
        yield Path(f"/proc/self/fd/{kept.descriptor}")
    finally:
        kept.close()
