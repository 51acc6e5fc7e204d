"""Whose jobs a caller sees and may change: the one place where routes ask.

A job that a caller may not see is one that does not exist (404); one that they see but may not change is 403.
"""

from typing import Annotated

from fastapi import Depends, Path

from pliant.core.access import Principal, Sight
from pliant.core.errors import Forbidden
from pliant.core.job import Job
from pliant.server.context import InContext
from pliant.server.middleware.access import Caller


def sight_of(context: InContext, caller: Caller) -> Sight | None:
    """Return which jobs the caller sees; None: all."""
    return context.sharing.sight(caller)


InSight = Annotated[Sight | None, Depends(sight_of)]


def seen_job(context: InContext, caller: Caller, job_id: Annotated[str, Path()]) -> Job:
    """Return the job in the path.

    Raises:
        NotFound: there is none, or the caller may not see it.
    """
    return context.control.queries.seen(job_id, context.sharing.sight(caller))


SeenJob = Annotated[Job, Depends(seen_job)]


def own_job(job: SeenJob, caller: Caller) -> Job:
    """Return the job in the path, for a change.

    Raises:
        NotFound: there is none, or the caller may not see it.
        Forbidden: the caller sees it, but it is not theirs to change.
    """
    check_owns(job, caller)
    return job


OwnJob = Annotated[Job, Depends(own_job)]


def check_owns(job: Job, caller: Principal) -> None:
    """Let only those go on who may change a job that they see.

    Raises:
        Forbidden: it is not theirs.
    """
    if not caller.owns(job.owner):
        raise Forbidden(f"{job.id} is {job.owner}'s and only shared with you; ask {job.owner} to change it")
