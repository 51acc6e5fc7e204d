"""The commands `models …`: templates with data, numbers and an engine."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Annotated, Final

import typer
from rich.text import Text

from pliant.api.models import ModelPage, ModelPatch, ModelRequest, ModelSettings, ModelView
from pliant.cli import formatting
from pliant.cli.catalog.assignments import assign
from pliant.cli.completion import complete
from pliant.cli.fields import Given, Table, ask, options_of, takes
from pliant.cli.options import JsonOption, name_argument, whole_path
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, show_facts, show_list
from pliant.cli.session import open_client
from pliant.client.http.pages import pages
from pliant.core.model import ModelDefinition
from pliant.core.parameter import Value

app = typer.Typer(
    name="models",
    help="Templates with data, numbers and a training engine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, name_argument("model", "Of the model.")]
ASSIGNMENTS: Final = ask("A number or parameter; repeatable.", "--set", metavar="NAME=VALUE", type=list[str])
TRAINING: Final[Table] = {
    "dataset": ask("A data set, by name."),
    "data_dir": ask("Instead: a folder of the server's.", metavar="DIR", read=whole_path),
    "engine": ask("How it is trained."),
    "max_workers": ask("Workers, at most.", "--max"),
    "slots_per_worker": ask("GPUs (or CPU slots) of every worker."),
    "priority": ask("1 to 10000."),
    "queue": ask("Where its jobs wait."),
    "environment": ask("What its tasks run in."),
    "histograms_every": ask("Log histograms of weights and gradients every N steps.", metavar="N"),
    "hyperparameters": None,
    "parameters": None,
}
"""How the fields are asked for that say how a model is trained, but for what `--set` takes."""
_MODEL: Final[Table] = {
    **TRAINING,
    "description": ask("For people."),
    "assignments": ASSIGNMENTS,
    "shared_with": ask("Who else may use it; repeatable.", "--share", metavar="USER", type=list[str]),
}

_COLUMNS = (
    TableColumn(title="NAME"),
    TableColumn(title="TEMPLATE"),
    TableColumn(title="DATA", cut=True),
    TableColumn(title="ENGINE"),
    TableColumn(title="MAX", right=True),
    TableColumn(title="TRAININGS", right=True, optional=True),
    TableColumn(title="OWNER"),
    TableColumn(title="DESCRIPTION", cut=True),
)


@app.command("list")
def list_models(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the models that you may use."""
    with open_client(context) as client:
        found = tuple(one for page in pages(lambda after: client.models.list(after=after)) for one in page.models)
    nothing = "There are no models yet; `pliant models add NAME --template TEMPLATE` makes one."
    show_list(ModelPage(models=found, next=None), _COLUMNS, map(_row, found), nothing, as_json=as_json)


@app.command("add")
@takes(options_of(ModelDefinition, _MODEL, but=("name",)))
def add(
    context: typer.Context,
    name: NameArgument,
    template: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What it is made from.", autocompletion=complete("template"), show_default=False
        ),
    ],
    given: Given,
    as_json: JsonOption = False,
) -> None:
    """Make a model of a template.

    --set takes the training's numbers (learning_rate, batch_size, epochs,
    optimizer, …) and the template's own parameters.

    \b
    pliant models add flowers --template images --dataset flowers --max 8 \\
        --set optimizer=Adam --set learning_rate=0.001 --set width=64
    """
    with open_client(context) as client:
        asked = client.templates.get(template).parameters if "assignments" in given else ()
        texts = {one.name: one.default for one in asked if one.default is not None}
        request = {"name": name, "template": template, **with_assignments(given, texts)}
        view = client.models.add(validate(ModelRequest, request))
    print_outcome(view, f"{view.name} is a model; `pliant train {view.name}` trains it", as_json=as_json)


@app.command("show")
def show_model(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a model and its numbers."""
    with open_client(context) as client:
        view = client.models.get(name)
    if as_json:
        print_json(view)
        return
    facts = {
        "model": f"{view.name} (revision {view.revision})",
        "description": view.description,
        "owner": view.owner,
        "shared with": ", ".join(view.shared_with),
        "trainings": str(view.num_trainings),
    }
    show_facts([*((key, value) for key, value in facts.items() if value), *facts_of(view.settings)])


@app.command("set")
@takes(options_of(ModelDefinition, _MODEL, but=("name",)))
def set_model(
    context: typer.Context,
    name: NameArgument,
    given: Given,
    newest_template: Annotated[
        bool, typer.Option("--newest-template", help="Go over to the newest revision of its template.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Change a model; trainings that were started stay as they are.

    --set NAME=null goes back to the default.

    \b
    pliant models set flowers --set epochs=20 --set width=null
    """
    with open_client(context) as client:
        view = client.models.get(name)
        asked = with_assignments(given, view.settings.parameters)
        asked |= {"newest_template": True} if newest_template else {}
        view = client.models.change(name, validate(ModelPatch, asked), revision=view.revision)
    print_outcome(view, f"{view.name} is changed; it is at revision {view.revision}", as_json=as_json)


@app.command("remove")
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove a model; its trainings stay readable."""
    with open_client(context) as client:
        client.models.remove(name)
    said = f"{name} is removed; `pliant trainings {name}` still lists its trainings"
    print_outcome({"removed": name}, said, as_json=as_json)


def with_assignments(given: Given, present: Mapping[str, Value]) -> Given:
    """Return the fields of a request: those that have options, and those that `--set` says; see `assigned`."""
    with_options = {name: value for name, value in given.items() if name != "assignments"}
    return with_options | assign(given.get("assignments", ()), present)


def facts_of(settings: ModelSettings) -> Iterator[tuple[str, str]]:
    """Yield how a model is trained, or a training was, in words."""
    yield "template", f"{settings.template} (revision {settings.template_revision})"
    if data := data_of(settings):
        yield "data", data
    workers = "" if settings.engine == "single" else f", {formatting.count_of(settings.max_workers, 'worker')} at most"
    yield "engine", f"{settings.engine}{workers}, {formatting.count_of(settings.slots_per_worker, 'slot')} each"
    yield "queue", f"{settings.queue}, priority {settings.priority}"
    if settings.environment is not None:
        yield "environment", settings.environment
    if settings.histograms_every is not None:
        yield "histograms", f"every {formatting.count_of(settings.histograms_every, 'step')}"
    for field in fields(settings.hyperparameters):
        value = getattr(settings.hyperparameters, field.name)
        if value not in (None, ()):
            yield field.name, ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    for name, value in settings.parameters.items():
        yield f"{name} (the template's)", str(value)


def data_of(settings: ModelSettings) -> str:
    """Return the data in a word."""
    return settings.dataset or settings.data_dir or ""


def _row(view: ModelView) -> list[str | Text]:
    settings = view.settings
    return [
        view.name,
        settings.template,
        data_of(settings) or formatting.NOTHING,
        settings.engine,
        str(settings.max_workers),
        str(view.num_trainings),
        view.owner,
        view.description,
    ]
