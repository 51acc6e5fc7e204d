"""Endpoints: deploy, list, show, change, start, stop, roll back, remove. Requests to their models go to a gateway."""

from pathlib import Path as FilePath
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from pliant.api.endpoints import (
    DeployRequest,
    EndpointAddress,
    EndpointPage,
    EndpointPatch,
    EndpointView,
    RollbackRequest,
    TrafficRequest,
    address_of,
    require_endpoint_name,
)
from pliant.api.job_views import MetricPage
from pliant.core.access import Permission
from pliant.core.errors import InvalidInput, NotFound, Unavailable
from pliant.server.body import parse_body, read_small, upload_file
from pliant.server.context import InContext, InControl
from pliant.server.endpoint_requests import EndpointRequests
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authorisation import Caller
from pliant.server.routing import Routes
from pliant.server.upload import UploadForm, receive_form
from pliant.server.visibility import Seen

MAX_MODEL_BYTES: Final = 16 << 30
"""Of a packed folder: it has the weights."""

routes = Routes(tags=["endpoints"])

Name = Annotated[str, Path(description="Of an endpoint.", max_length=200, pattern=r"^[^\x00]*$")]
After = Annotated[str, Query(description="`next` of the page before.", max_length=200, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Query(ge=1, le=1000)]

_FORM: Final = UploadForm(file="code", fields=("version",), required=("version", "code"), max_bytes=MAX_MODEL_BYTES)
_ARCHIVE: Final = {
    "type": "string",
    "format": "binary",
    "description": "The folder as a tar.gz, tar or zip: files and folders only, 16 GiB at most.",
}
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": DeployRequest},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["version", "code"],
                    "additionalProperties": False,
                    "properties": {"version": DeployRequest, "code": _ARCHIVE},
                },
                "encoding": {"version": {"contentType": "application/json"}},
            },
        },
    }
}


def endpoints_of(context: InContext) -> EndpointRequests:
    """Return the use cases.

    Raises:
        Unavailable: this server has none.
    """
    if context.endpoints is None:
        raise Unavailable("this server serves no endpoints; start one that does")
    return context.endpoints


InEndpoints = Annotated[EndpointRequests, Depends(endpoints_of)]


@routes.get("/endpoints", Permission.ENDPOINTS_READ, "List endpoints", 503)
def endpoints(requests: InEndpoints, caller: Caller, after: After = "", limit: Limit = 100) -> EndpointPage:
    """Return endpoints in the order of their names: one's own, and those that are shared with one."""
    return requests.page(caller, after, limit)


@routes.get("/endpoints/{name}", Permission.ENDPOINTS_READ, "Show an endpoint", 404, 503)
def show(requests: InEndpoints, caller: Caller, name: Name, response: Response) -> EndpointView:
    """Return an endpoint with its versions, and what of them runs."""
    return with_etag(requests.get(caller, name), response)


@routes.get("/endpoints/{name}/metrics", Permission.ENDPOINTS_READ, "The load of an endpoint over time", 404, 503)
def metrics(
    requests: InEndpoints,
    control: InControl,
    caller: Caller,
    name: Name,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Default: the one that serves.")] = None,
    series: Annotated[list[str] | None, Query(description="Only these series.")] = None,
    after_step: Annotated[int, Query(ge=-1, le=2**31 - 1, description="Only points after this step.")] = -1,
) -> MetricPage:
    """Return points of a version's load in order of step, ten thousand at most; also to whom it is only shared with.

    A step is a second of the age of the version's newest job, whose series these are.
    """
    view = requests.get(caller, name)
    number = version if version is not None else view.current
    found = next((one for one in view.versions if one.number == number), None)
    if found is None or found.job_id is None:
        which = "no version that serves" if number is None else f"no version {number} that has run"
        raise NotFound(f"{name} has {which}; its versions are {', '.join(str(one.number) for one in view.versions)}")
    return control.queries.metrics(found.job_id, series or [], after_step)


@routes.get("/endpoints/{name}/address", Permission.INFER, "Show where an endpoint is asked", 404, 503)
def address(requests: InEndpoints, caller: Caller, name: Name) -> EndpointAddress:
    """Return where an endpoint is asked, for those who may do no more than that."""
    return address_of(requests.get(caller, name))


@routes.post(
    "/endpoints/{name}/versions",
    Permission.ENDPOINTS_WRITE,
    "Deploy a version",
    404,
    409,
    413,
    503,
    507,
    status_code=201,
    openapi_extra=_BODY,
)
async def deploy(
    request: Request,
    context: InContext,
    requests: InEndpoints,
    caller: Caller,
    visible: Seen,
    name: Name,
    response: Response,
) -> EndpointView:
    """Add a version to an endpoint, and make the endpoint if there is none of this name.

    The version comes as a packed folder, or is what a job has trained (`job`; the body is JSON alone then). It takes
    the traffic, or as many percent of it as `traffic` says, as its kernels get ready; the version before it serves
    meanwhile, and goes on if it fails.
    """
    require_endpoint_name(name)
    content_type = request.headers.get("content-type", "")
    with upload_file(context.uploads) as path:
        archive: FilePath | None = None
        if content_type.lower().startswith("multipart/"):
            text = (await receive_form(content_type, request.stream(), path, _FORM))["version"]
            archive = path
        else:
            text = await read_small(request.stream())
        asked = parse_body(DeployRequest, text)
        _require_one_source(asked, archive)
        view = await run_in_threadpool(requests.deploy, caller, name, asked, archive, visible)
    return with_etag(view, response)


@routes.patch("/endpoints/{name}", Permission.ENDPOINTS_WRITE, "Change an endpoint", 403, 404, 409, 412, 503)
def change(
    requests: InEndpoints,
    caller: Caller,
    name: Name,
    patch: EndpointPatch,
    response: Response,
    if_match: IfMatch = None,
) -> EndpointView:
    """Change how an endpoint serves, while it serves; the scheduler decides anew at once."""
    return with_etag(requests.change(caller, name, patch, revision_of(if_match)), response)


@routes.post("/endpoints/{name}/start", Permission.ENDPOINTS_WRITE, "Start an endpoint", 403, 404, 409, 503)
def start(requests: InEndpoints, caller: Caller, name: Name, response: Response) -> EndpointView:
    """Let an endpoint that was stopped take requests again; one that is started stays as it is."""
    return with_etag(requests.start(caller, name), response)


@routes.post("/endpoints/{name}/stop", Permission.ENDPOINTS_WRITE, "Stop an endpoint", 403, 404, 409, 503)
def stop(requests: InEndpoints, caller: Caller, name: Name, response: Response) -> EndpointView:
    """Let kernels answer what they have begun, take their slots away, and refuse requests until it is started."""
    return with_etag(requests.stop(caller, name), response)


@routes.post("/endpoints/{name}/rollback", Permission.ENDPOINTS_WRITE, "Roll back", 403, 404, 409, 503)
def rollback(
    requests: InEndpoints, caller: Caller, name: Name, body: RollbackRequest, response: Response
) -> EndpointView:
    """Give all traffic to one version: the one that is named; or the one that serves, if another one takes traffic
    beside it or from it; or else the one that served before."""
    return with_etag(requests.rollback(caller, name, body.number), response)


@routes.post("/endpoints/{name}/traffic", Permission.ENDPOINTS_WRITE, "Split the traffic", 403, 404, 409, 503)
def traffic(
    requests: InEndpoints, caller: Caller, name: Name, body: TrafficRequest, response: Response
) -> EndpointView:
    """Share the requests that name no version between versions, by percent.

    A version that does not run is started; traffic goes over to it as its kernels get ready. One that is left without
    any is retired. `exchange` says how far that is.
    """
    return with_etag(requests.split(caller, name, body.split()), response)


@routes.delete(
    "/endpoints/{name}", Permission.ENDPOINTS_WRITE, "Remove an endpoint", 403, 404, 409, 412, 503, status_code=204
)
def remove(requests: InEndpoints, caller: Caller, name: Name, if_match: IfMatch = None) -> None:
    """Stop an endpoint and forget it with all its versions; the jobs of its kernels stay, with their logs."""
    requests.remove(caller, name, revision_of(if_match))


def _require_one_source(asked: DeployRequest, archive: FilePath | None) -> None:
    """Refuse a deployment of nothing, or of two things.

    Raises:
        InvalidInput: it is one.
    """
    if asked.job is None and archive is None:
        message = "nothing says what is deployed; give a job, or send a form with the parts `version` and `code`"
        raise InvalidInput.at("job", message)
    if asked.job is not None and archive is not None:
        raise InvalidInput.at("job", f"{asked.job} and the code both say what is deployed; send one of them")
    if asked.job is not None and asked.file is not None:
        message = f"{asked.file!r} is looked for in a folder, and what {asked.job} has trained is none; leave it out"
        raise InvalidInput.at("file", message)
