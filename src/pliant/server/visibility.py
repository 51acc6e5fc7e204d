"""Whose jobs a caller sees and may change: the one place where routes ask.

To a caller who may not see a job, it does not exist (404). A job that they see but may not change is refused (403).
"""

from typing import Annotated

from fastapi import Depends, Path

from pliant.core.access import Principal, VisibleJobs
from pliant.core.errors import Forbidden
from pliant.core.job import Job
from pliant.server.context import InContext
from pliant.server.middleware.authorisation import Caller


def visible_jobs_of(context: InContext, caller: Caller) -> VisibleJobs | None:
    """Return which jobs the caller sees; None: all."""
    return context.sharing.visible_jobs(caller)


Seen = Annotated[VisibleJobs | None, Depends(visible_jobs_of)]


def find_job(context: InContext, visible: Seen, job_id: Annotated[str, Path()]) -> Job:
    """Return the job in the path.

    Raises:
        NotFound: there is none, or the caller may not see it.
    """
    return context.control.queries.require_visible(job_id, visible)


VisibleJob = Annotated[Job, Depends(find_job)]


def find_own_job(job: VisibleJob, caller: Caller) -> Job:
    """Return the job in the path, for a change.

    Raises:
        NotFound: there is none, or the caller may not see it.
        Forbidden: the caller sees it, but it is not theirs to change.
    """
    require_owner(job, caller)
    return job


OwnJob = Annotated[Job, Depends(find_own_job)]


def require_owner(job: Job, caller: Principal) -> None:
    """Refuse a caller who sees a job and may not change it.

    Raises:
        Forbidden: it is not theirs.
    """
    if not caller.owns(job.owner):
        raise Forbidden(f"{job.id} is {job.owner}'s and only shared with you; ask {job.owner} to change it")
