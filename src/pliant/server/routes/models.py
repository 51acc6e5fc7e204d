"""Models, and their trainings."""

from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, TypeVar

from fastapi import Path, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from pliant.api.hyperparameters import HyperparameterTables, hyperparameter_tables
from pliant.api.models import (
    ModelPage,
    ModelPatch,
    ModelRequest,
    ModelView,
    TrainingPage,
    TrainingRequest,
    TrainingView,
)
from pliant.catalog.models.training import Training
from pliant.core.access import Permission
from pliant.core.errors import NotFound
from pliant.core.registry import Kept
from pliant.server.body import parse_body, read_small, upload_file
from pliant.server.context import InContext
from pliant.server.etag import IfMatch, revision_of, with_etag
from pliant.server.file_response import OpenFileResponse
from pliant.server.middleware.authorisation import Caller
from pliant.server.model_views import model_view, training_view
from pliant.server.routing import Routes
from pliant.server.upload import UploadForm, receive_form

F = TypeVar("F", bound=Callable[..., Any])

MAX_WEIGHTS_BYTES: Final = 16 << 30
_WEIGHTS_TYPE: Final = "application/octet-stream"
_CODE_TYPE: Final = "application/gzip"

routes = Routes(tags=["models"])

Name = Annotated[str, Path(description="Of a model.", max_length=200, pattern=r"^[^\x00]*$")]
Title = Annotated[str, Path(description="Of a training of the model.", max_length=200, pattern=r"^[^\x00]*$")]
After = Annotated[str, Query(description="`next` of the page before.", max_length=200, pattern=r"^[^\x00]*$")]
Limit = Annotated[int, Query(ge=1, le=1000)]

_START: Final = UploadForm(
    file="weights", fields=("training",), required=("training", "weights"), max_bytes=MAX_WEIGHTS_BYTES
)
_WEIGHTS: Final[Mapping[str, Any]] = {
    "type": "string",
    "format": "binary",
    "description": "A state_dict, as torch.save writes it; 16 GiB at most.",
}
_START_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": TrainingRequest},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["training", "weights"],
                    "additionalProperties": False,
                    "properties": {"training": TrainingRequest, "weights": _WEIGHTS},
                },
                "encoding": {"training": {"contentType": "application/json"}},
            },
        },
    }
}


def _download(what: str, summary: str, media_type: str, words: str) -> Callable[[F], F]:
    """Return the decorator of a route that sends a file of a training."""
    return routes.get(
        f"/models/{{name}}/trainings/{{training}}/{what}",
        Permission.MODELS_READ,
        summary,
        404,
        response_class=FileResponse,
        responses={200: {"content": {media_type: {}}, "description": words}},
    )


# Models


@routes.get("/hyperparameters", Permission.MODELS_READ, "Show what can be chosen for a training")
def hyperparameters() -> HyperparameterTables:
    """Return the numbers of a training, the optimizers and the courses of the learning rate, with what each takes."""
    return hyperparameter_tables()


@routes.get("/models", Permission.MODELS_READ, "List models")
def models(context: InContext, caller: Caller, after: After = "", limit: Limit = 100) -> ModelPage:
    """Return models in the order of their names: one's own, and those that are shared with one."""
    page, last = context.models.models.page(caller, after, limit)
    return ModelPage(models=tuple(model_view(context.models, kept) for kept in page), next=last)


@routes.post("/models", Permission.MODELS_WRITE, "Make a model", 409, status_code=201)
def add(context: InContext, caller: Caller, body: ModelRequest, response: Response) -> ModelView:
    """Make a model of a template."""
    kept = context.models.models.add(caller, body.template, body.noun())
    return with_etag(model_view(context.models, kept), response)


@routes.get("/models/{name}", Permission.MODELS_READ, "Show a model", 404)
def show(context: InContext, caller: Caller, name: Name, response: Response) -> ModelView:
    """Return a model."""
    kept = context.models.models.get(caller, name)
    return with_etag(model_view(context.models, kept), response)


@routes.patch("/models/{name}", Permission.MODELS_WRITE, "Change a model", 403, 404, 412)
def change(
    context: InContext, caller: Caller, name: Name, body: ModelPatch, response: Response, if_match: IfMatch = None
) -> ModelView:
    """Change what later trainings run with; those that were started stay as they are."""
    kept = context.models.models.change(
        caller, name, body.changes(), revision_of(if_match), newest_template=body.newest_template
    )
    return with_etag(model_view(context.models, kept), response)


@routes.delete("/models/{name}", Permission.MODELS_WRITE, "Remove a model", 403, 404, 409, 412, status_code=204)
def remove(context: InContext, caller: Caller, name: Name, if_match: IfMatch = None) -> None:
    """Remove a model that is not being trained; its trainings stay readable."""
    context.models.models.remove(caller, name, revision_of(if_match))


# Trainings


@routes.get("/models/{name}/trainings", Permission.MODELS_READ, "List a model's trainings", 404)
def trainings(context: InContext, caller: Caller, name: Name, after: After = "", limit: Limit = 100) -> TrainingPage:
    """Return trainings in the order of their names, also of a model that was removed."""
    page, last = context.models.trainings.page(caller, name, after, limit)
    return TrainingPage(trainings=tuple(training_view(context.models, kept) for kept in page), next=last)


@routes.post(
    "/models/{name}/trainings",
    Permission.MODELS_WRITE,
    "Train a model",
    404,
    409,
    413,
    503,
    status_code=201,
    openapi_extra=_START_BODY,
)
async def start(request: Request, context: InContext, caller: Caller, name: Name, response: Response) -> TrainingView:
    """Start a training as a job; weights to start from are named, or sent as a part of the body."""
    content_type = request.headers.get("content-type", "")
    with upload_file(context.uploads) as path:
        uploaded: FilePath | None = None
        if content_type.lower().startswith("multipart/"):
            text = (await receive_form(content_type, request.stream(), path, _START))["training"]
            uploaded = path
        else:
            text = await read_small(request.stream())
        asked = parse_body(TrainingRequest, text)
        kept = await run_in_threadpool(
            context.models.trainings.start,
            caller,
            name,
            asked.changes(),
            name=asked.name,
            weights=asked.source(),
            uploaded=uploaded,
        )
    return _show(context, kept, response)


@routes.get("/models/{name}/trainings/{training}", Permission.MODELS_READ, "Show a training", 404)
def training(context: InContext, caller: Caller, name: Name, training: Title, response: Response) -> TrainingView:
    """Return a training with all that it ran with, and how far it is."""
    return _show(context, context.models.trainings.get(caller, name, training), response)


@routes.post("/models/{name}/trainings/{training}/stop", Permission.MODELS_WRITE, "Stop a training", 403, 404, 409)
def stop(context: InContext, caller: Caller, name: Name, training: Title, response: Response) -> TrainingView:
    """End a training at its next step boundary."""
    return _show(context, context.models.trainings.stop(caller, name, training), response)


@routes.delete(
    "/models/{name}/trainings/{training}",
    Permission.MODELS_WRITE,
    "Forget a training",
    403,
    404,
    409,
    412,
    status_code=204,
)
def forget(context: InContext, caller: Caller, name: Name, training: Title, if_match: IfMatch = None) -> None:
    """Forget a training that does not run; its job, with results and logs, stays."""
    context.models.trainings.remove(caller, name, training, revision_of(if_match))


@_download("weights", "Download the trained weights", _WEIGHTS_TYPE, "A state_dict, as torch.save writes it.")
def weights(context: InContext, caller: Caller, name: Name, training: Title) -> OpenFileResponse:
    """Return the state_dict of the trained model."""
    file = context.models.trainings.open_weights(context.models.trainings.get(caller, name, training).noun)
    return OpenFileResponse(file, media_type=_WEIGHTS_TYPE, file_name=f"{name}.{training}.pt")


@_download("code", "Download the code that ran", _CODE_TYPE, "A tar.gz.")
def code(context: InContext, caller: Caller, name: Name, training: Title) -> FileResponse:
    """Return the very code and parameters that the training ran, as a tar.gz."""
    noun = context.models.trainings.get(caller, name, training).noun
    path = context.models.trainings.code(noun)
    if path is None:
        raise NotFound(f"the code of the training {training!r} of {name!r} is not on the server's disk any more")
    return FileResponse(path, media_type=_CODE_TYPE, filename=f"{name}.{training}.tar.gz")


def _show(context: InContext, kept: Kept[Training], response: Response) -> TrainingView:
    return with_etag(training_view(context.models, kept), response)
