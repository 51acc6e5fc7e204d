"""The commands `algorithms …`: code of people's own that chooses the values of searches."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.api.algorithms import AlgorithmPage, AlgorithmPatch, AlgorithmRequest, AlgorithmView
from pliant.cli import formatting
from pliant.cli.fields import Given, Table, ask, options_of, takes
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show_facts, show_list
from pliant.cli.session import open_client
from pliant.core.algorithm import AlgorithmSettings
from pliant.core.errors import InvalidInput

app = typer.Typer(
    name="algorithms",
    help="Algorithms: code of your own that chooses values of searches.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, name_argument("algorithm", "Of the algorithm.")]

_ENDINGS: Final = (".tar.gz", ".tar", ".tgz", ".zip", ".py")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SETTINGS: Final[Table] = {
    "environment": ask("The name of an environment to run in."),
    "log_level": ask("What its logger writes: debug, info, warning or error."),
    "deadline_s": ask("So many seconds it may take for an answer.", "--deadline", metavar="SECONDS"),
    "description": ask("For people."),
    "shared_with": ask("Who else may use it; repeatable.", "--share", metavar="USER", type=list[str]),
}
_COLUMNS = (
    TableColumn(title="NAME"),
    TableColumn(title="KIND"),
    TableColumn(title="OWNER"),
    TableColumn(title="CLASS", optional=True),
    TableColumn(title="INSTALLED", optional=True),
    TableColumn(title="DESCRIPTION", cut=True),
)


@app.command("list")
def list_algorithms(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the algorithms that you may use."""
    with open_client(context) as client:
        found = client.algorithms.list()
    nothing = "There are no algorithms yet; `pliant algorithms add FOLDER` installs one."
    show_list(AlgorithmPage(algorithms=found, next=None), _COLUMNS, map(_row, found), nothing, as_json=as_json)


@app.command("add")
@takes(options_of(AlgorithmSettings, _SETTINGS))
def add(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A folder, a Python file, or a tar or zip of one.", show_default=False),
    ],
    given: Given,
    name: Annotated[str | None, typer.Option(help="Instead of the name of PATH.", metavar="NAME")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Install a new version of the one of this name.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Install an algorithm: the server loads it, as you, and keeps it if it can be used.

    At the top of its code is optimizer.py (IBM's form) or sampler.py (a sampler for Optuna).

    \b
    pliant algorithms add my-search/
    pliant algorithms add my-search/ --replace
    pliant tune train.py --sampler my-search --param lr=log:1e-5..1e-1 ...
    """
    code = path.expanduser()
    if not code.exists():
        raise InvalidInput.at("PATH", f"there is no file or folder {str(path)!r}; check the path")
    name = name or _name_of(code)
    with open_client(context) as client:
        if replace:
            view = client.algorithms.replace(name, code, validate(AlgorithmPatch, given) if given else None)
        else:
            view = client.algorithms.add(code, validate(AlgorithmRequest, {"name": name, **given}))
    said = f"{view.name} is installed ({view.class_name}); `pliant tune --sampler {view.name}` searches by it"
    print_outcome(view, said, as_json=as_json)


@app.command("show")
def show_algorithm(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show an algorithm."""
    with open_client(context) as client:
        view = client.algorithms.get(name)
    if as_json:
        print_json(view)
        return
    show_facts(_facts(view))


@app.command("set")
@takes(options_of(AlgorithmSettings, _SETTINGS, but=("environment", "shared_with")))
def set_algorithm(context: typer.Context, name: NameArgument, given: Given, as_json: JsonOption = False) -> None:
    """Change what is said of an algorithm; its code and its environment change with `add --replace`."""
    with open_client(context) as client:
        view = client.algorithms.change(name, validate(AlgorithmPatch, given))
    print_outcome(view, f"{view.name} is changed", as_json=as_json)


@app.command("share")
def share(
    context: typer.Context,
    name: NameArgument,
    users: Annotated[list[str] | None, name_argument("user", "`*`: everybody; none: nobody.", metavar="USER")] = None,
) -> None:
    """Let these people use an algorithm for their searches, and nobody else."""
    with open_client(context) as client:
        view = client.algorithms.change(name, shared_with=users or [])
    say(f"{view.name} is shared with {', '.join(view.shared_with) or 'nobody'}")


@app.command("remove")
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Forget an algorithm and its code; no search may use it that runs or may be resumed."""
    with open_client(context) as client:
        client.algorithms.remove(name)
    print_outcome({"removed": name}, f"{name} is removed", as_json=as_json)


def _name_of(code: Path) -> str:
    """Return what an algorithm is called if nobody says: like its folder or archive; a file alone like its folder."""
    place = code.resolve()
    ending = next((one for one in _ENDINGS if place.name.endswith(one)), "") if place.is_file() else ""
    name = place.parent.name if ending == ".py" else place.name.removesuffix(ending)
    fit = _UNFIT.sub("-", name).strip("._-")
    if not fit:
        raise InvalidInput.at("--name", f"{str(code)!r} gives the algorithm no name; give one of letters and digits")
    return fit


def _row(view: AlgorithmView) -> Sequence[str]:
    return (
        view.name,
        view.kind,
        view.owner,
        view.class_name,
        formatting.date_time(view.installed_at),
        view.description,
    )


def _facts(view: AlgorithmView) -> Iterator[tuple[str, str]]:
    yield "algorithm", f"{view.name} of {view.owner} (revision {view.revision})"
    if view.description:
        yield "description", view.description
    yield "kind", view.kind
    yield "class", view.class_name
    yield "continues from", "what it says itself" if view.has_state else "what it is told again"
    yield "environment", view.environment or "the server's"
    yield "deadline", f"{view.deadline_s:g} s for an answer"
    yield "log level", view.log_level
    yield "installed", formatting.date_time(view.installed_at)
    yield "checksum", view.checksum
    yield "shared with", ", ".join(view.shared_with) or "nobody"
