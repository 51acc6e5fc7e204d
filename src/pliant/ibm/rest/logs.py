"""Logs of applications: the driver's, an executor's, and the launcher's.

There is no driver process. The driver's log is that of the tasks that led: rank 0 of every generation, or of every
start of a fixed job. The launcher's log is what happened to the job, one event a line.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from starlette.responses import StreamingResponse

from pliant.api.jobs import JobDetail
from pliant.control.kinds import KINDS
from pliant.control.kinds.fixed import Fixed
from pliant.control.requests.queries import Queries
from pliant.core.errors import NotFound
from pliant.core.job import Task
from pliant.ibm.rest.errors import TEXT
from pliant.server.log_file import find_tail, read_at, size_of

STREAMS: Final = ("stdout", "stderr")
LAUNCHER: Final = "launcherlog"
MAX_LINES: Final = 1_000_000
_PAGE: Final = 1000

Text = Iterator[bytes]


def leaders(detail: JobDetail) -> tuple[Task, ...]:
    """Return the tasks that led, in order; the first of all if none has led yet."""
    if KINDS.of(detail.job).name == Fixed.name:
        return detail.tasks[:: detail.job.max_tasks]
    tasks = {task.id: task for task in detail.tasks}
    led = dict.fromkeys(generation.members[0] for generation in detail.generations if generation.members)
    found = tuple(tasks[task_id] for task_id in led if task_id in tasks)
    return found or detail.tasks[:1]


def read_log(queries: Queries, tasks: Sequence[Task], streams: Sequence[str], last_lines: int | None = None) -> Text:
    """Yield what tasks have written to some streams; a line says whose it is if there are several.

    Args:
        last_lines: only so many lines of every stream; None: all.
    """
    several = len(tasks) * len(streams) > 1
    for task in tasks:
        for stream in streams:
            try:
                path = queries.log(task.job_id, task.id, stream)
            except NotFound:
                continue  # it has written nothing yet
            if several:
                yield f"==> {stream} of {task.id} on {task.node_id} <==\n".encode()
            offset, end = 0, size_of(path)
            if last_lines is not None:
                offset = find_tail(path, last_lines)
            while offset < end and (chunk := read_at(path, offset, end - offset)):
                offset += len(chunk)
                yield chunk


def read_launcher_log(queries: Queries, job_id: str, last_lines: int | None = None, task_id: str | None = None) -> Text:
    """Yield what happened to a job, or to one task of it, one event a line."""
    lines: list[bytes] = []
    after = 0
    while True:
        page = queries.events(after, job_id, _PAGE)
        for event in page.events:
            if task_id is not None and event.task_id != task_id:
                continue
            at = datetime.fromtimestamp(event.at, UTC)
            lines.append(f"{at:%Y-%m-%dT%H:%M:%SZ} {event.kind} {event.message}\n".encode())
        if last_lines is None:
            yield from lines
            lines.clear()
        else:
            del lines[: max(0, len(lines) - last_lines)]
        if len(page.events) < _PAGE:
            yield from lines
            return
        after = page.last


def respond(text: Text, *, file_name: str | None = None) -> StreamingResponse:
    """Return a log as an answer; as a file to keep if it has a name."""
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'} if file_name else None
    return StreamingResponse(text, media_type=TEXT, headers=headers)
