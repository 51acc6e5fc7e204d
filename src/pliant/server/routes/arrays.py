"""Arrays: one script, run for every combination of some values."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Final

from fastapi import Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from pliant.api.arrays import ArrayRequest, ArrayView
from pliant.api.jobs import without_secrets
from pliant.core.access import Permission
from pliant.core.array import ArraySettings
from pliant.core.input import values_of
from pliant.server import upload
from pliant.server.body import body_with_code, parse_body_with_code, upload_file
from pliant.server.context import InContext, InControl
from pliant.server.deletion import delete_jobs
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.visibility import Seen, require_owner

routes = Routes(tags=["jobs"])

_UPLOAD: Final = body_with_code(ArrayRequest, "The code folder of all jobs")


@routes.post(
    "/arrays",
    Permission.JOBS_WRITE,
    "Submit a training for every combination of values",
    409,
    413,
    503,
    507,
    status_code=201,
    openapi_extra=_UPLOAD,
)
async def submit(request: Request, context: InContext, caller: Caller, visible: Seen) -> ArrayView:
    """Check what was asked for and the code, and queue a job for each combination: all of them, or none.

    The arguments of each script end with its values, `--lr=0.1`.
    """
    with upload_file(context.uploads) as path:
        text = await upload.receive(request.headers.get("content-type", ""), request.stream(), path)
        body = await parse_body_with_code(ArrayRequest, text, path)
        array = ArraySettings(**values_of(ArraySettings, body))
        submit_array = partial(context.control.requests.submit_array, notices=body.notices())
        return _shown(await run_in_threadpool(submit_array, body.spec(), array, path, caller.name, visible))


def find_array(context: InContext, visible: Seen, array_id: Annotated[str, Path()]) -> ArrayView:
    """Return the array in the path.

    Raises:
        NotFound: there is none, or the caller may not see all of it.
    """
    return _shown(context.control.queries.array_view(array_id, visible))


def _shown(array: ArrayView) -> ArrayView:
    return replace(array, jobs=tuple(map(without_secrets, array.jobs)))


VisibleArray = Annotated[ArrayView, Depends(find_array)]


@routes.get("/arrays/{array_id}", Permission.JOBS_READ, "Show an array", 404)
def show(array: VisibleArray) -> ArrayView:
    """Return an array with its jobs, in the order of their values."""
    return array


@routes.delete(
    "/arrays/{array_id}", Permission.JOBS_WRITE, "Delete all jobs of an array", 403, 404, 409, status_code=204
)
def delete(context: InContext, array: VisibleArray, caller: Caller) -> None:
    """Delete its jobs, which all have ended, for good: all of them, or none."""
    delete_jobs(context, caller, array.jobs)


@routes.post("/arrays/{array_id}/stop", Permission.JOBS_WRITE, "Stop all jobs of an array", 403, 404, 409)
def stop(
    control: InControl,
    array: VisibleArray,
    caller: Caller,
    now: Annotated[bool, Query(description="Do not wait for step boundaries; what was not saved is lost.")] = False,
) -> ArrayView:
    """End its jobs that have not ended: at their next step boundaries, or at once if `now` says so."""
    for job in array.jobs:
        require_owner(job, caller)
    return _shown(control.requests.stop_array(array.id, caller.name, now=now))
