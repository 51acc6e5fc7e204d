"""Models of IBM's inference API: Pliant's endpoints, in IBM's words."""

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from pliant.api.endpoints import EndpointPatch, EndpointView, require_endpoint_name
from pliant.core.access import Permission, Principal
from pliant.core.errors import Conflict, Forbidden, InvalidInput, Problem, Unavailable
from pliant.ibm.rest.code_files import archive_of
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.edi_package import MAX_TEXT_BYTES, README, ModelPackage
from pliant.ibm.rest.edi_records import find_model, forget_record, keep_record, record_of
from pliant.ibm.rest.errors import DLIM, name_fields
from pliant.ibm.rest.groups import queue_names
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routes.edi_deployment import deploy_package
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routes.templates import server_folder
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.edi_model import instance_json, model_json, plan_json
from pliant.ibm.rest.translate.edi_profile import FIELDS, read_profile, show_profile
from pliant.ibm.rest.translate.plain_json import require_plain
from pliant.server.context import Context, InContext
from pliant.server.endpoint_requests import EndpointRequests
from pliant.server.routes.endpoints import InEndpoints

routes = ibm_routes(DLIM)

_IN_PACKAGE: Final = ("name", "weight_path", "runtime", "kernel_path", "schema_version")
"""What stands in `model.json`, and changes with it alone."""


class Attribute(BaseModel):
    """A name and a value that people give to a model."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[str, Field(max_length=200)]
    value: Annotated[str, Field(max_length=2000)] = ""


class InferenceModelBody(BaseModel):
    """What IBM's clients send of a model; what a server says of it itself (times, size, who made it) is left alone."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, Field(max_length=200)] | None = None
    tag: Annotated[str, Field(max_length=200)] | None = None
    attributes: Annotated[list[Attribute], Field(max_length=100)] | None = None
    model_path: Annotated[str, Field(max_length=4000)] | None = None
    weight_path: str | None = None
    kernel_path: str | None = None
    runtime: str | None = None
    schema_version: str | None = None
    mk_environments: list[dict[str, Any]] | None = None


class ReadmeBody(BaseModel):
    """The description of a model for people."""

    model_config = ConfigDict(extra="forbid")

    readme: Annotated[str, Field(max_length=MAX_TEXT_BYTES, pattern=r"^[^\x00]*$")]


def _own(requests: EndpointRequests, caller: Principal, name: str) -> EndpointView:
    """Return a model that the caller may change.

    Raises:
        NotFound, Forbidden: there is none that they see, or it is somebody else's.
    """
    view = requests.get(caller, name)
    if not caller.owns(view.owner):
        raise Forbidden(f"the model {name!r:.80} is {view.owner}'s; ask them to change it")
    return view


def _describe(context: Context, view: EndpointView) -> dict[str, Any]:
    return model_json(view, record_of(context, view))


def _views(requests: EndpointRequests, caller: Principal) -> list[EndpointView]:
    def page(after: str, limit: int) -> tuple[tuple[EndpointView, ...], str | None]:
        found = requests.page(caller, after, limit)
        return found.endpoints, found.next

    return list(read_pages(page))


@routes.get("/model", Permission.ENDPOINTS_READ)
def index(context: InContext, requests: InEndpoints, caller: Caller) -> list[dict[str, Any]]:
    """List models."""
    return [_describe(context, view) for view in _views(requests, caller)]


@routes.get("/modelextension", Permission.ENDPOINTS_READ)
def extensions(context: InContext, requests: InEndpoints, caller: Caller) -> dict[str, Any]:
    """List models with their resource plans."""
    views = _views(requests, caller)
    return {
        "model_list": [_describe(context, view) for view in views],
        "extension_list": [plan_json(view) for view in views],
    }


@routes.post("/model", Permission.ENDPOINTS_WRITE)
def add(context: InContext, requests: InEndpoints, caller: Caller, body: InferenceModelBody) -> dict[str, Any]:
    """Make a model of a folder of the server, `model_path`; who does not run the server sends a package."""
    missing = [name for name in ("name", "model_path") if getattr(body, name) is None]
    if missing:
        raise InvalidInput(*(Problem(field=name, message="it is missing; send it") for name in missing))
    name = str(body.name)
    require_endpoint_name(name)
    if find_model(requests, caller, name) is not None:
        raise Conflict(f"there is a model {name!r} already; remove it, or deploy it anew")
    if not caller.sees_all:
        raise Forbidden(
            f"only who runs the server makes models of its folders; POST {DLIM}/deployment/model sends yours"
        )
    folder = server_folder(context, caller, body.model_path or "")
    said = body.model_dump(exclude_none=True, exclude={"model_path"})
    require_plain(said, "model")
    package = ModelPackage(description=said, readme=_readme_in(folder), folder="")
    with archive_of(folder, context.uploads) as archive:
        return deploy_package(context, requests, caller, package, archive, None)


def _readme_in(folder: Path) -> str:
    try:
        with (folder / README).open("rb") as file:
            return file.read(MAX_TEXT_BYTES).decode("utf-8", "replace").replace("\0", "")
    except OSError:
        return ""


@routes.get("/model/{model}", Permission.ENDPOINTS_READ)
def show(context: InContext, requests: InEndpoints, caller: Caller, model: str) -> dict[str, Any]:
    """Show a model."""
    return _describe(context, requests.get(caller, model))


@routes.put("/model/{model}", Permission.ENDPOINTS_WRITE)
def change(
    context: InContext, requests: InEndpoints, caller: Caller, model: str, body: InferenceModelBody
) -> dict[str, Any]:
    """Change the tag and the attributes of a model; what its package says changes with the package."""
    view = _own(requests, caller, model)
    record = record_of(context, view)
    now = model_json(view, record)
    others = [name for name in _IN_PACKAGE if getattr(body, name) not in (None, now[name])]
    if body.mk_environments not in (None, now["mk_environments"]):
        others.append("mk_environments")
    if others:
        message = f"it stands in model.json; change it there, and POST {DLIM}/deployment/model/{view.name}"
        raise InvalidInput(*(Problem(field=name, message=message) for name in others))
    changes = body.model_dump(include={"tag", "attributes"}, exclude_none=True)
    require_plain(changes, "model")
    keep_record(context, view, description={**record.description, **changes})
    return _describe(context, view)


@routes.delete("/model/{model}", Permission.ENDPOINTS_WRITE)
def remove(context: InContext, requests: InEndpoints, caller: Caller, model: str) -> dict[str, str]:
    """Remove a model with all its versions."""
    requests.remove(caller, model)
    forget_record(context, model)
    return {"status": "success"}


@routes.put("/model/{model}/operation/start", Permission.ENDPOINTS_WRITE)
def start(requests: InEndpoints, caller: Caller, model: str) -> dict[str, str]:
    """Let a model take requests again."""
    return {"status": "success", "state": requests.start(caller, model).state}


@routes.put("/model/{model}/operation/stop", Permission.ENDPOINTS_WRITE)
def stop(requests: InEndpoints, caller: Caller, model: str) -> dict[str, str]:
    """Take a model's slots away, and let it refuse requests."""
    return {"status": "success", "state": requests.stop(caller, model).state}


@routes.get("/model/{model}/instance", Permission.ENDPOINTS_READ)
def instance(requests: InEndpoints, caller: Caller, model: str) -> dict[str, Any]:
    """Show what serves a model now."""
    return instance_json(requests.get(caller, model))


@routes.get("/model/{model}/readme", Permission.ENDPOINTS_READ)
def readme(context: InContext, requests: InEndpoints, caller: Caller, model: str) -> dict[str, str]:
    """Show what is written about a model."""
    return {"readme": record_of(context, requests.get(caller, model)).readme}


@routes.put("/model/{model}/readme", Permission.ENDPOINTS_WRITE)
def write_readme(
    context: InContext, requests: InEndpoints, caller: Caller, model: str, body: ReadmeBody
) -> dict[str, str]:
    """Write about a model; a new package replaces it."""
    view = _own(requests, caller, model)
    return {"readme": keep_record(context, view, readme=body.readme).readme}


@routes.get("/model/{model}/appprofile", Permission.ENDPOINTS_READ)
def profile(context: InContext, requests: InEndpoints, caller: Caller, model: str) -> dict[str, Any]:
    """Show the application profile of a model."""
    view = requests.get(caller, model)
    return show_profile(view, record_of(context, view).profile)


@routes.put("/model/{model}/appprofile", Permission.ENDPOINTS_WRITE)
def change_profile(
    context: InContext, requests: InEndpoints, caller: Caller, model: str, body: dict[str, Any]
) -> dict[str, Any]:
    """Change the application profile of a model, also while it serves; what is left out stays."""
    view = _own(requests, caller, model)
    asked = read_profile(body, view.name, record_of(context, view).profile, queue_names(context))
    if asked.settings:
        with name_fields(FIELDS):
            patch: EndpointPatch = validate_body(EndpointPatch, dict(asked.settings))
            view = requests.change(caller, model, patch, None)
    record = keep_record(context, view, profile=asked.kept)
    return {**show_profile(view, record.profile), "notes": list(asked.notes)}


@routes.get("/model/{model}/streaming", Permission.ENDPOINTS_READ)
def streaming(requests: InEndpoints, caller: Caller, model: str) -> dict[str, str]:
    """Show where a model is asked for answers in parts: an address of gRPC, which speaks `ModelStreamInfer`.

    Raises:
        Unavailable: no gateway is there.
    """
    address = requests.get(caller, model).grpc_address
    if address is None:
        raise Unavailable("no gateway is there yet that takes requests; try again in a moment")
    return {"streaming_service_uri": address}
