"""Execs: submit, list, show, stop, delete, logs and results, as IBM's clients call them."""

import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import IO, Annotated, Any, Final, Literal

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from pliant.core.access import Permission, Principal
from pliant.core.errors import Conflict, InvalidInput
from pliant.files.space import translate_disk_errors
from pliant.ibm.rest import logs
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, JSON
from pliant.ibm.rest.lookup import Exec, find_exec, find_own_exec, list_execs
from pliant.ibm.rest.routes.scheduler import DEFAULT_LENGTH
from pliant.ibm.rest.routes.submission import SubmissionForm, submit
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.execution import Execution
from pliant.ibm.rest.translate.hardware import Submission, read_submission
from pliant.ibm.rest.translate.listing import ListOptions, sort_and_cut
from pliant.ibm.rest.translate.shapes import ServerInfo, exec_json
from pliant.ibm.rest.translate.states import parse_states, state_of
from pliant.server import upload
from pliant.server.body import upload_file
from pliant.server.context import Context, InContext
from pliant.server.deletion import delete_jobs

routes = ibm_routes(DEEP_LEARNING)

FORM: Final = upload.UploadForm(file="file", fields=("data", "args", "sigName"), required=(), only_first=True)
STREAMS: Final = {"outlog": ("stdout",), "errlog": ("stderr",), "outerrlog": ("stdout", "stderr")}
_CHUNK: Final = 1 << 16
_OPTIMIZER_STATES: Final = "*_optimizer_state.pth"
"""What FabricModel writes beside the model after every epoch."""


def _json(context: Context, found: Exec) -> dict[str, Any]:
    settings = context.control.settings
    server = ServerInfo(url=settings.url, code=str(settings.folders(found.job.id).code))
    return exec_json(found.execution, found.job, server)


@routes.post("/execs", Permission.JOBS_WRITE)
@routes.post("/execs/", Permission.JOBS_WRITE)
async def create(
    request: Request,
    context: InContext,
    caller: Caller,
    args: str | None = None,
    sigName: str | None = None,
) -> dict[str, Any]:
    """Start a program; what is asked for and has no effect is told in `notes`, and as events of the job."""
    with upload_file(context.uploads) as file:
        content_type = request.headers.get("content-type", "")
        fields = {}
        if content_type:
            fields = dict(await upload.receive_form(content_type, request.stream(), file, FORM))
        given = {field: value.decode("utf-8", "replace") for field, value in fields.items() if field != FORM.file}
        submission = read_submission(given["data"]) if "data" in given else Submission()
        line = next((text for text in (args, given.get("args"), submission.args) if text is not None), None)
        if line is None:
            raise InvalidInput.at("args", "it is missing; send --exec-start FRAMEWORK and the rest")
        form = SubmissionForm(
            args=line,
            instance_group=sigName or given.get("sigName"),
            submission=submission,
            uploads=(file,) if FORM.file in fields else (),
        )
        found = await run_in_threadpool(submit, context, caller, form)
    return _json(context, found)


@routes.get("/execs", Permission.JOBS_READ)
@routes.get("/execs/", Permission.JOBS_READ)
def index(
    context: InContext,
    caller: Caller,
    limit: Annotated[int, Query(ge=0)] = DEFAULT_LENGTH,
    state: str | None = None,
    sort_by: str | None = None,
) -> list[dict[str, Any]]:
    """List execs, newest first; `sort_by` is a field, or `FIELD:desc`."""
    wanted = parse_states(state)
    found = [one for one in list_execs(context, caller) if wanted is None or state_of(one.job) in wanted]
    if sort_by is None:
        return [_json(context, one) for one in found[:limit]]
    return sort_and_cut([_json(context, one) for one in found], ListOptions.from_sort_by(sort_by, length=limit))


@routes.delete("/execs", Permission.JOBS_WRITE)
@routes.delete("/execs/", Permission.JOBS_WRITE)
def delete_all(context: InContext, caller: Caller) -> dict[str, Any]:
    """Delete all execs of who asks, stopping those that run; nobody else's, whatever their role."""
    gone = [one for one in list_execs(context, caller) if one.job.owner == caller.name]
    for one in gone:
        _forget(context, caller, one)
    return {"message": f"{len(gone)} execs are deleted", "deleted": len(gone)}


def _forget(context: Context, caller: Principal, found: Exec) -> None:
    """Forget an exec; its job is stopped if it runs, and deleted if it has ended.

    Where it cannot be deleted, since it runs to its next step boundary or is needed, it stays among Pliant's jobs.
    """
    job = found.job
    if not job.ended:
        with suppress(Conflict):  # it has ended meanwhile
            job = context.control.requests.stop(job.id, caller.name)
    try:
        delete_jobs(context, caller, [job])
    except Conflict:
        context.registry.remove(Execution, found.execution.name)


@routes.get("/execs/{exec_id}", Permission.JOBS_READ)
def show(context: InContext, caller: Caller, exec_id: str) -> dict[str, Any]:
    """Show an exec."""
    return _json(context, find_exec(context, caller, exec_id))


@routes.delete("/execs/{exec_id}", Permission.JOBS_WRITE)
def delete(context: InContext, caller: Caller, exec_id: str) -> dict[str, Any]:
    """Delete an exec; one that runs is stopped, and forgotten."""
    _forget(context, caller, find_own_exec(context, caller, exec_id))
    return {"message": f"{exec_id} is deleted", "id": exec_id}


@routes.post("/execs/{exec_id}/stop", Permission.JOBS_WRITE)
def stop(context: InContext, caller: Caller, exec_id: str) -> dict[str, Any]:
    """Stop an exec at its next step boundary; one that has ended is 400."""
    found = find_own_exec(context, caller, exec_id)
    return _json(context, Exec(found.execution, context.control.requests.stop(found.job.id, caller.name)))


@routes.get("/execs/{exec_id}/log", Permission.JOBS_READ, response_class=StreamingResponse)
def log(
    request: Request,
    context: InContext,
    caller: Caller,
    exec_id: str,
    logType: Literal["outlog", "errlog", "outerrlog"] | None = None,
    lastlines: Annotated[int | None, Query(ge=0, le=logs.MAX_LINES)] = None,
) -> StreamingResponse:
    """Return what the tasks that led have printed.

    Who takes JSON gets it as one text in JSON, as IBM's clients and notebooks read it, and unless they name a log, the
    lines of `elog` about training batches alone.
    """
    queries = context.control.queries
    leaders = logs.leaders(queries.detail(find_exec(context, caller, exec_id).job.id))
    as_json = JSON in request.headers.get("accept", "")
    if as_json and logType is None and lastlines is None:
        text = logs.read_training_log(queries, leaders)
    else:
        text = logs.read_log(queries, leaders, STREAMS[logType or "outerrlog"], lastlines)
    return logs.respond(text, as_json=as_json)


@routes.get("/execs/{exec_id}/result", Permission.JOBS_READ, response_class=StreamingResponse)
def result(context: InContext, caller: Caller, exec_id: str, optimizerStates: bool = False) -> StreamingResponse:
    """Return a zip of what the exec has left: its model, its logs, what it wrote, but no checkpoints.

    The states of the optimizers after every epoch, often twice as large as the models, are in it only if asked for.
    """
    job = find_exec(context, caller, exec_id).job
    with translate_disk_errors(context.uploads), ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile(dir=context.uploads))
        but = () if optimizerStates else (_OPTIMIZER_STATES,)
        _zip(context.control.inquiries.files.pack(job, but=but), file)
        size = file.tell()
        file.seek(0)
        stack.pop_all()
    headers = {"Content-Disposition": f"attachment;filename={exec_id}.zip;size={size}", "Content-Length": str(size)}
    return StreamingResponse(_read(file), media_type="application/zip", headers=headers)


def _read(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk


class _Chunks:
    """A tar.gz that comes in pieces, to be read as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def read(self, size: int) -> bytes:
        while len(self._left) < size and (chunk := next(self._chunks, b"")):
            self._left += chunk
        data, self._left = self._left[:size], self._left[size:]
        return data


def _zip(packed: Iterator[bytes], out: IO[bytes]) -> None:
    """Write the files of a tar.gz as a zip."""
    with (
        tarfile.open(fileobj=_Chunks(packed), mode="r|gz") as tar,  # type: ignore[call-overload]
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for member in tar:
            source = tar.extractfile(member)
            if source is None:
                continue
            name = member.name.encode("utf-8", "replace").decode()
            with source, archive.open(name, "w", force_zip64=True) as target:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
