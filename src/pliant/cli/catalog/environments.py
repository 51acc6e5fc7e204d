"""The commands `env …`: environments of jobs."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.api.environments import EnvironmentPage, EnvironmentRequest
from pliant.cli import formatting
from pliant.cli.fields import Given, Table, ask, options_of, takes
from pliant.cli.options import JsonOption, name_argument, whole_path
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show_facts, show_list
from pliant.cli.session import open_client
from pliant.core.environment import EnvironmentSettings, EnvironmentView
from pliant.core.errors import InvalidInput

env = typer.Typer(
    name="env",
    help="Environments: what tasks run in.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, name_argument("environment", "Of the environment.")]

_COLUMNS = (
    TableColumn(title="NAME"),
    TableColumn(title="KIND"),
    TableColumn(title="STATE"),
    TableColumn(title="OWNER"),
    TableColumn(title="SIZE", right=True, optional=True),
    TableColumn(title="USED", optional=True),
    TableColumn(title="WHY", cut=True),
)


@env.command("list")
def list_environments(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the environments that you may use."""
    with open_client(context) as client:
        found = client.environments.list()
    nothing = "There are no environments yet; `pliant env add NAME --requirements FILE` makes one."
    show_list(EnvironmentPage(environments=found, next=None), _COLUMNS, map(_row, found), nothing, as_json=as_json)


def _text_of(file: Path) -> str:
    try:
        return file.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong("--requirements", f"{str(file)!r} cannot be read ({error}); give a text file") from error


def _conda(given: str) -> str | None:
    return whole_path(given) if os.sep in given else given


def _wrong(option: str, message: str) -> InvalidInput:
    return InvalidInput.at(option, message)


_ENVIRONMENT: Final[Table] = {
    "requirements": ask("The server builds it from these.", metavar="FILE", type=Path, read=_text_of),
    "venv": ask("A virtual environment on its machine.", metavar="DIR", type=str, read=whole_path),
    "conda": ask("A conda environment on its machine.", metavar="NAME|DIR", type=str, read=_conda),
    "shared_with": ask("Who else may use it; repeatable.", "--share", metavar="USER"),
}


@env.command("add")
@takes(options_of(EnvironmentSettings, _ENVIRONMENT, but=("name",)))
def add(context: typer.Context, name: NameArgument, given: Given, as_json: JsonOption = False) -> None:
    """Register an environment under a name.

    \b
    pliant env add nlp --requirements requirements.txt
    pliant env add mine --venv ~/venvs/mine
    """
    request = validate(EnvironmentRequest, {"name": name, **given})
    with open_client(context) as client:
        view = client.environments.add(request)
    print_outcome(
        view, f"{view.name} is registered; `pliant env show {view.name}` tells how far it is", as_json=as_json
    )


@env.command("show")
def show_environment(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show an environment and what became of it."""
    with open_client(context) as client:
        view = client.environments.get(name)
    if as_json:
        print_json(view)
        return
    show_facts(_facts(view))


@env.command("log")
def log(context: typer.Context, name: NameArgument) -> None:
    """Print what the builder printed."""
    with open_client(context) as client:
        text = client.environments.log(name)
    typer.echo(text, nl=False)


@env.command("share")
def share(
    context: typer.Context,
    name: NameArgument,
    users: Annotated[list[str] | None, name_argument("user", "`*`: everybody; none: nobody.", metavar="USER")] = None,
) -> None:
    """Let these people use an environment, and nobody else."""
    with open_client(context) as client:
        view = client.environments.share(name, users or ())
    say(f"{view.name} is shared with {', '.join(view.shared_with) or 'nobody'}")


@env.command("rebuild")
def rebuild(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Build or try an environment anew; no job may use it."""
    with open_client(context) as client:
        view = client.environments.rebuild(name)
    print_outcome(
        view, f"{view.name} is built anew; `pliant env show {view.name}` tells how far it is", as_json=as_json
    )


@env.command("remove")
def remove(context: typer.Context, name: NameArgument) -> None:
    """Forget an environment, and what was built for it; no job may use it."""
    with open_client(context) as client:
        client.environments.remove(name)
    say(f"{name} is removed")


def _row(view: EnvironmentView) -> Sequence[str]:
    return (
        view.name,
        view.kind,
        view.state,
        view.owner,
        formatting.size(view.num_bytes) if view.num_bytes else formatting.NOTHING,
        formatting.NOTHING if view.last_used_at is None else formatting.date_time(view.last_used_at),
        view.why,
    )


def _facts(view: EnvironmentView) -> Iterator[tuple[str, str]]:
    yield "environment", f"{view.name} of {view.owner}"
    yield "state", view.state
    if view.why:
        yield "why", view.why
    yield view.kind, view.source.strip()
    if view.python:
        yield "python", view.python
    if view.builder:
        yield "built by", f"{view.builder}, {formatting.size(view.num_bytes)}"
    if view.built_at is not None:
        yield "done", formatting.date_time(view.built_at)
    if view.last_used_at is not None:
        yield "last used", formatting.date_time(view.last_used_at)
    yield "shared with", ", ".join(view.shared_with) or "nobody"
    if view.output:
        yield "output", "\n".join(view.output)
