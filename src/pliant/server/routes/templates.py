"""Templates: code that models are made from."""

from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from pliant.api.models import TemplatePage, TemplateRequest, TemplateView
from pliant.core.access import Permission
from pliant.files.pack import pack
from pliant.server.body import parse_body, parse_body_with_code, upload_file
from pliant.server.context import InContext
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.middleware.authorisation import Caller
from pliant.server.model_views import template_view
from pliant.server.routing import Routes
from pliant.server.upload import UploadForm, receive_form

routes = Routes(tags=["models"])

Name = Annotated[str, Path(description="Of a template.", max_length=200, pattern=r"^[^\x00]*$")]
After = Annotated[str, Query(description="`next` of the page before.", max_length=200, pattern=r"^[^\x00]*$")]

_NEW: Final = UploadForm(file="code", fields=("template",), required=("template", "code"))
_CHANGED: Final = UploadForm(file="code", fields=("template",), required=("template",))


def _describe_form(required: tuple[str, ...]) -> dict[str, Any]:
    code = {
        "type": "string",
        "format": "binary",
        "description": "The folder as a tar.gz: files and folders only, 64 MiB at most.",
    }
    schema = {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": {"template": TemplateRequest, "code": code},
    }
    encoding = {"template": {"contentType": "application/json"}, "code": {"contentType": "application/gzip"}}
    return {
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema, "encoding": encoding}}}
    }


@routes.get("/templates", Permission.MODELS_READ, "List templates")
def templates(
    context: InContext, caller: Caller, after: After = "", limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> TemplatePage:
    """Return templates in the order of their names: one's own, and those that are shared with one."""
    page, last = context.models.templates.page(caller, after, limit)
    return TemplatePage(templates=tuple(template_view(kept) for kept in page), next=last)


@routes.post(
    "/templates",
    Permission.MODELS_WRITE,
    "Add a template",
    409,
    413,
    503,
    status_code=201,
    openapi_extra=_describe_form(_NEW.required),
)
async def add(request: Request, context: InContext, caller: Caller, response: Response) -> TemplateView:
    """Check code and description, and keep them under the name."""
    with upload_file(context.uploads) as path:
        parts = await receive_form(request.headers.get("content-type", ""), request.stream(), path, _NEW)
        asked = await parse_body_with_code(TemplateRequest, parts["template"], path)
        kept = await run_in_threadpool(context.models.templates.add, caller, asked.noun(), path)
    return with_etag(template_view(kept), response)


@routes.get("/templates/{name}", Permission.MODELS_READ, "Show a template", 404)
def show(context: InContext, caller: Caller, name: Name, response: Response) -> TemplateView:
    """Return a template with the parameters that it asks for."""
    kept = context.models.templates.get(caller, name)
    return with_etag(template_view(kept), response)


@routes.put(
    "/templates/{name}",
    Permission.MODELS_WRITE,
    "Replace a template",
    403,
    404,
    409,
    412,
    413,
    503,
    openapi_extra=_describe_form(_CHANGED.required),
)
async def replace(
    request: Request, context: InContext, caller: Caller, name: Name, response: Response, if_match: IfMatch = None
) -> TemplateView:
    """Replace description and, if it is sent, code; models that were made from it stay as they are."""
    revision = revision_of(if_match)
    with upload_file(context.uploads) as path:
        parts = await receive_form(request.headers.get("content-type", ""), request.stream(), path, _CHANGED)
        asked = parse_body(TemplateRequest, parts["template"]).noun()
        code = path if "code" in parts else None
        kept = await run_in_threadpool(context.models.templates.replace, caller, name, asked, code, revision)
    return with_etag(template_view(kept), response)


@routes.delete("/templates/{name}", Permission.MODELS_WRITE, "Remove a template", 403, 404, 409, 412, status_code=204)
def remove(context: InContext, caller: Caller, name: Name, if_match: IfMatch = None) -> None:
    """Remove a template that no model is made from."""
    context.models.templates.remove(caller, name, revision_of(if_match))


@routes.get(
    "/templates/{name}/files",
    Permission.MODELS_READ,
    "Download a template's files",
    404,
    response_class=StreamingResponse,
    responses={200: {"content": {"application/gzip": {}}, "description": "A tar.gz."}},
)
def files(context: InContext, caller: Caller, name: Name) -> StreamingResponse:
    """Return the files of a template as a tar.gz made while it is sent."""
    chunks = pack(context.models.templates.files(caller, name))
    disposition = f'attachment; filename="{name}.tar.gz"'
    return StreamingResponse(chunks, media_type="application/gzip", headers={"Content-Disposition": disposition})
