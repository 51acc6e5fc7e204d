"""Which jobs people share with whom, and with it which jobs somebody sees.

The registry is the truth; a copy in memory, by person, answers every request. One server at a time writes shares.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import ClassVar

from pliant.core.access import EVERYBODY, Principal, VisibleJobs, name_once
from pliant.core.errors import Conflict, InvalidInput, Problem, Stale
from pliant.core.job import Job, JobId
from pliant.core.ports import Clock
from pliant.core.registry import Kept, Registry, iterate_nouns


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShare:
    """With whom a job is shared."""

    KIND: ClassVar[str] = "job share"

    name: str
    """The job's id."""
    owner: str
    """The job's."""
    shared_with: tuple[str, ...] = ()
    """Names of users; `*` stands for everybody."""


def sharing_of(registry: Registry, clock: Clock, knows: Callable[[str], bool]) -> "Sharing":
    """Return the shares in a registry; `knows` tells whether there is a user of that name."""
    return Sharing(registry=registry, clock=clock, unknown=lambda names: [name for name in names if not knows(name)])


class Sharing:
    """The shares of all jobs. Safe to call from any thread.

    Args:
        unknown: returns those of some names that no user has.
    """

    def __init__(
        self, *, registry: Registry, clock: Clock, unknown: Callable[[Collection[str]], Collection[str]]
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._unknown = unknown
        self._lock = Lock()
        self._names: dict[JobId, tuple[str, ...]] = {}
        self._jobs: defaultdict[str, frozenset[JobId]] = defaultdict(frozenset)
        for kept in iterate_nouns(registry, JobShare):
            self._remember(kept.noun)

    def _remember(self, share: JobShare) -> None:
        job_id = JobId(share.name)
        before, self._names[job_id] = self._names.get(job_id, ()), share.shared_with
        for name in set(before) - set(share.shared_with):
            self._jobs[name] -= {job_id}
        for name in set(share.shared_with) - set(before):
            self._jobs[name] |= {job_id}

    def of(self, job: Job) -> tuple[JobShare, int]:
        """Return with whom a job is shared, and the revision of that; 0 if it never was shared."""
        kept = self._registry.get(JobShare, job.id)
        return (JobShare(name=job.id, owner=job.owner), 0) if kept is None else (kept.noun, kept.revision)

    def change(self, job: Job, shared_with: Sequence[str], revision: int | None = None) -> tuple[JobShare, int]:
        """Share a job with these and nobody else; return that with its revision.

        Raises:
            InvalidInput: with every name that no user has.
            Stale: it is not at `revision` any more.
        """
        self._check(job, shared_with)
        share = JobShare(name=job.id, owner=job.owner, shared_with=name_once(shared_with))
        with self._lock:
            kept = self._write(share, revision)
            self._remember(kept.noun)
        return kept.noun, kept.revision

    def _check(self, job: Job, shared_with: Sequence[str]) -> None:
        unknown = set(self._unknown([name for name in shared_with if name != EVERYBODY]))
        problems = []
        for place, name in enumerate(shared_with):
            field = f"shared_with.{place}"
            if name in unknown:
                problems.append(Problem(field=field, message=f"no user is named {name!r}; ask them for their name"))
            elif name == job.owner:
                problems.append(
                    Problem(field=field, message=f"{name!r} owns {job.id} and sees it anyway; leave it out")
                )
        if problems:
            raise InvalidInput(*problems)

    def _write(self, share: JobShare, revision: int | None) -> Kept[JobShare]:
        now = self._clock.now()
        if self._registry.get(JobShare, share.name) is not None:
            return self._registry.replace(share, at=now, revision=revision)
        if revision not in (None, 0):
            raise Stale(f"{share.name} is not at revision {revision}: it was never shared; look again")
        try:
            return self._registry.add(share, at=now)
        except Conflict as error:
            raise Stale(f"{share.name} was shared meanwhile; look with whom, and repeat the change") from error

    def forget(self, job_id: JobId) -> None:
        """Take note that a job, and with it with whom it was shared, is deleted."""
        with self._lock:
            self._remember(JobShare(name=job_id, owner=""))
            del self._names[job_id]

    def sees(self, principal: Principal, job: Job) -> bool:
        """Tell whether somebody may see a job."""
        return principal.sees(job.owner, self._names.get(job.id, ()))

    def visible_jobs(self, principal: Principal) -> VisibleJobs | None:
        """Return which jobs somebody sees; None: all."""
        if principal.sees_all:
            return None
        with self._lock:
            shared = self._jobs.get(principal.name, frozenset()) | self._jobs.get(EVERYBODY, frozenset())
        return VisibleJobs(owner=principal.name, shared=shared)
