"""How submissions become jobs: each is checked, and then queued, alone or with others, all or none.

Everything that is wrong is found before anything is kept. What was checked may be wrong a moment later (its queue was
closed, what it starts from was deleted), so what may change is looked at again when it is queued, under the lock.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pliant.control.jobs.inputs import JobInputs
from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.waiting import Awaited
from pliant.control.requests import changes
from pliant.control.requests.origin import FOLDER, copy_foreign, jobs_started_from, with_copies
from pliant.control.requests.predecessors import Predecessors
from pliant.control.requests.queries import Queries
from pliant.control.requests.queues import Queues
from pliant.control.requests.reach import Reach
from pliant.control.requests.submission import problems_of_spec, resolve_jobs
from pliant.control.settings import ControlSettings, JobFolders
from pliant.control.upkeep.results import note_of_patterns
from pliant.core.access import VisibleJobs
from pliant.core.errors import InvalidInput, Problem, Unavailable
from pliant.core.job import JobId, JobSpec
from pliant.core.notice import NO_NOTICES, NoticeSettings
from pliant.files.space import disk_error

_IN_CODE: Final = "requirements:"
"""An environment that begins so is described by a file of the code."""
_NO_CODE: Final = ".no-code"
"""In the place of a folder of code where there is none: nothing is called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSubmission:
    """A submission that can be queued."""

    spec: JobSpec
    code: Path
    """A folder with its code, which is moved away or removed."""
    spec_for: Callable[[JobSpec, JobFolders], JobSpec]
    """Returns what a job is asked for, with what was copied for it at its place."""
    owner: str
    visible: VisibleJobs | None
    notes: Sequence[str]
    notices: NoticeSettings
    rerun_of: JobId | None = None
    tells: bool = True
    """Notes become events of the jobs."""


class Acceptance:
    """Checks submissions and queues what they ask for."""

    def __init__(
        self, *, ledger: Ledger, settings: ControlSettings, queries: Queries, queues: Queues, inputs: JobInputs
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._queries = queries
        self._queues = queues
        self._inputs = inputs
        self._predecessors = Predecessors(queries=queries, live=ledger.get)

    @contextmanager
    def checked(
        self,
        spec: JobSpec,
        archive: Path,
        owner: str,
        visible: VisibleJobs | None,
        notes: Sequence[str] = (),
        notices: NoticeSettings = NO_NOTICES,
    ) -> Iterator[CheckedSubmission]:
        """Yield a submission that can be queued, with its code in a folder that is removed after the block.

        `visible` is which jobs its owner sees, for what it starts from.

        Raises:
            InvalidInput: with everything that is wrong with it.
            TooLarge: its code is over the limit.
            Unavailable: the disk cannot take the code.
        """
        spec, reach, refused = self._look(spec, visible, notices)
        with (
            self._inputs.hold(spec, visible) as (spec, check),
            changes.unpack_code(
                spec, archive, reach, self._ledger.kinds, lambda code: (*refused, *check(code))
            ) as code,
            self._copied(spec, owner, code.parent) as spec_for,
        ):
            notes = (*notes, *self._ledger.kinds.of_spec(spec).notes(spec, code), *note_of_patterns(code))
            yield CheckedSubmission(
                spec=spec, code=code, spec_for=spec_for, owner=owner, visible=visible, notes=notes, notices=notices
            )

    def problems(
        self, spec: JobSpec, visible: VisibleJobs | None, notices: NoticeSettings
    ) -> tuple[JobSpec, Sequence[Problem]]:
        """Return what would be queued, and all that is wrong with it whatever its code is.

        Requirements, which are a file of the code, are not looked at.
        """
        spec, reach, refused = self._look(spec, visible, notices)
        in_code = (spec.environment or "").startswith(_IN_CODE)
        with self._inputs.hold(replace(spec, environment=None) if in_code else spec, visible) as (held, check):
            found = (*problems_of_spec(held, self._ledger.kinds, reach), *check(str(reach.jobs / _NO_CODE)))
        return spec, (*refused, *found)

    def awaited(self, spec: JobSpec, visible: VisibleJobs | None) -> Awaited:
        """Return what a job that could be queued would wait for."""
        return self._predecessors.left(spec.after, spec.after_any, visible)

    def _look(
        self, spec: JobSpec, visible: VisibleJobs | None, notices: NoticeSettings
    ) -> tuple[JobSpec, Reach, list[Problem]]:
        """Return what was asked for with what its queue adds, what its owner may name, and what is wrong so far."""
        refused = self._predecessors.problems(spec.after, spec.after_any, visible)
        try:
            spec = self._queues.admit(spec)
        except InvalidInput as error:
            refused += error.problems  # told with all else that is wrong
        refused += self._inputs.notices.problems(notices)
        reach = Reach(
            jobs=self._settings.home / "jobs",
            sees=lambda job_id: self._queries.sees(job_id, visible),
            sees_all=visible is None,
            open_folders=self._settings.open_folders,
            awaited=frozenset((*spec.after, *spec.after_any)),
        )
        return resolve_jobs(spec, self._settings, reach.sees), reach, refused

    def notes_of(self, checked: CheckedSubmission) -> Sequence[str]:
        """Return what the owner of a submission has to know of it."""
        spec = checked.spec
        return (*checked.notes, *self._queues.misfit(spec.queue, spec.min_tasks, spec.slots_per_task))

    def reserve(self, how_many: int = 1) -> list[JobId]:
        """Return ids for new jobs, which are never given again."""
        first = self._ledger.draft().next_id("job", how_many)
        return [JobId(f"job-{first + number}") for number in range(how_many)]

    def queue(
        self,
        checked: CheckedSubmission,
        specs: Sequence[JobSpec],
        codes: Sequence[Path],
        ids: Sequence[JobId] = (),
    ) -> tuple[Sequence[JobId], Sequence[str]]:
        """Give jobs that were checked their numbers and their folders, and queue them: all, or none. Under the lock.

        Args:
            checked: what they have in common.
            specs: what each is asked for.
            codes: a folder for each, which is moved to its place.
            ids: reserved before; if there are none they are now.

        Raises:
            InvalidInput: its queue, or what it starts from, is not there any more.
            Unavailable: the server is going down, or the disk cannot take the code.
        """
        if self._ledger.draining:
            raise Unavailable("the server is shutting down; submit again when it is back")
        spec, draft = checked.spec, self._ledger.draft()
        self._queues.admit(spec)  # the queue may have been closed since
        for origin in jobs_started_from(spec, self._settings.home / "jobs"):
            self._queries.job(origin)  # it may have been deleted since
        after, after_any = self._predecessors.left(spec.after, spec.after_any, checked.visible)
        notes = self.notes_of(checked)
        ids = ids or self.reserve(len(specs))
        with ExitStack() as placed:
            for job_id, one, code in zip(ids, specs, codes, strict=True):
                folders = self._settings.folders(job_id)
                new = changes.NewJob(
                    id=job_id,
                    spec=checked.spec_for(one, folders),
                    after=after,
                    after_any=after_any,
                    rerun_of=checked.rerun_of,
                    colour=self._ledger.colours.choose(one, (live.job for live in draft.jobs() if not live.job.ended)),
                )
                changes.submit(draft, self._ledger.kinds, new, checked.owner, notes if checked.tells else ())
                self._inputs.notices.keep(job_id, checked.notices, checked.owner)  # before it: it may be over at once
                placed.enter_context(changes.place_code(code, folders))
            self._ledger.commit(draft)
        return ids, notes

    @contextmanager
    def _copied(self, spec: JobSpec, owner: str, to: Path) -> Iterator[Callable[[JobSpec, JobFolders], JobSpec]]:
        """Copy files of other users into a folder; yield what makes a job start from them at their place."""
        user = self._queues.user_for(spec.queue, owner)

        def is_foreign(job_id: str) -> bool:
            if spec.trial is not None and job_id == spec.trial.parent_job:
                return True
            other = self._queries.job(job_id)
            return self._queues.user_for(other.queue, other.owner) != user

        awaited = {name for name in (*spec.after, *spec.after_any) if self._ledger.get(JobId(name)) is not None}
        try:
            copies = copy_foreign(spec, self._settings.home / "jobs", is_foreign, to / FOLDER, awaited)
        except OSError as error:
            raise disk_error(to, error) from error
        yield lambda one, folders: with_copies(one, copies, folders)
