"""Models: Pliant's models, in IBM's words; and weight files to start trainings from."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from pliant.api.faults import problems_of
from pliant.api.models import ModelPatch, ModelRequest
from pliant.catalog.models.model import Model
from pliant.core.access import Permission, Principal
from pliant.core.errors import InvalidInput
from pliant.core.registry import Kept
from pliant.ibm.rest.code_files import archive_of, names_in, read_text, split_name
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, name_fields
from pliant.ibm.rest.groups import queue_names
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.hyper import NAMES, from_ibm_names, to_ibm_names
from pliant.ibm.rest.translate.job_request import find_queue
from pliant.ibm.rest.translate.shapes import notes_text
from pliant.ibm.rest.weight_files import WeightFiles
from pliant.server.body import upload_file
from pliant.server.context import Context, InContext
from pliant.server.upload import UploadForm, receive_form

routes = ibm_routes(DEEP_LEARNING)

ENGINES: Final = {"single": "single", "native": "distributed", "elastic": "elastic"}
_NAMES: Final = {
    "template": "templatename",
    "engine": "accelerator",
    "queue": "sig",
    "hyperparameters.batch_size": "batchsize",
    **{f"hyperparameters.{ours}": f"hyperparameter.{theirs}" for theirs, ours in reversed([*NAMES.items()])},
}
"""Pliant's fields, by IBM's names."""
ACCELERATORS: Final = {engine: name.capitalize() for name, engine in ENGINES.items()}
WEIGHTS: Final = UploadForm(file="file", fields=(), required=("file",), max_bytes=16 << 30)


class ModelBody(BaseModel):
    """What IBM's clients send; fields for other frameworks than PyTorch are left alone."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, Field(max_length=200)] | None = None
    templatename: Annotated[str, Field(max_length=200)] | None = None
    description: str | None = None
    accelerator: str | None = None
    hyperparameter: dict[str, Any] = Field(default_factory=dict)
    dataset: Annotated[str, Field(max_length=200)] | None = None
    batchsize: int | None = None
    sig: str | None = None
    type: str | None = None
    tfmainContent: str | None = None
    tfmainpath: str | None = None
    tmpfilePath: str | None = None
    tmpfileContent: str | None = None


def weight_files(context: Context) -> WeightFiles:
    """Return the weights that were uploaded to this server."""
    return WeightFiles(context.registry, context.control.settings.home / "weights")


def model_json(context: Context, kept: Kept[Model]) -> dict[str, Any]:
    """Return the description of a model."""
    noun = kept.noun
    return {
        "name": noun.name,
        "templatename": noun.template.name,
        "description": noun.description,
        "framework": noun.template.framework,
        "accelerator": ACCELERATORS[noun.engine],
        "hyperparameter": to_ibm_names(noun.hyperparameters),
        "batchsize": noun.hyperparameters.batch_size,
        "dataset": noun.dataset or noun.data_dir or "",
        "tfmainpath": noun.template.script_of(noun.engine),
        "sig": noun.queue,
        "signame": noun.queue,
        "type": "Training",
        "user": noun.owner,
        "createTime": round(kept.created_at * 1000),
        "trainings": context.models.models.num_trainings(noun.name),
    }


def code_of(context: Context, noun: Model) -> Path:
    """Return the folder of the code that a model is made of."""
    return context.models.templates.code(noun.template)


@routes.get("/models", Permission.MODELS_READ)
def index(context: InContext, caller: Caller) -> list[dict[str, Any]]:
    """List models."""
    return [model_json(context, kept) for kept in read_pages(partial(context.models.models.page, caller))]


def _settings(context: Context, body: ModelBody) -> tuple[dict[str, Any], list[str]]:
    """Return what a body sets, by Pliant's names, and what has no effect.

    Raises:
        InvalidInput: the engine or the instance group is unknown, or an inference model is asked for.
    """
    changes, notes = from_ibm_names(body.hyperparameter, body.batchsize)
    given: dict[str, Any] = {"hyperparameters": changes or None, "description": body.description}
    if body.dataset:
        given["dataset"] = body.dataset
    if body.accelerator is not None:
        given["engine"] = ENGINES.get(body.accelerator.lower())
        if given["engine"] is None:
            message = f"{body.accelerator!r:.60} is none of {', '.join(ACCELERATORS.values())}; give one of them"
            raise InvalidInput.at("accelerator", message)
    if body.sig is not None:
        given["queue"] = find_queue(body.sig, queue_names(context), field="sig")
    if body.type is not None and body.type.lower() != "training":
        message = f"{body.type!r:.60} is not Training; models that answer are deployed below /dlim/v1"
        raise InvalidInput.at("type", message)
    return {name: value for name, value in given.items() if value is not None}, notes


@routes.post("/models", Permission.MODELS_WRITE)
def add(context: InContext, caller: Caller, body: ModelBody) -> dict[str, Any]:
    """Make a model of a template."""
    given, notes = _settings(context, body)
    with name_fields(_NAMES):
        asked = validate_body(ModelRequest, {"name": body.name, "template": body.templatename, **given})
        made = context.models.models.add(caller, asked.template, asked.noun())
    return model_json(context, made) | {"notes": notes_text(notes)}


@routes.post("/models/weightfile", Permission.MODELS_WRITE)
async def upload(request: Request, context: InContext, caller: Caller) -> dict[str, Any]:
    """Keep a weight file; trainings name it as `wfinit`."""
    with upload_file(context.uploads) as path:
        await receive_form(request.headers.get("content-type", ""), request.stream(), path, WEIGHTS)
        kept = await run_in_threadpool(weight_files(context).keep, path, caller, context.clock.now())
    return {"name": kept.name, "size": kept.num_bytes}


@routes.get("/models/files/{name:path}", Permission.MODELS_READ, response_class=PlainTextResponse)
def file(context: InContext, caller: Caller, name: str) -> PlainTextResponse:
    """Show a file of a model, by a name of the list of files."""
    model, path = split_name(name)
    return PlainTextResponse(read_text(code_of(context, context.models.models.get(caller, model).noun), path))


@routes.get("/models/{model}", Permission.MODELS_READ)
def show(context: InContext, caller: Caller, model: str) -> dict[str, Any]:
    """Show a model, with the text of its main file."""
    kept = context.models.models.get(caller, model)
    text = read_text(code_of(context, kept.noun), kept.noun.template.script_of(kept.noun.engine))
    return model_json(context, kept) | {"tfmainContent": text}


@routes.put("/models/{model}", Permission.MODELS_WRITE)
def change(context: InContext, caller: Caller, model: str, body: ModelBody) -> dict[str, Any]:
    """Change how a model is trained; with a text for its main file its template, too."""
    given, notes = _settings(context, body)
    text = body.tfmainContent
    if text is not None:
        _change_file(context, caller, model, body.tfmainpath, text)
    kept = context.models.models.get(caller, model)
    if given or text is not None:
        with name_fields(_NAMES):
            changes = validate_body(ModelPatch, given).changes() if given else {}
            kept = context.models.models.change(caller, model, changes, newest_template=text is not None)
    return model_json(context, kept) | {"notes": notes_text(notes)}


@routes.delete("/models/{model}", Permission.MODELS_WRITE)
def remove(context: InContext, caller: Caller, model: str) -> dict[str, Any]:
    """Remove a model that is not being trained."""
    context.models.models.remove(caller, model, None)
    return {"message": f"{model} is deleted", "name": model}


@routes.get("/models/{model}/files", Permission.MODELS_READ)
def files(context: InContext, caller: Caller, model: str) -> list[str]:
    """List the files of a model."""
    return names_in(code_of(context, context.models.models.get(caller, model).noun), model)


@routes.put("/models/{model}/files", Permission.MODELS_WRITE)
def save_file(context: InContext, caller: Caller, model: str, body: ModelBody) -> dict[str, Any]:
    """Save the text of one file, or of the main one: the model's template is changed, and the model follows it."""
    path, text = body.tmpfilePath or body.tfmainpath, body.tmpfileContent
    text = body.tfmainContent if text is None else text
    if text is None:
        raise InvalidInput.at("tmpfileContent", "it is missing; send the text of the file")
    _change_file(context, caller, model, path, text)
    return model_json(context, context.models.models.change(caller, model, {}, newest_template=True))


def _change_file(context: Context, caller: Principal, model: str, path: str | None, text: str) -> None:
    noun = context.models.models.get(caller, model).noun
    templates = context.models.templates
    template = templates.get(caller, noun.template.name).noun
    name = (path or template.script_of(noun.engine)).removeprefix(f"{model}/")
    with archive_of(templates.code(template), context.uploads, {name: text}) as archive:
        templates.replace(caller, template.name, template, archive, None)


def validate_body(kind: Any, given: dict[str, Any]) -> Any:
    """Return a body of Pliant's own.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    try:
        return kind.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error
