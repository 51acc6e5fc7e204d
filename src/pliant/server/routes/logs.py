"""Logs: which streams there are, and one of them, whole, in part, or while it grows."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import Depends, Query
from fastapi.responses import StreamingResponse

from pliant.api.job_views import LogFile
from pliant.api.logs import FoundLines, LogLines
from pliant.control.requests.queries import Queries
from pliant.core.access import Permission
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.job import Job
from pliant.files.untrusted.path import UntrustedPath
from pliant.server.context import InContext, InControl
from pliant.server.event_signal import EventSignal
from pliant.server.file_response import attachment
from pliant.server.log_file import find_tail, read_at, size_of
from pliant.server.log_lines import MAX_LINES, MAX_OFFSET, find_lines, lines_before, lines_from
from pliant.server.routing import Routes
from pliant.server.stream_access import ACCESS_LOST, InStreamAccess, StreamAccess
from pliant.server.visibility import VisibleJob

routes = Routes(tags=["logs"])

POLL_S = 0.2
APPEAR_S = 5.0


@dataclass(frozen=True, slots=True)
class Followed:
    """A task whose log is read, and who reads it."""

    job: Job
    task_id: str
    access: StreamAccess

    async def is_visible(self) -> bool:
        """Tell whether they still have access and see the job."""
        try:
            visible = await self.access.visible_jobs()
        except ACCESS_LOST:
            return False
        return visible is None or visible.covers(self.job.id, self.job.owner)


def _follow_log(job: VisibleJob, task_id: str, access: InStreamAccess) -> Followed:
    return Followed(job, task_id, access)


InFollowed = Annotated[Followed, Depends(_follow_log)]


@routes.get("/jobs/{job_id}/logs", Permission.JOBS_READ, "List a job's log streams", 404)
def logs(control: InControl, job: VisibleJob) -> tuple[LogFile, ...]:
    """Return the streams that the job's tasks have written, in order of the tasks."""
    return control.queries.logs(job.id)


@routes.get(
    "/jobs/{job_id}/logs/{task_id}/{stream}",
    Permission.JOBS_READ,
    "Read a log stream",
    404,
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {}}, "description": "The text."}},
)
async def read(
    context: InContext,
    followed: InFollowed,
    stream: str,
    offset: Annotated[int | None, Query(ge=0, description="Begin at this byte.")] = None,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000, description="Begin this many lines before the end.")] = None,
    follow: Annotated[bool, Query(description="Go on until the task has ended.")] = False,
    download: Annotated[bool, Query(description="As an attachment.")] = False,
) -> StreamingResponse:
    """Return the text of one stream of one task; what is followed ends when the caller may not see it any more."""
    if offset is not None and tail is not None:
        raise InvalidInput.at("tail", "offset and tail cannot both be given; leave one out")
    queries = context.control.queries
    path = await _path(queries, (followed.job.id, followed.task_id, stream), follow=follow)
    start = offset or 0
    if tail is not None:
        start = await asyncio.to_thread(find_tail, path, tail)
    chunks = _follow(queries, context.event_signal, followed, path, start) if follow else _whole(path, start)
    headers = {"X-Accel-Buffering": "no"} if follow else {}  # nginx would hold it back
    if download:
        headers["Content-Disposition"] = attachment(f"{followed.task_id}-{stream}.txt")
    return StreamingResponse(chunks, media_type="text/plain; charset=utf-8", headers=headers)


@routes.get("/jobs/{job_id}/logs/{task_id}/{stream}/lines", Permission.JOBS_READ, "Read lines of a log stream", 404)
def lines(
    control: InControl,
    job: VisibleJob,
    task_id: str,
    stream: str,
    before: Annotated[int | None, Query(ge=0, le=MAX_OFFSET, description="End before this byte.")] = None,
    offset: Annotated[int | None, Query(ge=0, le=MAX_OFFSET, description="Begin at this byte instead.")] = None,
    num: Annotated[int, Query(alias="lines", ge=1, le=MAX_LINES)] = 200,
) -> LogLines:
    """Return the last lines before a byte, or before the end; or the first lines from a byte on.

    To go back, ask again with `before` as `start` of the answer, to go on with `offset` as its `end`. An answer has
    256 KiB of a log at most.
    """
    if before is not None and offset is not None:
        raise InvalidInput.at("offset", "before and offset cannot both be given; leave one out")
    path = control.queries.log(job.id, task_id, stream)
    return lines_before(path, before, num) if offset is None else lines_from(path, offset, num)


@routes.get("/jobs/{job_id}/logs/{task_id}/{stream}/find", Permission.JOBS_READ, "Find lines of a log stream", 404)
def find(
    control: InControl,
    job: VisibleJob,
    task_id: str,
    stream: str,
    text: Annotated[str, Query(min_length=1, max_length=200, description="No sign of it stands for another.")],
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Begin at this byte, where a line begins.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> FoundLines:
    """Return lines that hold a text, whatever its capitals, in their order.

    One request looks at 8 MiB; where there is more, ask again with `offset` as `next` of the answer.
    """
    return find_lines(control.queries.log(job.id, task_id, stream), text, offset, limit)


async def _path(queries: Queries, names: tuple[str, str, str], *, follow: bool) -> UntrustedPath:
    """Return the file; who follows a task that has only just begun to write waits a little for the other streams.

    What a task will write is followed as soon as it is known, however long its process takes to begin.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + APPEAR_S
    while True:
        runs = follow and queries.task_runs(names[1])
        try:
            return await asyncio.to_thread(partial(queries.log, *names, early=runs))
        except NotFound:
            if not runs or loop.time() > deadline:
                raise
        await asyncio.sleep(POLL_S)


async def _whole(path: UntrustedPath, offset: int) -> AsyncIterator[bytes]:
    end = await asyncio.to_thread(size_of, path)
    while offset < end and (found := await asyncio.to_thread(read_at, path, offset, end - offset)).text:
        offset = found.next
        yield found.text


async def _follow(
    queries: Queries, signal: EventSignal, followed: Followed, path: UntrustedPath, offset: int
) -> AsyncIterator[bytes]:
    while not signal.closed and await followed.is_visible():
        runs = queries.task_runs(followed.task_id)
        found = await asyncio.to_thread(read_at, path, offset)
        if found.text:
            offset = found.next
            yield found.text
        elif not runs:
            return
        else:
            await asyncio.sleep(POLL_S)
