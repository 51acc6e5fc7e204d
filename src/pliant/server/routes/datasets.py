"""Data sets: add, list, show, change, stop, remove; and uploads that can be taken up again."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from pliant.api.datasets import (
    OFFSET_HEADER,
    DatasetPage,
    DatasetPatch,
    DatasetRequest,
    PreviewView,
    UploadPage,
    UploadRequest,
    preview_view,
)
from pliant.catalog.datasets.uploads import WrongOffset
from pliant.catalog.datasets.use_cases import DatasetCatalog
from pliant.core.access import Permission, Principal
from pliant.core.dataset import Dataset, DatasetState, Upload
from pliant.core.errors import InvalidInput, PliantError, Unavailable
from pliant.core.preview import MAX_ROWS
from pliant.files.digest import read_content_digest
from pliant.server.context import InContext
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authorisation import Caller
from pliant.server.middleware.problems import problem_response
from pliant.server.routing import Routes

routes = Routes(tags=["data"])

_PIECE: Final = 1 << 20
"""So much is gathered before it is written."""
_MAX_OFFSET: Final = 2**53
_CHUNK_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@routes.get("/datasets", Permission.DATA_READ, "List data sets")
def datasets(
    context: InContext,
    caller: Caller,
    state: Annotated[list[DatasetState] | None, Query(description="Only data sets in these states.")] = None,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$", description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> DatasetPage:
    """Return those that are the caller's, or shared with them, in the order of their names."""
    page, following = context.datasets.list(caller, states=state or (), after=after, limit=limit)
    return DatasetPage(datasets=page, next=following)


@routes.post("/datasets", Permission.DATA_WRITE, "Import a data set", 404, 409, 413, 503, 507, status_code=201)
def add(context: InContext, caller: Caller, request: DatasetRequest, response: Response) -> Dataset:
    """Begin to import a data set; it is in the state `importing` until all of it is there."""
    return with_etag(context.datasets.add(request.noun(caller.name), caller), response)


@routes.get("/datasets/{name}", Permission.DATA_READ, "Show a data set", 404)
def show(context: InContext, caller: Caller, name: str, response: Response) -> Dataset:
    """Return a data set; while it is imported, with how far that is."""
    return with_etag(context.datasets.get(name, caller), response)


@routes.get("/datasets/{name}/preview", Permission.DATA_READ, "Look at a data set", 404)
def preview(
    context: InContext,
    caller: Caller,
    name: str,
    split: Annotated[str | None, Query(max_length=20, description="The part; the first, if left out.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_ROWS, description="Pictures, or rows.")] = 24,
) -> PreviewView:
    """Return small pictures of a data set, or the first rows of its tables, as they were made when it was imported."""
    return preview_view(context.datasets.preview(name, caller), split, limit)


@routes.patch("/datasets/{name}", Permission.DATA_WRITE, "Describe or share a data set", 403, 404, 412)
def change(
    context: InContext,
    caller: Caller,
    name: str,
    patch: DatasetPatch,
    response: Response,
    if_match: IfMatch = None,
) -> Dataset:
    """Change what is said of a data set, or who may use it."""
    changed = context.datasets.change(name, caller, patch.changes(), revision=revision_of(if_match))
    return with_etag(changed, response)


@routes.delete("/datasets/{name}", Permission.DATA_WRITE, "Remove a data set", 403, 404, 409, 412, 503, status_code=204)
def remove(context: InContext, caller: Caller, name: str, if_match: IfMatch = None) -> None:
    """Forget a data set and remove its files; one that jobs use stays."""
    context.datasets.remove(name, caller, revision=revision_of(if_match))


@routes.post("/datasets/{name}/stop", Permission.DATA_WRITE, "Stop an import", 403, 404, 409)
def stop(context: InContext, caller: Caller, name: str, response: Response) -> Dataset:
    """End an import; nothing of it is left."""
    return with_etag(context.datasets.stop(name, caller), response)


@routes.get("/uploads", Permission.DATA_WRITE, "List uploads")
def uploads(context: InContext, caller: Caller) -> UploadPage:
    """Return the uploads that the caller began."""
    there = context.datasets.uploads
    return UploadPage(uploads=there.list(caller), max_chunk_bytes=there.limits.max_chunk_bytes)


@routes.post("/uploads", Permission.DATA_WRITE, "Begin an upload", 409, 413, 503, 507, status_code=201)
def begin(context: InContext, caller: Caller, request: UploadRequest, response: Response) -> Upload:
    """Announce how many bytes shall come; they are sent in chunks, each from where the one before it ended."""
    upload = context.datasets.uploads.create(
        caller.name, request.num_bytes, sha256=request.sha256 or "", fingerprint=request.fingerprint
    )
    return _with_offset(upload, response)


@routes.get("/uploads/{upload_id}", Permission.DATA_WRITE, "Show an upload", 404)
def show_upload(context: InContext, caller: Caller, upload_id: str, response: Response) -> Upload:
    """Return where the next chunk begins: all before that is safe."""
    return _with_offset(context.datasets.uploads.get(upload_id, caller), response)


@routes.head("/uploads/{upload_id}", Permission.DATA_WRITE, "Where the next chunk begins", 404, response_class=Response)
def look(context: InContext, caller: Caller, upload_id: str) -> Response:
    """Tell it in the header `Upload-Offset`."""
    upload = context.datasets.uploads.get(upload_id, caller)
    return Response(headers={OFFSET_HEADER: str(upload.offset), "Cache-Control": "no-store"})


@routes.put(
    "/uploads/{upload_id}", Permission.DATA_WRITE, "Send a chunk", 404, 409, 413, 503, 507, openapi_extra=_CHUNK_BODY
)
async def put_chunk(
    request: Request,
    context: InContext,
    caller: Caller,
    response: Response,
    upload_id: str,
    offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="Where the chunk begins.")],
    content_digest: Annotated[
        str | None, Header(description="RFC 9530: `sha-256=:BASE64:` of the chunk; it is checked if given.")
    ] = None,
) -> Any:
    """Write a chunk. It counts as a whole or not at all; the answer says where the next one begins.

    A chunk that begins elsewhere is refused with 409; `Upload-Offset` says where to go on.
    """
    expected = _expected_digest(content_digest)
    try:
        return _with_offset(await _receive(request, context.datasets, caller, upload_id, offset, expected), response)
    except WrongOffset as error:
        await _drain(request, context.datasets.uploads.limits.max_chunk_bytes)
        refused = problem_response(error)
        refused.headers[OFFSET_HEADER] = str(error.offset)
        return refused
    except PliantError:
        await _drain(request, context.datasets.uploads.limits.max_chunk_bytes)
        raise
    except ClientDisconnect as error:
        raise Unavailable(f"the connection was cut in the middle of a chunk; go on at {offset}") from error


@routes.delete("/uploads/{upload_id}", Permission.DATA_WRITE, "Give an upload up", 404, 409, status_code=204)
def give_up(context: InContext, caller: Caller, upload_id: str) -> None:
    """Remove what has come so far."""
    context.datasets.uploads.remove(upload_id, caller)


async def _receive(
    request: Request, datasets: DatasetCatalog, caller: Principal, upload_id: str, offset: int, expected: bytes | None
) -> Upload:
    uploads = datasets.uploads
    chunk = await run_in_threadpool(uploads.chunk, upload_id, caller, offset)
    try:
        async for piece in _pieces(request):
            await run_in_threadpool(chunk.write, piece)
        await run_in_threadpool(chunk.check, expected)
        return await run_in_threadpool(uploads.commit, chunk, caller)
    finally:
        chunk.close()


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """Yield the body in pieces that are worth a write."""
    gathered = bytearray()
    async for data in request.stream():
        gathered += data
        if len(gathered) >= _PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


async def _drain(request: Request, most: int) -> None:
    """Read on and throw away, so that the sender gets to read the answer."""
    num_bytes = 0
    try:
        async for data in request.stream():
            num_bytes += len(data)
            if num_bytes > most:
                return
    except (ClientDisconnect, RuntimeError):
        return


def _expected_digest(content_digest: str | None) -> bytes | None:
    if content_digest is None:
        return None
    expected = read_content_digest(content_digest)
    if expected is None:
        message = f"{content_digest!r:.120} has no SHA-256; send `sha-256=:BASE64:`, or leave it out"
        raise InvalidInput.at("Content-Digest", message)
    return expected


def _with_offset(upload: Upload, response: Response) -> Upload:
    response.headers[OFFSET_HEADER] = str(upload.offset)
    response.headers["Cache-Control"] = "no-store"
    return upload
