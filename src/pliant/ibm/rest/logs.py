"""Logs of applications: the driver's, an executor's, and the launcher's; as text, or as one text in JSON.

There is no driver process. The driver's log is that of the tasks that led: rank 0 of every generation, or of every
start of a fixed job. The launcher's log is what happened to the job, one event a line. The log of the training is what
`elog` has written to the driver's: its lines stand between those that the process printed.
"""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from starlette.responses import StreamingResponse

from pliant.api.job_views import JobDetail
from pliant.control.kinds import KINDS
from pliant.control.kinds.fixed import Fixed
from pliant.control.requests.queries import Queries
from pliant.core.errors import NotFound
from pliant.core.event import FOR_PROGRAMS
from pliant.core.job import JobId, Task
from pliant.core.ports import EventFilter
from pliant.ibm.rest.errors import JSON, TEXT
from pliant.ibm.rest.wording import reword
from pliant.server.log_file import find_tail, read_whole

STREAMS: Final = ("stdout", "stderr")
LAUNCHER: Final = "launcherlog"
MAX_LINES: Final = 1_000_000
_PAGE: Final = 1000
_TRAIN_LINE: Final = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] Train,\t.{1,4000}")
_MAX_LINE_BYTES: Final = 8000
"""So much is kept of a line that has no end yet; one of `elog` is shorter."""

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
                yield f"==> {stream} of {reword(task.id)} on {task.node_id} <==\n".encode()
            yield from read_whole(path, 0 if last_lines is None else find_tail(path, last_lines))


def read_training_log(queries: Queries, tasks: Sequence[Task]) -> Text:
    """Yield the lines that `elog` has written of training batches; all that the tasks wrote if there are none."""
    found = False
    for lines in train_lines(read_log(queries, tasks, STREAMS[:1])):
        found = found or bool(lines)
        yield lines
    if not found:
        yield from read_log(queries, tasks, STREAMS)


def train_lines(text: Text) -> Text:
    """Yield, for every piece of a log, those of its lines that are of training batches; a piece may have none."""
    begun = b""
    for piece in text:
        *lines, last = (begun + piece).split(b"\n")
        begun = last[:_MAX_LINE_BYTES]
        yield b"".join(line + b"\n" for line in lines if _TRAIN_LINE.fullmatch(line))


def read_launcher_log(queries: Queries, job_id: str, last_lines: int | None = None, task_id: str | None = None) -> Text:
    """Yield what happened to a job, or to one task of it, one event a line."""
    lines: list[bytes] = []
    after = 0
    while True:
        page = queries.events(EventFilter(after=after, job_id=JobId(job_id), limit=_PAGE))
        for event in page.events:
            if event.kind in FOR_PROGRAMS:
                continue
            if task_id is not None and event.task_id != task_id:
                continue
            at = datetime.fromtimestamp(event.at, UTC)
            lines.append(f"{at:%Y-%m-%dT%H:%M:%SZ} {event.kind} {reword(event.message)}\n".encode())
        if last_lines is None:
            yield from lines
            lines.clear()
        else:
            del lines[: max(0, len(lines) - last_lines)]
        if len(page.events) < _PAGE:
            yield from lines
            return
        after = page.last


def respond(text: Text, *, file_name: str | None = None, as_json: bool = False) -> StreamingResponse:
    """Return a log as an answer: as text, as a file to keep if it has a name, or as one text in JSON."""
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'} if file_name else None
    if as_json:
        return StreamingResponse(quote(text), media_type=JSON, headers=headers)
    return StreamingResponse(text, media_type=TEXT, headers=headers)


def quote(text: Text) -> Text:
    """Yield a log as one text in JSON, piece by piece; what is no UTF-8 is replaced."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    yield b'"'
    for piece in text:
        yield json.dumps(decoder.decode(piece))[1:-1].encode()
    yield json.dumps(decoder.decode(b"", final=True))[1:-1].encode() + b'"'
