"""Logs: which streams there are, and one of them, whole, in part, or while it grows."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from pliant.control.queries import Queries
from pliant.core.errors import InvalidInput, NotFound, Problem
from pliant.server.bell import Bell
from pliant.server.context import InContext, InControl
from pliant.server.problems import responses
from pliant.server.tail import offset_of_tail, read_at, size_of
from pliant.wire.api import LogFile

router = APIRouter(tags=["logs"])

POLL_S = 0.2
APPEAR_S = 5.0


@router.get("/jobs/{job_id}/logs", summary="List a job's log streams", responses=responses(404))
def logs(control: InControl, job_id: str) -> tuple[LogFile, ...]:
    """Return the streams that the job's tasks have written, in order of the tasks."""
    return control.queries.logs(job_id)


@router.get(
    "/jobs/{job_id}/logs/{task_id}/{stream}",
    summary="Read a log stream",
    response_class=StreamingResponse,
    responses={**responses(404), 200: {"content": {"text/plain": {}}, "description": "The text."}},
)
async def read(
    context: InContext,
    job_id: str,
    task_id: str,
    stream: str,
    offset: Annotated[int | None, Query(ge=0, description="Begin at this byte.")] = None,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000, description="Begin this many lines before the end.")] = None,
    follow: Annotated[bool, Query(description="Go on until the task has ended.")] = False,
) -> StreamingResponse:
    """Return the text of one stream of one task."""
    if offset is not None and tail is not None:
        raise InvalidInput(Problem(field="tail", message="offset and tail cannot both be given; leave one out"))
    queries = context.control.queries
    path = await _path(queries, (job_id, task_id, stream), follow=follow)
    start = offset or 0
    if tail is not None:
        start = await asyncio.to_thread(offset_of_tail, path, tail)
    chunks = _follow(queries, context.bell, task_id, path, start) if follow else _whole(path, start)
    return StreamingResponse(chunks, media_type="text/plain; charset=utf-8")


async def _path(queries: Queries, names: tuple[str, str, str], *, follow: bool) -> Path:
    """Return the file; who follows a task that has only just begun waits a little for it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + APPEAR_S
    while True:
        try:
            return await asyncio.to_thread(queries.log, *names)
        except NotFound:
            if not follow or not queries.task_runs(names[1]) or loop.time() > deadline:
                raise
        await asyncio.sleep(POLL_S)


async def _whole(path: Path, offset: int) -> AsyncIterator[bytes]:
    end = await asyncio.to_thread(size_of, path)
    while offset < end and (chunk := await asyncio.to_thread(read_at, path, offset, end - offset)):
        offset += len(chunk)
        yield chunk


async def _follow(queries: Queries, bell: Bell, task_id: str, path: Path, offset: int) -> AsyncIterator[bytes]:
    while not bell.closed:
        runs = queries.task_runs(task_id)
        chunk = await asyncio.to_thread(read_at, path, offset)
        if chunk:
            offset += len(chunk)
            yield chunk
        elif not runs:
            return
        else:
            await asyncio.sleep(POLL_S)
