"""What people ask control to do with jobs that are over: delete them. Refused while somebody needs them.

The use case is callable from any thread. It decides under control's one lock; files are removed after that, without it
(`control.upkeep.deletion`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pliant.control.jobs.ledger import Ledger
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.waiting import names_of
from pliant.control.requests.origin import jobs_started_from
from pliant.control.requests.queries import Queries
from pliant.control.settings import ControlSettings
from pliant.control.upkeep.deletion import ForgetCopies, forget_nothing, remove_files
from pliant.core.access import VisibleJobs
from pliant.core.errors import Conflict
from pliant.core.event import EventKind
from pliant.core.job import DeletedJob, Job
from pliant.core.ports import Clock, Store

_NUM_NAMED = 4
_SOMEBODY_ELSES = "a job of somebody else"


class Deletions:
    """Deletes jobs with all that there is of them."""

    def __init__(self, ledger: Ledger, queries: Queries, store: Store, clock: Clock, settings: ControlSettings) -> None:
        self.forget_copies: ForgetCopies = forget_nothing
        """Removes what an object store has of a job."""
        self._ledger = ledger
        self._queries = queries
        self._store = store
        self._clock = clock
        self._jobs = settings.home / "jobs"

    def delete(
        self,
        job_ids: Collection[str],
        who: str,
        visible: VisibleJobs | None = None,
        more: Callable[[Job], Iterable[str]] = lambda _job: (),
    ) -> None:
        """Delete jobs that have ended: all of them, or none.

        Args:
            job_ids: these.
            who: the person who asks.
            visible: which jobs they see; None: all. Others are not named to them.
            more: what else keeps a job from being deleted, in sentences.

        Raises:
            NotFound: there is none of such an id.
            Conflict: one has not ended; or others wait for it or start from it.
        """
        with self._ledger.lock:
            jobs = [self._queries.job(job_id) for job_id in dict.fromkeys(job_ids)]
            needs = _Needs(tuple(self._ledger.jobs().values()), self._jobs, visible)
            refused = [next(chain(needs.problems(job), more(job)), "") for job in jobs]
            if any(refused):
                raise Conflict("; ".join(list(filter(None, refused))[:_NUM_NAMED]))
            draft = self._ledger.draft()
            deleted = [DeletedJob(id=job.id, owner=job.owner, deleted_at=draft.now, deleted_by=who) for job in jobs]
            draft.delete(*deleted)
            for one in deleted:
                draft.say(EventKind.JOB_DELETED, f"{one.id} was deleted by {who}", job_id=one.id)
            self._ledger.commit(draft)
        remove_files(self._store, self._clock, self._jobs, deleted, self.forget_copies)


@dataclass(frozen=True, slots=True)
class _Needs:
    """What the jobs that are not over need of others."""

    live: Sequence[LiveJob]
    jobs: Path
    visible: VisibleJobs | None

    def problems(self, job: Job) -> Iterator[str]:
        """Yield what keeps a job from being deleted, in sentences."""
        if not job.ended:
            yield f"{job.id} is {job.state.value}; stop it first, or wait for its end"
        if any(one.id == job.id for one in self.live):
            yield f"{job.id} is {job.state.value}, and its last process is not gone yet; try again in a moment"
        array = job.spec.array
        if array is not None and (left := [one for one in self.live if _array_of(one) == array.id]):
            some = self._name(left, "has", "have")
            yield f"{job.id} is of {array.id}, of which {some} not ended; delete it when all of them have"
        names = {*names_of(job)}
        if waiting := [one for one in self.live if names & {*one.job.after, *one.job.after_any}]:
            yield f"{self._name(waiting, 'waits', 'wait')} for {job.id}; stop that first, or wait for its end"
        if starting := [one for one in self.live if job.id in jobs_started_from(one.job.spec, self.jobs)]:
            yield f"{self._name(starting, 'starts', 'start')} from {job.id}; stop that first, or wait for its end"

    def _name(self, some: Sequence[LiveJob], verb: str, plural: str) -> str:
        """Return what some jobs do, by those that may be named: `job-3 waits`, `job-3, job-4 and 5 others wait`."""
        seen = (self.visible is None or self.visible.covers(one.id, one.job.owner) for one in some)
        named = list(dict.fromkeys(one.id if sees else _SOMEBODY_ELSES for one, sees in zip(some, seen, strict=True)))
        if len(named) == 1:
            return f"{named[0]} {verb}"
        others = len(named) - _NUM_NAMED
        if others > 0:
            return f"{', '.join(named[:_NUM_NAMED])} and {others} other{'s' * (others > 1)} {plural}"
        return f"{', '.join(named[:-1])} and {named[-1]} {plural}"


def _array_of(live: LiveJob) -> str | None:
    return None if live.job.spec.array is None else live.job.spec.array.id
