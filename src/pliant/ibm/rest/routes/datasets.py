"""Data sets, in IBM's words: what lies below the server's data root, imported or used where it lies."""

import csv
import itertools
import math
import os
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from pliant.api.datasets import DatasetRequest
from pliant.core.access import Permission, Principal
from pliant.core.dataset import SPLITS, Dataset, DatasetState, Split
from pliant.core.errors import Conflict, InvalidInput
from pliant.files.pack import walk
from pliant.ibm.rest.credentials import Caller
from pliant.ibm.rest.errors import DEEP_LEARNING, name_fields
from pliant.ibm.rest.lookup import read_pages
from pliant.ibm.rest.routes.models import validate_body
from pliant.ibm.rest.routing import ibm_routes
from pliant.ibm.rest.translate.shapes import notes_text
from pliant.ibm.rest.wording import reword
from pliant.server.context import Context, InContext

routes = ibm_routes(DEEP_LEARNING)

KINDS: Final = {
    "LMDB": "any",
    "TFRECORDS": "any",
    "OTHER": "any",
    "COPY": "any",
    "IMAGEFORCLASSIFICATION": "images",
    "CSV": "csv",
    "IMAGEFOROBJECTDETECTION": "any",
    "IMGTOVECTOR": "any",
}
"""IBM's kinds of source data, and what they are imported as; `any` keeps the files as they are."""
BACKENDS: Final = {"any": "Other", "images": "ImageFolder", "csv": "CSV"}
STATES: Final = {
    DatasetState.IMPORTING: "RUNNING",
    DatasetState.READY: "FINISHED",
    DatasetState.FAILED: "ERROR",
    DatasetState.STOPPED: "KILLED",
}
PARTS: Final[dict[str, Split]] = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "validation": "validation",
}
_RESIZING: Final = {"crop": "crop", "fill": "fill", "halfcrophalffill": "crop", "squash": "squash"}
_NAMES: Final = {
    "source.path": "trainpath",
    "images.width": "imagedetail.width",
    "images.height": "imagedetail.height",
    "split.validation_percent": "imagedetail.valpercentage",
    "split.test_percent": "imagedetail.testpercentage",
}
"""Pliant's fields, by IBM's names."""
MAX_ROWS: Final = 10_000

Start = Annotated[int, Query(ge=0)]
Length = Annotated[int, Query(ge=0, le=MAX_ROWS)]


class ImageBody(BaseModel):
    """How images are prepared."""

    model_config = ConfigDict(extra="ignore")

    trainimagepath: str | None = None
    imagetype: str | None = None
    height: int | None = None
    width: int | None = None
    resizetransformation: str | None = None
    valpercentage: float | None = None
    testpercentage: float | None = None
    isusingtext: bool | None = None


class DatasetBody(BaseModel):
    """What IBM's clients send."""

    model_config = ConfigDict(extra="ignore")

    name: str
    dbbackend: str = ""
    datasourcetype: str
    trainpath: str | None = None
    valpath: str | None = None
    testpath: str | None = None
    meanfilepath: str | None = None
    imagedetail: ImageBody = Field(default_factory=ImageBody)
    shards: int | None = None
    byclass: bool | None = None
    plugin: str | None = None


def dataset_json(dataset: Dataset, now: float) -> dict[str, Any]:
    """Return the description of a data set."""
    parts = {part: f"{dataset.folder}/{where}" for part, where in dataset.content.parts.items()}
    ended = dataset.ready_at if dataset.ready_at is not None else now
    labels = [[name, str(number)] for name, number in dataset.content.labels.items()]
    return {
        "name": dataset.name,
        "dbbackend": BACKENDS[dataset.kind],
        "datasourcetype": {"any": "OTHER", "images": "IMAGEFORCLASSIFICATION", "csv": "CSV"}[dataset.kind],
        "status": STATES[dataset.state],
        "statusReason": reword(dataset.reason),
        "trainpath": parts.get("train", dataset.folder),
        "valpath": parts.get("validation", ""),
        "testpath": parts.get("test", ""),
        "size": dataset.content.num_bytes,
        "runduration": round((ended - dataset.created_at) / 60, 3),
        "createUser": dataset.owner,
        "submittedtime": str(round(dataset.created_at * 1000)),
        "trainlabels": labels,
        "checksum": dataset.content.checksum,
    }


@routes.get("/datasets", Permission.DATA_READ)
def index(context: InContext, caller: Caller) -> list[dict[str, Any]]:
    """List data sets."""
    found = read_pages(lambda after, limit: context.datasets.list(caller, after=after, limit=limit))
    return [dataset_json(dataset, context.clock.now()) for dataset in found]


@routes.post("/datasets", Permission.DATA_WRITE)
def add(context: InContext, caller: Caller, body: DatasetBody) -> dict[str, Any]:
    """Import what lies below the data root; what has no effect is told in `notes`."""
    kind = KINDS.get(body.datasourcetype.upper())
    if kind is None:
        message = f"{body.datasourcetype!r:.60} is none of {', '.join(KINDS)}; give one of them"
        raise InvalidInput.at("datasourcetype", message)
    asked: dict[str, Any] = {"name": body.name, "kind": kind, "source": {"path": _source(context, body)}}
    detail = body.imagedetail
    if kind == "images":
        asked["images"] = {name: value for name, value in _images(detail).items() if value is not None}
    percents = {"validation_percent": detail.valpercentage, "test_percent": detail.testpercentage}
    if kind != "any" and any(value is not None for value in percents.values()):
        asked["split"] = {name: value for name, value in percents.items() if value is not None}
    with name_fields(_NAMES):
        dataset = context.datasets.add(validate_body(DatasetRequest, asked).noun(caller.name), caller)
    return dataset_json(dataset, context.clock.now()) | {"notes": notes_text(_notes(body))}


def _images(detail: ImageBody) -> dict[str, Any]:
    colour = {"gray": "grey", "grey": "grey", "grayscale": "grey"}.get((detail.imagetype or "").lower(), "rgb")
    resizing = _RESIZING.get(
        (detail.resizetransformation or "squash").lower().replace("_", "").replace(",", ""), "squash"
    )
    return {"width": detail.width, "height": detail.height, "resizing": resizing, "colour": colour}


def _notes(body: DatasetBody) -> list[str]:
    why = {
        "meanfilepath": "the mean is computed when images are imported",
        "shards": "files are kept one by one",
        "byclass": "images are always kept by class",
        "plugin": "tables are read without a plug-in",
    }
    return [
        f"{name} has no effect: {words}" for name, words in why.items() if getattr(body, name) not in (None, "", False)
    ]


def _source(context: Context, body: DatasetBody) -> str:
    """Return the path of what shall be imported, relative to the data root: what holds all parts that are named.

    Raises:
        InvalidInput: nothing is named, or it lies elsewhere.
    """
    named = (body.imagedetail.trainimagepath or body.trainpath, body.valpath, body.testpath)
    paths = [_below_root(context.datasets.data_root, path) for path in named if path]
    if not paths:
        raise InvalidInput.at("trainpath", "it is missing; give a path below the data root")
    return paths[0] if len(paths) == 1 else os.path.commonpath(paths) or "."


def _below_root(root: Path, path: str) -> str:
    pure = PurePosixPath(path)
    if not pure.is_absolute():
        return str(pure)
    if not pure.is_relative_to(root):
        message = f"{path!r:.200} is not below the data root {root}; put the data there, or upload it"
        raise InvalidInput.at("trainpath", message)
    return str(pure.relative_to(root))


@routes.get("/datasets/{dataset}", Permission.DATA_READ)
def show(context: InContext, caller: Caller, dataset: str) -> dict[str, Any]:
    """Show a data set."""
    return dataset_json(context.datasets.get(dataset, caller), context.clock.now())


@routes.delete("/datasets/{dataset}", Permission.DATA_WRITE)
def remove(context: InContext, caller: Caller, dataset: str) -> dict[str, Any]:
    """Remove a data set that no job uses."""
    context.datasets.remove(dataset, caller)
    return {"message": f"{dataset} is deleted", "name": dataset}


@routes.put("/datasets/{dataset}/stop", Permission.DATA_WRITE)
def stop(context: InContext, caller: Caller, dataset: str) -> dict[str, Any]:
    """Stop an import; one that is over is 400."""
    return dataset_json(context.datasets.stop(dataset, caller), context.clock.now())


def _part(context: Context, caller: Principal, name: str, kind: str, part: str) -> Path | None:
    """Return where a part of a data set lies; None if it has no such part.

    Raises:
        Conflict: it is of another kind, or not ready.
        InvalidInput: there is no such part.
    """
    dataset = context.datasets.get(name, caller)
    split = PARTS.get(part.lower(), part.lower())
    if split not in SPLITS:
        raise InvalidInput.at("type", f"{part!r:.60} is none of train, val, test; give one of them")
    if dataset.kind != kind:
        raise Conflict(f"the data set {name!r} is of kind {dataset.kind}, not {kind}")
    if dataset.state is not DatasetState.READY:
        raise Conflict(f"the data set {name!r} is {dataset.state.value}, not ready")
    where = dataset.content.parts.get(split)
    return None if where is None else Path(dataset.folder) / where


@routes.get("/datasets/{dataset}/csvs", Permission.DATA_READ)
def rows(
    context: InContext, caller: Caller, dataset: str, type: str, start: Start = 0, length: Length = 100
) -> dict[str, Any]:
    """Show rows of a part of a table."""
    path = _part(context, caller, dataset, "csv", type)
    if path is None:
        return {"columns": [], "index": [], "data": []}
    has_header = context.datasets.get(dataset, caller).csv.header
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader, []) if has_header else []
        found = list(itertools.islice(reader, start, start + length))
    columns = header or [str(number) for number in range(len(found[0]) if found else 0)]
    index = [str(start + number) for number in range(len(found))]
    return {"columns": columns, "index": index, "data": [[_number(cell) for cell in row] for row in found]}


def _number(text: str) -> float | str:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


@routes.get("/datasets/{dataset}/objectimages", Permission.DATA_READ)
def images(
    context: InContext, caller: Caller, dataset: str, type: str, start: Start = 0, length: Length = 100
) -> list[dict[str, str]]:
    """List images of a part, each with its class."""
    folder = _part(context, caller, dataset, "images", type)
    found = walk(folder) if folder is not None else iter(())
    return [
        {"name": path.name, "path": str(path), "labels": name.rpartition("/")[0]}
        for path, name in itertools.islice(found, start, start + length)
    ]
