"""Jobs: submit, list, show, change, stop, why, series, results."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Final

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints
from starlette.concurrency import run_in_threadpool

from pliant.api.job_rows import JobRowPage
from pliant.api.job_views import ChartPage, JobDetail, JobPage, MetricPage, ResultFiles, StacksAsked, Why
from pliant.api.jobs import JobPatch, JobRequest, NotedJob, without_secrets
from pliant.api.rerun import RerunJob, RerunRequest, rerun_of
from pliant.api.view import fill
from pliant.core.access import Permission
from pliant.core.chart import MAX_BUCKETS
from pliant.core.errors import Conflict, InvalidInput
from pliant.core.job import Job
from pliant.core.job_filter import NEWEST_FIRST
from pliant.server import upload
from pliant.server.body import body_with_code, parse_body_with_code, upload_file
from pliant.server.context import InContext, InControl
from pliant.server.deletion import delete_jobs
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.listing import AskedJobs, InPart
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.visibility import OwnJob, Seen, VisibleJob

routes = Routes(tags=["jobs"])

MAX_STEP = 2**31 - 1
"""What every database holds."""

_UPLOAD: Final = body_with_code(JobRequest, "The code folder")


@routes.post(
    "/jobs", Permission.JOBS_WRITE, "Submit a training", 409, 413, 503, 507, status_code=201, openapi_extra=_UPLOAD
)
async def submit(request: Request, context: InContext, caller: Caller, visible: Seen, response: Response) -> NotedJob:
    """Check what was asked for and the code, keep it, and queue the job.

    Everything that is wrong is told at once, and then nothing is kept. What is not wrong, but worth knowing, is in
    `notes`.
    """
    with upload_file(context.uploads) as path:
        text = await upload.receive(request.headers.get("content-type", ""), request.stream(), path)
        asked = await parse_body_with_code(JobRequest, text, path)
        submit_job = partial(context.control.requests.submit, notices=asked.notices())
        job = await run_in_threadpool(submit_job, asked.spec(), path, caller.name, visible)
        return with_etag(without_secrets(job), response)


@routes.get("/jobs", Permission.JOBS_READ, "List jobs", 404)
def jobs(
    control: InControl,
    visible: Seen,
    which: AskedJobs,
    part: InPart,
    before: Annotated[
        str | None, Query(max_length=200, description="`next` of the page before; only where the newest come first.")
    ] = None,
) -> JobPage:
    """Return a page of the jobs that are the caller's, or shared with them; of those that they ask for."""
    if before is not None and (part.offset or part.order != NEWEST_FIRST):
        message = f"{before!r} says where the newest first go on; leave it out, or offset and sort"
        raise InvalidInput.at("before", message)
    page = control.queries.page(which, before, part.limit, visible, order=part.order, offset=part.offset)
    return replace(page, jobs=tuple(map(without_secrets, page.jobs)))


@routes.get("/jobs/rows", Permission.JOBS_READ, "List jobs as the rows of a table")
def rows(context: InContext, visible: Seen, which: AskedJobs, part: InPart) -> JobRowPage:
    """Return a part of the list of jobs, each with what a table shows of it and no more, and how many there are."""
    queries, standing = context.control.queries, context.control.standing
    last_seq = queries.last_event()
    page = queries.page(which, None, part.limit, visible, order=part.order, offset=part.offset)
    found = tuple(map(standing.row, page.jobs))
    return JobRowPage(rows=found, total=page.total, last_seq=last_seq, now=context.clock.now())


@routes.get("/jobs/{job_id}", Permission.JOBS_READ, "Show a job", 404)
def show(control: InControl, job: VisibleJob, response: Response) -> JobDetail:
    """Return a job with its tasks and its generations."""
    detail = control.queries.detail(job.id)
    with_etag(detail.job, response)
    return replace(detail, job=without_secrets(detail.job))


@routes.patch(
    "/jobs/{job_id}", Permission.JOBS_WRITE, "Change a job that waits or runs, or the tags of any", 403, 404, 409, 412
)
def change(
    control: InControl,
    job: OwnJob,
    patch: JobPatch,
    response: Response,
    caller: Caller,
    visible: Seen,
    if_match: IfMatch = None,
) -> NotedJob:
    """Change priority, minimum, maximum, queue, tags, or what it waits for; the scheduler decides anew at once.

    `notes` say so if the job cannot run with that on what is here now.
    """
    found = control.requests.change(job.id, patch, revision_of(if_match), visible, caller.name)
    return with_etag(without_secrets(found), response)


@routes.delete("/jobs/{job_id}", Permission.JOBS_WRITE, "Delete a job", 403, 404, 409, status_code=204)
def delete(context: InContext, job: OwnJob, caller: Caller) -> None:
    """Delete a job that has ended, for good: its files, series, logs and events; its id is never given again.

    Refused while other jobs wait for it or start from it, while its array has jobs that have not ended, and if it is
    the training of a model.
    """
    delete_jobs(context, caller, [job])


@routes.post("/jobs/{job_id}/stop", Permission.JOBS_WRITE, "Stop a job", 403, 404, 409)
def stop(
    control: InControl,
    job: OwnJob,
    caller: Caller,
    response: Response,
    now: Annotated[bool, Query(description="Do not wait for a step boundary; what was not saved is lost.")] = False,
) -> Job:
    """End a job at its next step boundary; at once if it holds no slots, or if `now` says so."""
    return with_etag(without_secrets(control.requests.stop(job.id, caller.name, now=now)), response)


@routes.post("/jobs/{job_id}/rerun", Permission.JOBS_WRITE, "Run a job again", 404, 409, 413, 503, 507, status_code=201)
def rerun(
    context: InContext, job: VisibleJob, changes: RerunRequest, caller: Caller, visible: Seen, response: Response
) -> RerunJob:
    """Queue a new job of the caller: the code as the job was submitted with, and what was asked for, but for changes.

    `differences` has what is otherwise. Another person's secrets are left out; `notes` names them.
    """
    if context.models.trainings.is_of_training(job.id):
        raise Conflict(f"{job.id} trains a model, which keeps its result; train the model again instead")
    again = rerun_of(job, changes, caller.name)
    made = context.control.requests.rerun(job, again.spec, caller.name, visible, again.notes, again.request.notices())
    shown = fill(RerunJob, made, differences=again.differences)
    return with_etag(without_secrets(shown), response)


@routes.post("/jobs/{job_id}/stacks", Permission.JOBS_WRITE, "Ask where a job's threads are", 403, 404, 409)
def ask_stacks(control: InControl, job: OwnJob) -> StacksAsked:
    """Ask every process of a job for the stacks of its threads; their answers come as events, or in their stderr."""
    return control.requests.ask_stacks(job.id)


@routes.get("/jobs/{job_id}/why", Permission.JOBS_READ, "Why a job has the slots it has", 404)
def why(control: InControl, job: VisibleJob) -> Why:
    """Return the newest decision about a job, and those before it."""
    return control.queries.why(job.id)


@routes.get("/jobs/{job_id}/metrics", Permission.JOBS_READ, "Series of a job", 404)
def metrics(
    control: InControl,
    job: VisibleJob,
    name: Annotated[list[str] | None, Query(description="Only these series.")] = None,
    after_step: Annotated[int, Query(ge=-1, le=MAX_STEP, description="Only points after this step.")] = -1,
) -> MetricPage:
    """Return points of a job's series in order of step, ten thousand at most."""
    return control.queries.metrics(job.id, name or [], after_step)


@routes.get("/jobs/{job_id}/chart", Permission.JOBS_READ, "Series of a job, downsampled", 404)
def chart(
    control: InControl,
    job: VisibleJob,
    name: Annotated[list[str] | None, Query(description="Only these series.")] = None,
    first_step: Annotated[int, Query(ge=0, le=MAX_STEP)] = 0,
    last_step: Annotated[int | None, Query(ge=0, le=MAX_STEP)] = None,
    max_buckets: Annotated[int, Query(ge=1, le=MAX_BUCKETS, description="Of each series.")] = 500,
) -> ChartPage:
    """Return series in buckets of equal numbers of steps, each with count, mean and extremes of its points."""
    return control.queries.chart(job.id, name or [], first_step, last_step, max_buckets)


@routes.get("/jobs/{job_id}/files", Permission.JOBS_READ, "List a job's results", 404)
def files(control: InControl, job: VisibleJob) -> ResultFiles:
    """Return the files that the archive of the results would have now."""
    return control.inquiries.files.results(job)


@routes.get(
    "/jobs/{job_id}/result",
    Permission.JOBS_READ,
    "Download a job's results",
    404,
    response_class=StreamingResponse,
    responses={200: {"content": {"application/gzip": {}}, "description": "A tar.gz."}},
)
def result(
    control: InControl,
    job: VisibleJob,
    only: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=200)]] | None,
        Query(max_length=20, description="Only files that one of these patterns fits, as in `.pliantignore`."),
    ] = None,
) -> StreamingResponse:
    """Return what the job wrote to RESULT_DIR, without checkpoints, and into its code folder, as a tar.gz made while it
    is sent.

    Files of the code folder that are new or changed lie below `work/`. Below `tensorboard/` lies an event file of the
    job's series, if it has any.
    """
    chunks = control.inquiries.files.pack(job, only=only or (), with_series=True)
    name = f'attachment; filename="{job.id}-result.tar.gz"'
    return StreamingResponse(chunks, media_type="application/gzip", headers={"Content-Disposition": name})
