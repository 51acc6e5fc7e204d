"""Trainings of models, in IBM's words."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from pliant.api.models import TrainingRequest
from pliant.catalog.models.training import Training
from pliant.core.access import Permission, Principal
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.hyperparameters import Engine
from pliant.core.job import Job
from pliant.core.registry import Kept
from pliant.files.untrusted.names import escape
from pliant.files.untrusted.walking import files_below
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, name_fields
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routes.models import validate_body, weight_files
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.ids import app_id, driver_id, job_of_exec
from pliant.ibm.rest.translate.shapes import notes_text
from pliant.ibm.rest.translate.states import state_of
from pliant.server.context import Context, InContext

routes = ibm_routes(DEEP_LEARNING)

_JOB: Final = re.compile(r"job-[0-9]+")
_WEIGHTS: Final = (".pt", ".pth", ".onnx")
_NAMES: Final = {
    "name": "trainName",
    "max_workers": "clusterSize",
    "slots_per_worker": "gpuRatio",
    "engine": "dlFramework",
    "weights": "wfinit",
}
"""Pliant's fields, by IBM's names."""
_ENGINES: Final[Sequence[tuple[Engine, Sequence[str]]]] = (("elastic", ("elastic", "edt")), ("distributed", ("dist",)))
"""What the name of a framework says of its engine."""


class TrainingBody(BaseModel):
    """What IBM's clients send."""

    model_config = ConfigDict(extra="ignore")

    trainName: Annotated[str, Field(max_length=200)] | None = None
    dlFramework: Annotated[str, Field(max_length=200)] = ""
    clusterSize: int | None = None
    gpuRatio: int | None = None
    cmd: str | None = None
    wtURL: str | None = None
    wfinit: Annotated[str, Field(max_length=400)] | None = None
    wtfolder: str | None = None
    testInterval: int | None = None
    testIteration: int | None = None
    syncMode: str | None = None
    distribute: bool | None = None


def training_json(context: Context, kept: Kept[Training]) -> dict[str, Any]:
    """Return the description of a training."""
    noun, job = kept.noun, context.models.trainings.job(kept.noun)
    url = context.control.settings.url
    return {
        "model": noun.model,
        "dataset": noun.ran.dataset or noun.ran.data_dir or "",
        "trainingParameters": {
            "trainName": noun.title,
            "dlFramework": noun.ran.template.framework,
            "clusterSize": noun.ran.max_workers,
            "gpuRatio": noun.ran.slots_per_worker,
            "status": "SUBMITTED" if job is None else state_of(job),
            "driverid": "" if job is None else driver_id(job),
            "appid": "" if job is None else app_id(job),
            "appURL": url,
            "historyServerUrl": url,
            "sigMasterUrl": url,
            "sigId": noun.ran.queue,
            "sigName": noun.ran.queue,
            "progress": _percent(job),
            "createTime": str(round(noun.created_at * 1000)),
            "user": noun.owner,
            "syncMode": "SYNC",
            "wfinit": noun.origin.source if noun.origin is not None else "",
        },
    }


def _percent(job: Job | None) -> int:
    if job is None or job.progress is None or not job.progress.num_steps:
        return 0
    return int(100 * job.progress.step / job.progress.num_steps)


def _all(context: Context, caller: Principal, model: str) -> list[Kept[Training]]:
    return list(read_pages(partial(context.models.trainings.page, caller, model)))


@routes.get("/models/{model}/trainings", Permission.MODELS_READ)
def index(context: InContext, caller: Caller, model: str) -> list[dict[str, Any]]:
    """List the trainings of a model."""
    return [training_json(context, kept) for kept in _all(context, caller, model)]


@routes.get("/models/{model}/trainingnames", Permission.MODELS_READ)
def names(context: InContext, caller: Caller, model: str) -> list[str]:
    """List the names of a model's trainings."""
    return [kept.noun.title for kept in _all(context, caller, model)]


@routes.post("/models/{model}/trainings", Permission.MODELS_WRITE)
def start(context: InContext, caller: Caller, model: str, body: TrainingBody) -> dict[str, Any]:
    """Start a training; what has no effect is told in `notes`."""
    for field in ("wtURL", "wtfolder"):
        if getattr(body, field):
            message = "weights are not fetched from elsewhere; upload them with POST models/weightfile, give wfinit"
            raise InvalidInput.at(field, message)
    weights, uploaded = find_weights(context, caller, body.wfinit)
    asked = {
        "name": body.trainName,
        "max_workers": body.clusterSize,
        "slots_per_worker": body.gpuRatio,
        "engine": engine_of(body.dlFramework, distribute=bool(body.distribute)),
        "weights": weights,
    }
    with name_fields(_NAMES):
        read = validate_body(TrainingRequest, asked)
        kept = context.models.trainings.start(
            caller, model, read.changes(), name=read.name, weights=read.source(), uploaded=uploaded
        )
    return training_json(context, kept) | {"notes": notes_text(_notes(body))}


def engine_of(framework: str, *, distribute: bool) -> Engine | None:
    """Return which engine a framework names; None: the model's own."""
    name = framework.lower()
    named = next((engine for engine, parts in _ENGINES if any(part in name for part in parts)), None)
    return named or ("distributed" if distribute else None)


def find_weights(context: Context, caller: Principal, name: str | None) -> tuple[dict[str, str] | None, Path | None]:
    """Return the weights that `wfinit` names: an exec's, a job's, a training's, or a file that was uploaded."""
    if not name:
        return None, None
    if name.startswith("wmla-"):
        return {"job": job_of_exec(name)}, None
    if _JOB.fullmatch(name):
        return {"job": name}, None
    files = weight_files(context)
    try:
        return None, files.path(files.get(name, caller))
    except NotFound:
        return {"training": name}, None


def _notes(body: TrainingBody) -> list[str]:
    program = "the program itself decides that"
    without_effect = {
        "cmd": (body.cmd, "the template's main file is run"),
        "testInterval": (body.testInterval, program),
        "testIteration": (body.testIteration, program),
    }
    notes = [f"{name} has no effect: {why}" for name, (value, why) in without_effect.items() if value not in (None, "")]
    if body.syncMode is not None and body.syncMode.upper() != "SYNC":
        notes.append(f"syncMode {body.syncMode} has no effect: gradients are always summed in step")
    return notes


@routes.get("/models/{model}/trainings/{training}", Permission.MODELS_READ)
def show(context: InContext, caller: Caller, model: str, training: str) -> dict[str, Any]:
    """Show a training."""
    return training_json(context, context.models.trainings.get(caller, model, training))


@routes.delete("/models/{model}/trainings/{training}", Permission.MODELS_WRITE)
def remove(context: InContext, caller: Caller, model: str, training: str) -> dict[str, Any]:
    """Forget a training that has ended."""
    context.models.trainings.remove(caller, model, training)
    return {"message": f"{training} is deleted", "name": training}


@routes.put("/models/{model}/trainings/{training}/stop", Permission.MODELS_WRITE)
def stop(context: InContext, caller: Caller, model: str, training: str) -> dict[str, Any]:
    """Stop a training at its next step boundary."""
    return training_json(context, context.models.trainings.stop(caller, model, training))


@routes.get("/models/{model}/trainings/{training}/weightfile", Permission.MODELS_READ)
def weightfiles(context: InContext, caller: Caller, model: str, training: str) -> list[str]:
    """List the weight files that a training has written, as they stand below its model folder."""
    noun = context.models.trainings.get(caller, model, training).noun
    job = context.models.trainings.job(noun)
    if job is None:
        raise NotFound(f"the training {training!r} of {model!r} has no job any more")
    folder = context.control.settings.folders(job.id).model
    return sorted(escape(name) for name in files_below(folder) if name.endswith(_WEIGHTS))
