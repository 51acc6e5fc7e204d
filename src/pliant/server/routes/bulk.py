"""Several jobs at once: stop them, change them. Each is answered for by itself."""

from collections.abc import Callable, Mapping, Sequence

from pliant.api.bulk import BulkOutcome, BulkOutcomes, JobsPatch, StopJobs
from pliant.core.access import Permission, Principal, VisibleJobs
from pliant.core.errors import UserError
from pliant.server.context import InContext
from pliant.server.middleware.authorisation import Caller
from pliant.server.middleware.problems import status_of
from pliant.server.routing import Routes
from pliant.server.visibility import Seen, require_owner

routes = Routes(tags=["jobs"])


@routes.post("/jobs/stop", Permission.JOBS_WRITE, "Stop several jobs")
def stop(context: InContext, caller: Caller, visible: Seen, body: StopJobs) -> BulkOutcomes:
    """End jobs at their next step boundaries, or at once if `now` says so: all that can be; the others say why not."""

    def stop_all(ids: Sequence[str]) -> Mapping[str, UserError]:
        return context.control.requests.stop_all(ids, caller.name, now=body.now)

    return _each(context, (caller, visible), body.ids, stop_all)


@routes.patch("/jobs", Permission.JOBS_WRITE, "Change several jobs")
def change(context: InContext, caller: Caller, visible: Seen, body: JobsPatch) -> BulkOutcomes:
    """Change priority, minimum, maximum or queue of all jobs where that can be; the others say why not.

    The scheduler decides once, when all are changed.
    """
    patch = body.patch()

    def change_all(ids: Sequence[str]) -> Mapping[str, UserError]:
        return context.control.requests.change_all(ids, patch, caller.name)

    return _each(context, (caller, visible), body.ids, change_all)


def _each(
    context: InContext,
    who: tuple[Principal, VisibleJobs | None],
    job_ids: Sequence[str],
    act: Callable[[Sequence[str]], Mapping[str, UserError]],
) -> BulkOutcomes:
    """Act on the jobs that a caller may change, and say of each what became of it."""
    caller, visible = who
    refused: dict[str, UserError] = {}
    for job_id in dict.fromkeys(job_ids):
        try:
            require_owner(context.control.queries.require_visible(job_id, visible), caller)
        except UserError as error:
            refused[job_id] = error
    refused.update(act([job_id for job_id in job_ids if job_id not in refused]))
    outcomes = tuple(_outcome(job_id, refused.get(job_id)) for job_id in dict.fromkeys(job_ids))
    return BulkOutcomes(outcomes=outcomes, num_refused=len(refused))


def _outcome(job_id: str, error: UserError | None) -> BulkOutcome:
    if error is None:
        return BulkOutcome(id=job_id, ok=True, status=200, problem="")
    return BulkOutcome(id=job_id, ok=False, status=status_of(error), problem=str(error))
