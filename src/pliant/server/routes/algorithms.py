"""Algorithms of people's own, which choose the values of searches: install, list, show, change, remove."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from pliant.api.algorithms import AlgorithmPage, AlgorithmPatch, AlgorithmRequest, AlgorithmView, algorithm_view
from pliant.catalog.algorithms.use_cases import AlgorithmRequests
from pliant.core.access import Permission
from pliant.core.algorithm import AlgorithmSettings
from pliant.core.errors import Unavailable
from pliant.core.input import values_of
from pliant.server.body import parse_body, parse_body_with_code, upload_file
from pliant.server.context import InContext
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.upload import UploadForm, receive_form

routes = Routes(tags=["algorithms"])

Name = Annotated[str, Path(description="Of an algorithm.", max_length=200, pattern=r"^[^\x00]*$")]
After = Annotated[str, Query(description="`next` of the page before.", max_length=200, pattern=r"^[^\x00]*$")]

_NEW: Final = UploadForm(file="code", fields=("settings",), required=("settings", "code"))
_VERSION: Final = UploadForm(file="code", fields=("settings",), required=("code",))


def algorithms_of(context: InContext) -> AlgorithmRequests:
    """Return the use cases.

    Raises:
        Unavailable: this server has none.
    """
    if context.algorithms is None:
        raise Unavailable("this server takes no algorithms; start one that does")
    return context.algorithms


InAlgorithms = Annotated[AlgorithmRequests, Depends(algorithms_of)]


def _describe_form(settings: type[BaseModel], form: UploadForm) -> dict[str, Any]:
    code = {
        "type": "string",
        "format": "binary",
        "description": "The folder as a tar, tar.gz or zip; optimizer.py or sampler.py at its top; 64 MiB at most.",
    }
    schema = {
        "type": "object",
        "required": list(form.required),
        "additionalProperties": False,
        "properties": {"settings": settings, "code": code},
    }
    encoding = {"settings": {"contentType": "application/json"}, "code": {"contentType": "application/gzip"}}
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema, "encoding": encoding}}}
    }


@routes.get("/algorithms", Permission.JOBS_READ, "List algorithms", 503)
def algorithms(
    requests: InAlgorithms, caller: Caller, after: After = "", limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> AlgorithmPage:
    """Return the algorithms that the caller may use for searches, in the order of their names."""
    page, following = requests.page(caller, after, limit)
    return AlgorithmPage(algorithms=tuple(map(algorithm_view, page)), next=following)


@routes.post(
    "/algorithms",
    Permission.JOBS_WRITE,
    "Install an algorithm",
    409,
    413,
    503,
    status_code=201,
    openapi_extra=_describe_form(AlgorithmRequest, _NEW),
)
async def install(
    request: Request, context: InContext, requests: InAlgorithms, caller: Caller, response: Response
) -> AlgorithmView:
    """Load the code in a process of the caller's, and keep it under the name if it can be used."""
    with upload_file(context.uploads) as path:
        parts = await receive_form(request.headers.get("content-type", ""), request.stream(), path, _NEW)
        body = await parse_body_with_code(AlgorithmRequest, parts["settings"], path)
        kept = await run_in_threadpool(requests.install, caller, body.name, body.settings(), path)
    return with_etag(algorithm_view(kept), response)


@routes.get("/algorithms/{name}", Permission.JOBS_READ, "Show an algorithm", 404, 503)
def show(requests: InAlgorithms, caller: Caller, name: Name, response: Response) -> AlgorithmView:
    """Return an algorithm that the caller may use."""
    return with_etag(algorithm_view(requests.get(caller, name)), response)


@routes.put(
    "/algorithms/{name}",
    Permission.JOBS_WRITE,
    "Install a new version of an algorithm",
    403,
    404,
    412,
    413,
    503,
    openapi_extra=_describe_form(AlgorithmPatch, _VERSION),
)
async def put(
    request: Request,
    context: InContext,
    requests: InAlgorithms,
    caller: Caller,
    name: Name,
    response: Response,
    if_match: IfMatch = None,
) -> AlgorithmView:
    """Give an algorithm of one's own other code, and the settings that are sent; searches keep to what they began with.

    What is left out of the part `settings`, or all of it, stays as it is.
    """
    with upload_file(context.uploads) as path:
        parts = await receive_form(request.headers.get("content-type", ""), request.stream(), path, _VERSION)
        changes = parse_body(AlgorithmPatch, parts["settings"]).changes() if "settings" in parts else {}
        before = await run_in_threadpool(requests.get, caller, name)
        settings = AlgorithmSettings(**values_of(AlgorithmSettings, before.noun))
        revision = revision_of(if_match) if if_match is not None else before.revision
        change = partial(requests.install, replace_it=True, revision=revision)
        kept = await run_in_threadpool(change, caller, name, replace(settings, **changes), path)
    return with_etag(algorithm_view(kept), response)


@routes.patch("/algorithms/{name}", Permission.JOBS_WRITE, "Change an algorithm", 403, 404, 412, 503)
def change(
    requests: InAlgorithms,
    caller: Caller,
    name: Name,
    patch: AlgorithmPatch,
    response: Response,
    if_match: IfMatch = None,
) -> AlgorithmView:
    """Change what is said of it, and who may use it; its code and its environment stay."""
    kept = requests.change(caller, name, patch.changes(), revision_of(if_match))
    return with_etag(algorithm_view(kept), response)


@routes.delete(
    "/algorithms/{name}", Permission.JOBS_WRITE, "Remove an algorithm", 403, 404, 409, 412, 503, status_code=204
)
def remove(requests: InAlgorithms, caller: Caller, name: Name, if_match: IfMatch = None) -> None:
    """Forget an algorithm and its code; refused while a search uses it that runs or may be resumed."""
    requests.remove(caller, name, revision_of(if_match))
