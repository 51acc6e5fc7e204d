"""The commands `data …`: data sets."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from pliant.api.datasets import DatasetPage, DatasetPatch, DatasetRequest, SourceRequest
from pliant.cli import formatting
from pliant.cli.catalog.progress import Bar
from pliant.cli.catalog.share import NamesArgument, RemoveOption, shared_after, who
from pliant.cli.fields import Given, Table, ask, options_of, takes
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show, show_facts, show_list, table
from pliant.cli.session import open_client
from pliant.client import Client
from pliant.client.folders.data_source import source_of
from pliant.core.dataset import CsvRule, Dataset, DatasetSettings, DatasetState, ImageRule, SplitRule
from pliant.core.errors import InvalidInput

app = typer.Typer(name="data", help="Data sets: what trainings read.", no_args_is_help=True, rich_markup_mode=None)

NameArgument = Annotated[str, name_argument("data set", "Of the data set.")]
_STYLES: Final = {
    DatasetState.IMPORTING: "cyan",
    DatasetState.READY: "green",
    DatasetState.FAILED: "bold red",
    DatasetState.STOPPED: "dim",
}
_COLUMNS: Final = (
    TableColumn(title="NAME"),
    TableColumn(title="KIND"),
    TableColumn(title="STATE"),
    TableColumn(title="OWNER"),
    TableColumn(title="SIZE", right=True),
    TableColumn(title="FILES", right=True, optional=True),
    TableColumn(title="TRAIN", right=True, optional=True),
    TableColumn(title="VALID", right=True, optional=True),
    TableColumn(title="TEST", right=True, optional=True),
    TableColumn(title="WHAT", cut=True),
)


_DATASET: Final[Table] = {
    "root": ask("Instead: a path below the server's data root.", metavar="PATH", type=str),
    "kind": ask("any, images or csv; default: any, csv for a CSV.", metavar="KIND"),
    "name": ask("Default: the last part of PATH."),
    "source": None,
    "description": ask("For people."),
    "shared_with": ask("Who else may use it; repeatable.", "--share", metavar="USER"),
}
_SPLIT: Final[Table] = {
    "validation_percent": ask("Percent for validation; default: 10.", "--validation", metavar="PERCENT"),
    "test_percent": ask("Percent for test; default: 10.", "--test", metavar="PERCENT"),
    "seed": ask("The same deals out in the same way."),
}
_IMAGES: Final[Table] = {
    "size": ask("Of images, such as 64x64.", metavar="WxH", type=str),
    "width": None,
    "height": None,
    "resizing": ask("squash, crop or fill.", metavar="HOW"),
    "colour": ask("rgb or grey.", metavar="COLOUR"),
}
_SIGNS: Final = {"\\t": "\t"}
"""As they can be typed."""
_CSV: Final[Table] = {
    "delimiter": ask("Of a CSV; default: found out.", metavar="SIGN", read=lambda sign: _SIGNS.get(sign, sign)),
    "header": ask("A CSV whose first row is data.", "--no-header", read=lambda _: False),
}
_RULES: Final = {
    "split": options_of(SplitRule, _SPLIT),
    "images": options_of(ImageRule, _IMAGES),
    "csv": options_of(CsvRule, _CSV),
}


@app.command("list")
def list_datasets(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the data sets that you may use."""
    with open_client(context) as client:
        found = client.datasets.list()
    nothing = "There are no data sets yet; `pliant data add FOLDER` makes one."
    show_list(DatasetPage(datasets=found, next=None), _COLUMNS, map(_row, found), nothing, as_json=as_json)


@app.command("show")
def show_dataset(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a data set: what is in it, and how far its import is."""
    with open_client(context) as client:
        dataset = client.datasets.get(name)
    if as_json:
        print_json(dataset)
        return
    show_facts(_facts(dataset))
    if dataset.content.columns:
        say("\nColumns", style="bold")
        show(table(_COLUMN_COLUMNS, _column_rows(dataset)))


@app.command("add")
@takes(options_of(DatasetSettings, _DATASET) | _RULES["split"] | _RULES["images"] | _RULES["csv"])
def add(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="A folder, an archive (tar, tar.gz, zip) or a CSV.", show_default=False),
    ] = None,
    *,
    given: Given,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return when all is sent.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Upload and import a data set.

    What breaks off goes on by itself, or when the same command is run again.

    \b
    pliant data add flowers/ --kind images --size 64x64
    pliant data add cifar-10-python.tar.gz --kind images --name cifar10
    pliant data add --root shared/imagenet --share '*'
    pliant data add houses.csv --validation 15 --test 15 --seed 7
    """
    request = validate(DatasetRequest, _asked_for(path, given))
    with open_client(context) as client:
        dataset = client.datasets.add(request if path is None else _upload(client, path, request))
        if not no_wait:
            dataset = _wait(client, dataset)
    if as_json:
        print_json(dataset)
    else:
        say(_describe_end(dataset), stderr=dataset.state is DatasetState.FAILED)
    if dataset.state in (DatasetState.FAILED, DatasetState.STOPPED):
        raise typer.Exit(1)


@app.command("stop")
def stop(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """End an import; nothing of it is left."""
    with open_client(context) as client:
        dataset = client.datasets.stop(name)
    print_outcome(dataset, _describe_end(dataset), as_json=as_json)


@app.command("remove")
def remove(context: typer.Context, name: NameArgument) -> None:
    """Remove a data set that no job uses."""
    with open_client(context) as client:
        client.datasets.remove(name)
    say(f"{name} is removed")


@app.command("share")
def share(
    context: typer.Context,
    name: NameArgument,
    names: NamesArgument = None,
    remove: RemoveOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let others use a data set of yours; without names tell who may.

    \b
    pliant data share flowers ann bob
    pliant data share flowers '*'
    pliant data share flowers ann --remove
    """
    with open_client(context) as client:
        dataset = client.datasets.get(name)
        if names:
            patch = validate(DatasetPatch, {"shared_with": shared_after(dataset.shared_with, names, remove=remove)})
            dataset = client.datasets.change(name, patch, revision=dataset.revision)
    print_outcome(dataset, f"{name} is {dataset.owner}'s and shared with {who(dataset.shared_with)}", as_json=as_json)


def _asked_for(path: Path | None, given: Given) -> dict[str, object]:
    """Return the fields of a request; what is to be uploaded has no id yet."""
    root = given.pop("root", None)
    rules = {rule: {name: given.pop(name) for name in options if name in given} for rule, options in _RULES.items()}
    given["kind"] = given.get("kind") or ("csv" if str(root or path).lower().endswith(".csv") else "any")
    given["name"] = given.get("name") or _name_of(path, root)
    given["source"] = {"path": root} if root is not None else {"upload_id": "0" * 32}
    rules["images"] |= _size(rules["images"].pop("size", None))
    return given | {rule: values for rule, values in rules.items() if values}


def _name_of(path: Path | None, root: str | None) -> str:
    """Return the name that goes without saying.

    Raises:
        InvalidInput: it is not said where the data are, or it is said twice.
    """
    if (path is None) == (root is None):
        message = "say where the data are: a PATH here, or --root with a path on the server"
        raise InvalidInput.at("PATH", message)
    last = Path(root).name if path is None and root is not None else (path or Path()).expanduser().absolute().name
    for suffix in (".tar.gz", ".tgz", ".tar", ".zip", ".csv"):
        if last.lower().endswith(suffix):
            return last[: -len(suffix)]
    return last


def _size(size: str | None) -> dict[str, object]:
    if size is None:
        return {}
    width, sign, height = size.lower().partition("x")
    if not (sign and width.isdecimal() and height.isdecimal()):
        raise InvalidInput.at("--size", f"{size!r} is no size; give width and height as 64x64")
    return {"width": int(width), "height": int(height)}


def _upload(client: Client, path: Path, request: DatasetRequest) -> DatasetRequest:
    """Send the files; return the request with the upload."""
    source = source_of(path.expanduser())
    with Bar(f"sending {request.name}", unit_is_bytes=True) as bar:
        sent = client.datasets.upload(source, bar.at)
    return request.model_copy(update={"source": SourceRequest(upload_id=sent.upload_id, sha256=sent.sha256)})


def _wait(client: Client, dataset: Dataset) -> Dataset:
    with Bar(f"importing {dataset.name}", unit_is_bytes=False) as bar:

        def show(now: Dataset) -> None:
            if now.progress is not None:
                done = now.progress
                by_files = done.files_total > 0
                bar.say(f"{dataset.name}: {done.phase}")
                bar.at(*((done.files_done, done.files_total) if by_files else (done.bytes_done, done.bytes_total)))

        return client.datasets.wait(dataset.name, timeout_s=math.inf, on_poll=show)


def _describe_end(dataset: Dataset) -> str:
    match dataset.state:
        case DatasetState.READY:
            return f"{dataset.name} is ready: {_what(dataset)}; `pliant submit --dataset {dataset.name}` uses it"
        case DatasetState.IMPORTING:
            return f"{dataset.name} is being imported; `pliant data show {dataset.name}` tells how far it is"
        case _:
            return f"{dataset.name} {dataset.state.value}: {dataset.reason}"


def _what(dataset: Dataset) -> str:
    content = dataset.content
    parts = ", ".join(f"{num} {part}" for part, num in content.splits.items())
    size = f"{formatting.count_of(content.num_files, 'file')}, {formatting.size(content.num_bytes)}"
    return f"{size} ({parts})" if parts else size


def _row(dataset: Dataset) -> list[str | Text]:
    content, ready = dataset.content, dataset.state is DatasetState.READY
    return [
        dataset.name,
        dataset.kind,
        Text(dataset.state.value, style=_STYLES[dataset.state]),
        dataset.owner,
        formatting.size(content.num_bytes) if ready else formatting.NOTHING,
        str(content.num_files) if ready else formatting.NOTHING,
        *(str(content.splits.get(part, formatting.NOTHING)) for part in ("train", "validation", "test")),
        dataset.reason or (dataset.progress.phase if dataset.progress else dataset.description),
    ]


def _facts(dataset: Dataset) -> Iterator[tuple[str, str | Text]]:
    content = dataset.content
    yield "data set", f"{dataset.name} ({dataset.kind})"
    yield "state", Text(dataset.state.value, style=_STYLES[dataset.state])
    if dataset.reason:
        yield "reason", dataset.reason
    if dataset.progress is not None:
        done = dataset.progress
        yield (
            "progress",
            f"{done.phase}: {formatting.size(done.bytes_done)}, {formatting.count_of(done.files_done, 'file')}",
        )
    if dataset.description:
        yield "description", dataset.description
    yield "owner", f"{dataset.owner}; shared with {who(dataset.shared_with)}"
    yield "added", formatting.date_time(dataset.created_at)
    if dataset.state is not DatasetState.READY:
        return
    yield "folder", dataset.folder + (" (used where it lies)" if dataset.in_place else "")
    yield "holds", _what(dataset)
    if content.labels:
        yield "classes", ", ".join(f"{label} {num}" for label, num in content.labels.items())
    if content.mean:
        yield "mean", ", ".join(f"{value:.4f}" for value in content.mean)
        yield "deviation", ", ".join(f"{value:.4f}" for value in content.deviation)
    if content.image_size is not None:
        yield "image size", "x".join(map(str, content.image_size))
    if content.checksum:
        yield "checksum", content.checksum


_COLUMN_COLUMNS: Final = (
    TableColumn(title="NAME", cut=True),
    TableColumn(title="KIND"),
    TableColumn(title="MISSING", right=True),
    TableColumn(title="MIN", right=True),
    TableColumn(title="MAX", right=True),
)


def _column_rows(dataset: Dataset) -> Iterator[list[str | Text]]:
    for column in dataset.content.columns:
        bounds = (column.minimum, column.maximum)
        shown = [formatting.NOTHING if value is None else formatting.number(value) for value in bounds]
        yield [column.name, column.kind, str(column.num_missing), *shown]
