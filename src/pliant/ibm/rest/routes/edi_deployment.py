"""Deployment of models through IBM's inference API: a package becomes a version of an endpoint."""

from pathlib import Path
from typing import Any, Final

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from pliant.api.endpoints import DeployRequest, EndpointView, require_endpoint_name
from pliant.core.access import Permission, Principal
from pliant.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.edi_package import ModelPackage, flattened, read_package
from pliant.ibm.rest.edi_records import find_model, keep_record, record_of
from pliant.ibm.rest.errors import DLIM, name_fields
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.edi_model import BUILT_IN
from pliant.ibm.rest.translate.edi_profile import FIELDS, FIRST_SETTINGS, environment_of
from pliant.server.body import upload_file
from pliant.server.context import Context, InContext
from pliant.server.endpoint_requests import EndpointRequests
from pliant.server.routes.endpoints import MAX_MODEL_BYTES, InEndpoints
from pliant.server.upload import UploadForm, receive_form

routes = ibm_routes(DLIM)

_FORM: Final = UploadForm(file="file", fields=(), required=("file",), max_bytes=MAX_MODEL_BYTES)
_NAMES: Final = {**FIELDS, "file": "kernel_path", "environment": "runtime", "name": "model.json: name"}
_MAX_WASTE_BYTES: Final = 64 << 20


@routes.post("/deployment/model", Permission.ENDPOINTS_WRITE)
async def deploy(request: Request, context: InContext, requests: InEndpoints, caller: Caller) -> dict[str, Any]:
    """Make a model of a package, which names it in `model.json`."""
    with upload_file(context.uploads) as path:
        await _receive(request, path)
        return await run_in_threadpool(_deploy, context, requests, caller, path, None)


@routes.post("/deployment/model/{model}", Permission.ENDPOINTS_WRITE)
async def redeploy(
    request: Request, context: InContext, requests: InEndpoints, caller: Caller, model: str
) -> dict[str, Any]:
    """Add a version to a model that is there; the one that serves goes on until the new one is loaded."""
    with upload_file(context.uploads) as path:
        await _receive(request, path)
        return await run_in_threadpool(_deploy, context, requests, caller, path, model)


async def _receive(request: Request, path: Path) -> None:
    """Write a package to a file: the body as it is, or the part `file` of a form.

    Raises:
        InvalidInput, TooLarge: it is no such body.
    """
    content_type = request.headers.get("content-type", "")
    if content_type.lower().startswith("multipart/"):
        await receive_form(content_type, request.stream(), path, _FORM)
        return
    num_bytes = 0
    with path.open("wb") as out:
        async for chunk in request.stream():
            num_bytes += len(chunk)
            if num_bytes <= MAX_MODEL_BYTES:
                out.write(chunk)
            elif num_bytes > MAX_MODEL_BYTES + _MAX_WASTE_BYTES:
                break
    if num_bytes > MAX_MODEL_BYTES:
        raise TooLarge(f"the package is larger than {MAX_MODEL_BYTES >> 30} GiB; let the kernel fetch its weights")
    if num_bytes == 0:
        raise InvalidInput.at("body", "it is empty; send a tar of the folder with model.json and kernel.py")


def _deploy(
    context: Context, requests: EndpointRequests, caller: Principal, archive: Path, model: str | None
) -> dict[str, Any]:
    package = read_package(archive)
    with name_fields(_NAMES):
        require_endpoint_name(package.name)
    if model is not None and package.name != model:
        message = f"{package.name!r:.80} stands in model.json, and {model!r:.80} in the path; deploy one of them"
        raise InvalidInput.at("model", message)
    before = find_model(requests, caller, package.name)
    if model is None and before is not None:
        message = (
            f"there is a model {package.name!r} already; POST {DLIM}/deployment/model/{package.name} deploys it anew"
        )
        raise Conflict(message)
    if model is not None and before is None:
        raise NotFound(f"there is no model {model!r:.80} to deploy anew; POST {DLIM}/deployment/model makes one")
    with flattened(archive, package, context.uploads) as flat:
        return deploy_package(context, requests, caller, package, flat, before)


def deploy_package(
    context: Context,
    requests: EndpointRequests,
    caller: Principal,
    package: ModelPackage,
    archive: Path,
    before: EndpointView | None,
) -> dict[str, Any]:
    """Make a version of what a package holds; return what is said of that.

    Raises:
        InvalidInput: with everything that is wrong with it; so are the other errors of a deployment.
    """
    given: dict[str, Any] = {"source": package.folder or package.name, "file": package.kernel_path}
    if before is None:
        given |= FIRST_SETTINGS
    elif env := environment_of(record_of(context, before).profile):
        given["env"] = env
    environment = environment_of_runtime(context, caller, package.description.get("runtime"))
    with name_fields(_NAMES):
        asked: DeployRequest = validate_body(DeployRequest, given)
        asked = asked.model_copy(update={"environment": environment})
        visible = context.sharing.visible_jobs(caller)
        view = requests.deploy(caller, package.name, asked, archive, visible)
    keep_record(context, view, description=package.description, readme=package.readme)
    return {"name": view.name, "version": view.versions[-1].number, "status": "success"}


def environment_of_runtime(context: Context, caller: Principal, runtime: object) -> str | None:
    """Return the environment of a runtime; None: the server's own Python.

    Raises:
        InvalidInput: there is no such runtime.
    """
    if runtime is None or runtime == "":
        return None
    try:
        return context.environments.show(str(runtime), caller).name
    except NotFound as error:
        if runtime in BUILT_IN:
            return None
        known = ", ".join(BUILT_IN)
        message = f"Runtime not found: {str(runtime)!r:.80} is no environment that you can use, nor one of {known}"
        raise InvalidInput.at("runtime", message) from error
