"""Model templates: Pliant's templates, in IBM's words. What is sent is a folder of the server."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import PlainTextResponse

from pliant.api.request import Changes
from pliant.catalog.models.code_folders import find_elastic_file
from pliant.catalog.models.model import Template
from pliant.core.access import Permission, Principal
from pliant.core.errors import Forbidden, InvalidInput, Problem
from pliant.core.model import TemplateSettings
from pliant.core.registry import Kept
from pliant.ibm.rest.code_files import archive_of, names_in, read_text, split_name
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, name_fields
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routing import ibm_routes
from pliant.server.context import Context, InContext

routes = ibm_routes(DEEP_LEARNING)

_NAMES: Final = {"main_file": "tfmainpath", "elastic_file": "tfmainpath"}
"""Pliant's fields, by IBM's names."""


class TemplateBody(BaseModel):
    """What IBM's clients send; fields for other frameworks than PyTorch are left alone."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, Field(max_length=200)] | None = None
    path: Annotated[str, Field(max_length=4000)] | None = None
    framework: Annotated[str, Field(max_length=60)] | None = None
    description: str | None = None
    tfmainpath: str | None = None
    tfmainContent: str | None = None


class TemplateChanges(Changes, of=TemplateSettings, but=("parameters", "engines", "shared_with")):
    """What they can say of a template, by Pliant's names."""


def template_json(kept: Kept[Template], folder: Path) -> dict[str, Any]:
    """Return the description of a template."""
    noun = kept.noun
    return {
        "name": noun.name,
        "path": str(folder),
        "description": noun.description,
        "framework": noun.framework,
        "tfmainpath": _main_of(noun),
        "frameworkVersion": "",
        "user": noun.owner,
        "accelerators": list(noun.engines),
    }


def _main_of(noun: Template) -> str:
    """Return the file that clients know as the main one: that of the first engine."""
    return noun.script_of(noun.engines[0])


def _describe(context: Context, caller: Principal, kept: Kept[Template]) -> dict[str, Any]:
    return template_json(kept, context.models.templates.files(caller, kept.noun.name))


@routes.get("/modeltemplates", Permission.MODELS_READ)
def index(context: InContext, caller: Caller, framework: str | None = None) -> list[dict[str, Any]]:
    """List templates."""
    kept = read_pages(partial(context.models.templates.page, caller))
    found = [_describe(context, caller, one) for one in kept]
    return [one for one in found if framework is None or one["framework"].lower() == framework.lower()]


@routes.post("/modeltemplates", Permission.MODELS_WRITE)
def add(context: InContext, caller: Caller, body: TemplateBody) -> dict[str, Any]:
    """Make a template of a folder of the server; one with an `elastic-main.py` and no `main.py` is elastic alone."""
    missing = [name for name in ("name", "path", "framework") if getattr(body, name) is None]
    if missing:
        raise InvalidInput(*(Problem(field=name, message="it is missing; send it") for name in missing))
    folder = server_folder(context, caller, body.path or "")
    asked = TemplateSettings(**_changes(body, {"main_file": body.tfmainpath}))
    if body.tfmainpath is None and not (folder / asked.main_file).is_file() and find_elastic_file(folder, None):
        asked = replace(asked, engines=("elastic",))
    with archive_of(folder, context.uploads) as archive, name_fields(_NAMES):
        return _describe(context, caller, context.models.templates.add(caller, asked, archive))


def _changes(body: TemplateBody, files: Mapping[str, str | None]) -> Mapping[str, Any]:
    """Return what a body says of a template, by Pliant's names.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    said = {"name": body.name, "framework": body.framework, "description": body.description, **files}
    with name_fields(_NAMES):
        read: TemplateChanges = validate_body(TemplateChanges, said)
    return read.changes()


def server_folder(context: Context, caller: Principal, path: str) -> Path:
    """Return a folder of the server that somebody may name.

    Raises:
        Forbidden: they do not run the server, or it holds the server's own files.
        InvalidInput: there is no such folder.
    """
    if not caller.sees_all:
        raise Forbidden("only who runs the server makes templates of its folders; send yours with POST /v1/templates")
    folder, home = Path(path), context.control.settings.home.resolve()
    if not folder.is_absolute() or not folder.is_dir():
        message = f"{path!r:.200} is not a folder here; give the whole path of one that is"
        raise InvalidInput.at("path", message)
    found = folder.resolve()
    if (found.is_relative_to(home) or home.is_relative_to(found)) and not found.is_relative_to(context.frameworks):
        raise Forbidden(f"{path} holds the server's own files; copy the code somewhere else")
    return folder


@routes.get("/modeltemplates/files/{name:path}", Permission.MODELS_READ, response_class=PlainTextResponse)
def file(context: InContext, caller: Caller, name: str) -> PlainTextResponse:
    """Show a file of a template, by a name of the list of files."""
    template, path = split_name(name)
    return PlainTextResponse(read_text(context.models.templates.files(caller, template), path))


@routes.get("/modeltemplates/{template}", Permission.MODELS_READ)
def show(context: InContext, caller: Caller, template: str) -> dict[str, Any]:
    """Show a template, with the text of its main file."""
    kept = context.models.templates.get(caller, template)
    folder = context.models.templates.files(caller, template)
    return template_json(kept, folder) | {"tfmainContent": read_text(folder, _main_of(kept.noun))}


@routes.put("/modeltemplates/{template}", Permission.MODELS_WRITE)
def change(context: InContext, caller: Caller, template: str, body: TemplateBody) -> dict[str, Any]:
    """Change a template: its description, its framework, its main file's text, or all its files by another folder."""
    noun = context.models.templates.get(caller, template).noun
    folder = context.models.templates.files(caller, template)
    if body.path is not None and body.path != str(folder):
        folder = server_folder(context, caller, body.path)
    main, field = body.tfmainpath or _main_of(noun), "elastic_file" if noun.engines[0] == "elastic" else "main_file"
    changes = {} if body.tfmainContent is None else {main: body.tfmainContent}
    asked = replace(noun, **_changes(body, {field: body.tfmainpath}))
    with archive_of(folder, context.uploads, changes) as archive, name_fields(_NAMES):
        return _describe(context, caller, context.models.templates.replace(caller, template, asked, archive, None))


@routes.delete("/modeltemplates/{template}", Permission.MODELS_WRITE)
def remove(context: InContext, caller: Caller, template: str) -> dict[str, Any]:
    """Remove a template that no model is made of."""
    context.models.templates.remove(caller, template, None)
    return {"message": f"{template} is deleted", "name": template}


@routes.get("/modeltemplates/{template}/files", Permission.MODELS_READ)
def files(context: InContext, caller: Caller, template: str) -> list[str]:
    """List the files of a template."""
    return names_in(context.models.templates.files(caller, template), template)
