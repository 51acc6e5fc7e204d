"""The commands `templates …`: code that models are made from."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from pliant.api.models import TemplatePage, TemplateRequest, TemplateView
from pliant.cli import formatting
from pliant.cli.fields import Given, Table, ask, options_of, takes
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show, show_facts, show_list, table
from pliant.cli.session import open_client
from pliant.client.http.pages import pages
from pliant.core.errors import InvalidInput
from pliant.core.model import TemplateSettings
from pliant.core.parameter import Parameter

app = typer.Typer(
    name="templates",
    help="Code that models are made from.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DESCRIPTION: Final = "template.toml"
"""In the folder of a template: what else has to be known, as the fields of `TemplateSettings`."""

NameArgument = Annotated[str, name_argument("template", "Of the template.")]

_TEMPLATE: Final[Table] = {
    "name": ask("Instead of the name in template.toml."),
    "main_file": ask("The file to run.", "--main", metavar="FILE"),
    "elastic_file": ask("The file to run with the engine elastic.", "--elastic-main", metavar="FILE"),
    "framework": ask("For people."),
    "description": ask("For people."),
    "shared_with": ask("Who else may use it; repeatable.", "--share", metavar="USER", type=list[str]),
    "parameters": None,
    "engines": None,
}

_COLUMNS = (
    TableColumn(title="NAME"),
    TableColumn(title="FRAMEWORK"),
    TableColumn(title="ENGINES", optional=True),
    TableColumn(title="OWNER"),
    TableColumn(title="FILES", right=True),
    TableColumn(title="CHANGED", optional=True),
    TableColumn(title="DESCRIPTION", cut=True),
)


@app.command("list")
def list_templates(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the templates that you may use."""
    with open_client(context) as client:
        found = tuple(one for page in pages(lambda after: client.templates.list(after=after)) for one in page.templates)
    nothing = "There are no templates yet; `pliant templates add FOLDER` adds one."
    show_list(TemplatePage(templates=found, next=None), _COLUMNS, map(_row, found), nothing, as_json=as_json)


@app.command("add")
@takes(options_of(TemplateSettings, _TEMPLATE))
def add(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="Its code and template.toml.", show_default=False)],
    given: Given,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the one of this name.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add a folder of code as a template.

    What else has to be known stands in its template.toml; options come first.

    \b
    pliant templates add examples/templates/images
    pliant templates add my-code --name mine --main train.py
    """
    folder = path.expanduser()
    request = request_of(folder, given)
    with open_client(context) as client:
        view = (client.templates.replace if replace else client.templates.add)(folder, request)
    said = f"{view.name} is a template; `pliant models add NAME --template {view.name}` makes a model of it"
    print_outcome(view, said, as_json=as_json)


@app.command("show")
def show_template(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a template and the parameters that it asks for."""
    with open_client(context) as client:
        view = client.templates.get(name)
    if as_json:
        print_json(view)
        return
    show_facts((name, value) for name, value in _facts(view).items() if value)
    if view.parameters:
        say("\nParameters", style="bold")
        columns = (
            TableColumn(title="NAME"),
            TableColumn(title="KIND"),
            TableColumn(title="DEFAULT"),
            TableColumn(title="VALUES"),
            TableColumn(title="MEANING", wrap=True),
        )
        show(table(columns, (_parameter_row(one) for one in view.parameters)))


@app.command("fetch")
def fetch(
    context: typer.Context,
    name: NameArgument,
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="A new or empty folder; default: NAME here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the files of a template."""
    with open_client(context) as client:
        folder = client.templates.files(name, (to or Path(name)).expanduser().absolute())
    print_outcome({"name": name, "folder": str(folder)}, f"{folder} holds the files of {name}", as_json=as_json)


@app.command("remove")
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove a template that no model is made from."""
    with open_client(context) as client:
        client.templates.remove(name)
    print_outcome({"removed": name}, f"{name} is removed", as_json=as_json)


def request_of(folder: Path, given: Given) -> TemplateRequest:
    """Return what to ask for: what was given, else what `template.toml` in the folder says.

    Raises:
        InvalidInput: that file cannot be read, or all together is no template.
    """
    file = folder / DESCRIPTION
    said: dict[str, Any] = {}
    if file.is_file():
        try:
            said = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput.at(str(file), f"it is not TOML: {error}; mend it") from error
    return validate(TemplateRequest, {**said, **given})


def _row(view: TemplateView) -> list[str | Text]:
    return [
        view.name,
        view.framework,
        ",".join(view.engines),
        view.owner,
        str(view.num_files),
        formatting.date_time(view.changed_at),
        view.description,
    ]


def _facts(view: TemplateView) -> dict[str, str]:
    return {
        "template": f"{view.name} (revision {view.revision})",
        "description": view.description,
        "framework": view.framework,
        "runs": view.main_file,
        "runs elastic": view.elastic_script,
        "engines": ", ".join(view.engines),
        "files": f"{formatting.count_of(view.num_files, 'file')}, {formatting.size(view.num_bytes)}",
        "checksum": view.checksum,
        "owner": view.owner,
        "shared with": ", ".join(view.shared_with),
        "changed": formatting.date_time(view.changed_at),
    }


def _parameter_row(parameter: Parameter) -> list[str | Text]:
    values = ", ".join(parameter.choices)
    if parameter.minimum is not None or parameter.maximum is not None:
        low = "" if parameter.minimum is None else f"{parameter.minimum:g}"
        values = f"{low}…{'' if parameter.maximum is None else f'{parameter.maximum:g}'}"
    default = formatting.NOTHING if parameter.default is None else str(parameter.default)
    return [parameter.name, parameter.kind, default, values, parameter.description]
