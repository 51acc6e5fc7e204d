"""Deletes jobs for a caller, whichever API they use: what control knows of them, and what the other rooms do."""

from collections.abc import Iterator, Sequence

from pliant.core.access import Principal
from pliant.core.job import Job
from pliant.server.context import Context
from pliant.server.visibility import require_owner


def delete_jobs(context: Context, caller: Principal, jobs: Sequence[Job]) -> None:
    """Delete jobs that have ended: all, or none.

    Raises:
        Forbidden: one is only shared with the caller.
        NotFound: one is not there any more.
        Conflict: one has not ended; or somebody needs it.
    """
    for job in jobs:
        require_owner(job, caller)
    trainings = context.models.trainings.titles()

    def of_a_training(job: Job) -> Iterator[str]:
        if (title := trainings.get(job.id)) is not None:
            yield f"{job.id} is the training {title}, which keeps its results; remove the training first"

    ids = [job.id for job in jobs]
    context.control.deletions.delete(ids, caller.name, context.sharing.visible_jobs(caller), of_a_training)
    for job_id in ids:
        context.sharing.forget(job_id)
