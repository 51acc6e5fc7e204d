"""What a job has on the disk: one file of its results, its code, its checkpoints; and which series it has."""

from typing import Annotated, Any, Final

from fastapi import Header, Path, Query
from fastapi.responses import StreamingResponse

from pliant.api.job_files import CheckpointFiles, SeriesEnds
from pliant.control.requests.job_files import MAX_SERIES
from pliant.core.access import Permission
from pliant.server.context import InControl
from pliant.server.file_response import OpenFileResponse, send_part
from pliant.server.routing import Routes
from pliant.server.visibility import VisibleJob

routes = Routes(tags=["jobs"])

MAX_PATH: Final = 4000
"""Characters of a file's name."""
_BYTES: Final[dict[str, Any]] = {"content": {"application/octet-stream": {}}}
_RESPONSES: Final[dict[int | str, Any]] = {
    200: {**_BYTES, "description": "The file."},
    206: {**_BYTES, "description": "The part that `Range` asks for."},
}
_CODE: Final[dict[int | str, Any]] = {200: {"content": {"application/gzip": {}}, "description": "A tar.gz."}}


@routes.get(
    "/jobs/{job_id}/files/{path:path}",
    Permission.JOBS_READ,
    "Download one file of a job's results",
    404,
    409,
    416,
    response_class=StreamingResponse,
    responses=_RESPONSES,
)
def file(
    control: InControl,
    job: VisibleJob,
    path: Annotated[str, Path(min_length=1, max_length=MAX_PATH, description="As the list of the files has it.")],
    asked: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None,
    condition: Annotated[str | None, Header(alias="If-Range", description="With it all of the file is sent.")] = None,
) -> OpenFileResponse:
    """Return a file as an attachment, as long as it is now: whole, or one range of bytes."""
    found = control.inquiries.files.open_result(job, path)
    return send_part(found, file_name=path.rpartition("/")[2], asked=asked if condition is None else None)


@routes.get(
    "/jobs/{job_id}/code",
    Permission.JOBS_READ,
    "Download a job's code",
    404,
    response_class=StreamingResponse,
    responses=_CODE,
)
def code(control: InControl, job: VisibleJob) -> OpenFileResponse:
    """Return the code as the job was submitted with it, as a tar.gz, whatever its tasks have written since."""
    found = control.inquiries.files.open_code(job)
    return OpenFileResponse(found, media_type="application/gzip", file_name=f"{job.id}-code.tar.gz")


@routes.get("/jobs/{job_id}/checkpoints", Permission.JOBS_READ, "List a job's checkpoints", 404)
def checkpoints(control: InControl, job: VisibleJob) -> CheckpointFiles:
    """Return the checkpoints that the job has on the disk, newest first."""
    return control.inquiries.files.checkpoints(job)


@routes.get("/jobs/{job_id}/series", Permission.JOBS_READ, "List a job's series", 404)
def series(
    control: InControl,
    job: VisibleJob,
    after: Annotated[str, Query(max_length=500, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_SERIES)] = MAX_SERIES,
) -> SeriesEnds:
    """Return the names of a job's series, each with its number of points, its last step and its last value."""
    return control.inquiries.files.series(job, after, limit)
