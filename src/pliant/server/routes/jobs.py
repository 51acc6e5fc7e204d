"""Jobs: submit, list, show, change, stop, why, series, results."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from pliant.core.errors import InvalidInput, Problem, Unavailable
from pliant.core.job import Job
from pliant.core.lifecycle import JobState
from pliant.server import upload
from pliant.server.auth import OWNER
from pliant.server.context import InContext, InControl
from pliant.server.problems import responses
from pliant.wire.api import JobDetail, JobPage, JobPatch, JobRequest, MetricPage, Why
from pliant.wire.link import problems_of

router = APIRouter(tags=["jobs"])

_UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["job", "code"],
                    "additionalProperties": False,
                    "properties": {
                        "job": JobRequest.model_json_schema(),
                        "code": {
                            "type": "string",
                            "format": "binary",
                            "description": "The code folder as a tar.gz: files and folders only, 64 MiB at most.",
                        },
                    },
                },
                "encoding": {"job": {"contentType": "application/json"}, "code": {"contentType": "application/gzip"}},
            }
        },
    }
}


@router.post(
    "/jobs",
    status_code=201,
    summary="Submit a training",
    responses=responses(409, 413, 503),
    openapi_extra=_UPLOAD,
)
async def submit(request: Request, context: InContext) -> Job:
    """Check what was asked for and the code, keep it, and queue the job.

    Everything that is wrong is told at once, and then nothing is kept.
    """
    with _upload_file(context.uploads) as path:
        text = await upload.receive(request.headers.get("content-type", ""), request.stream(), path)
        try:
            spec = JobRequest.model_validate_json(text).spec()
        except ValidationError as error:
            raise InvalidInput(*problems_of(error)) from error
        return await run_in_threadpool(context.control.submit, spec, path, OWNER)


@contextmanager
def _upload_file(folder: Path) -> Iterator[Path]:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".tar.gz") as file:
            yield Path(file.name)
    except OSError as error:
        raise Unavailable(f"the upload cannot be kept in {folder}: {error.strerror}") from error


@router.get("/jobs", summary="List jobs, newest first", responses=responses(404))
def jobs(
    control: InControl,
    state: Annotated[list[JobState] | None, Query(description="Only jobs in these states.")] = None,
    before: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JobPage:
    """Return a page of jobs."""
    return control.queries.page(state or [], before, limit)


@router.get("/jobs/{job_id}", summary="Show a job", responses=responses(404))
def show(control: InControl, job_id: str) -> JobDetail:
    """Return a job with its tasks and its generations."""
    return control.queries.detail(job_id)


@router.patch("/jobs/{job_id}", summary="Change a job that waits or runs", responses=responses(404, 409))
def change(
    control: InControl,
    job_id: str,
    patch: JobPatch,
    if_match: Annotated[str | None, Header(description="Refuse unless the job is at this revision.")] = None,
) -> Job:
    """Change priority, minimum or maximum; the scheduler decides anew at once."""
    return control.change(job_id, patch, _revision(if_match))


def _revision(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    text = if_match.strip().strip('"')
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(Problem(field="If-Match", message=f"{if_match!r} is no revision; send its number"))
    return int(text)


@router.post("/jobs/{job_id}/stop", summary="Stop a job", responses=responses(404, 409))
def stop(control: InControl, job_id: str) -> Job:
    """End a job at its next step boundary; at once if it holds no slots."""
    return control.stop(job_id, OWNER)


@router.get("/jobs/{job_id}/why", summary="Why a job has the slots it has", responses=responses(404))
def why(control: InControl, job_id: str) -> Why:
    """Return the newest decision about a job, and those before it."""
    return control.queries.why(job_id)


@router.get("/jobs/{job_id}/metrics", summary="Series of a job", responses=responses(404))
def metrics(
    control: InControl,
    job_id: str,
    name: Annotated[list[str] | None, Query(description="Only these series.")] = None,
    after_step: Annotated[int, Query(ge=-1, description="Only points after this step.")] = -1,
) -> MetricPage:
    """Return points of a job's series in order of step, ten thousand at most."""
    return control.queries.metrics(job_id, name or [], after_step)


@router.get(
    "/jobs/{job_id}/result",
    summary="Download a job's results",
    response_class=StreamingResponse,
    responses={**responses(404), 200: {"content": {"application/gzip": {}}, "description": "A tar.gz."}},
)
def result(control: InControl, job_id: str) -> StreamingResponse:
    """Return what the job wrote to RESULT_DIR, without its checkpoints, as a tar.gz made while it is sent."""
    chunks = control.queries.result(job_id)
    name = f'attachment; filename="{job_id}-result.tar.gz"'
    return StreamingResponse(chunks, media_type="application/gzip", headers={"Content-Disposition": name})
