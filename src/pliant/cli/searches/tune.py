"""The command `tune`: finds the script, makes the request, sends the code, and watches the search if that is asked."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pliant.api.searches import SearchRequest
from pliant.cli.fields import Given, takes
from pliant.cli.jobs.asked import OF_JOBS, find_jobs
from pliant.cli.jobs.code import environment_of, is_job_file, script_of, warn_of_parts, warn_of_siblings
from pliant.cli.options import ArgsArgument, JsonOption, WaitOption
from pliant.cli.problems import validate
from pliant.cli.screen import print_json, print_outcome, say, say_notes
from pliant.cli.searches.asked import OPTIONS
from pliant.cli.searches.follow import follow_search, report_end
from pliant.cli.searches.known import read_known
from pliant.cli.searches.request import read_request
from pliant.cli.searches.search_file import print_schema, read_search_file, write_search_file
from pliant.cli.searches.storage import refuse_password
from pliant.cli.session import open_client
from pliant.core.errors import InvalidInput

_UNNAMED: Final = "search"

PathArgument = Annotated[
    Path,
    typer.Argument(metavar="PATH", help="A folder of code, one Python file, or a search file.", show_default=False),
]
DirectionOption = Annotated[
    bool | None,
    typer.Option("--minimize/--maximize", help="What is better of the metric; default: less.", show_default=False),
]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Watch its trials until it has ended.")]
SaveOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a search file of this instead of beginning it.", show_default=False),
]
SchemaOption = Annotated[
    bool,
    typer.Option(
        "--print-schema",
        help="Print the JSON Schema of search files.",
        callback=print_schema,
        is_eager=True,
        expose_value=False,
    ),
]


@takes(OPTIONS, as_typed=True)
def tune(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    path: PathArgument,
    args: ArgsArgument = None,
    *,
    direction: DirectionOption = None,
    given: Given,
    save: SaveOption = None,
    _schema: SchemaOption = False,
    follow: FollowOption = False,
    wait: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Search for the best values of a script's parameters.

    Every trial is a job of the script, with values that a sampler chose: as
    arguments (--lr=0.1) and as variables (PLIANT_PARAM_LR). A search file
    (.yaml, .yml, .json) says all this; options given beside it win over it.

    \b
    pliant tune train.py --param lr=log:1e-5..1e-1 --metric val_loss --max-trials 40
    pliant tune train.py --param lr=log:1e-5..1e-1 --param act=choice:relu,gelu \\
        --metric acc --maximize --halving 1..27:3 --max-trials 81 --max 8 --follow
    pliant tune search.yaml --max-trials 100 --warm-start studies.db
    """
    way = None if direction is None else "minimize" if direction else "maximize"
    given |= {"direction": way, "args": args}
    if given["study"] is not None and given["warm_start"] is None:
        raise InvalidInput.at("--study", "it names a study of a storage; give --warm-start as well")
    if save is not None and (follow or wait or as_json):
        raise InvalidInput.at("--save", "nothing is begun with it; leave --follow, --wait and --json out")
    file = read_search_file(path) if is_job_file(path) else None
    typed, from_file = (given | {"path": str(path)}, ()) if file is None else file.beside(context, given)
    with nullcontext() if file is None else file.naming_places(from_file):
        asked = _read(typed)
        if save is None:
            _send(context, asked, follow=follow, wait=wait, as_json=as_json)
            return
    if typed.get("warm_start") is not None:
        refuse_password(typed["warm_start"], "--warm-start")
    say_notes(write_search_file(save, typed))
    say(f"{save} is written; `pliant tune {save}` begins it")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is to be sent."""

    code: Path
    request: SearchRequest
    named: bool
    """Somebody named the search; else the name in the request stands for one that is free."""
    jobs: Mapping[str, Any]
    """The fields of the request that name jobs, as people call them."""
    warm_start: str | None
    """A storage of Optuna's with trials that are known."""
    study: str | None
    """Which study in it."""


def _read(typed: Given) -> _Asked:
    """Return what is asked for with what was typed.

    Raises:
        InvalidInput: with what is wrong with it.
    """
    code, typed = Path(typed["path"]).expanduser(), dict(typed)
    warm_start, study = typed.pop("warm_start", None), typed.pop("study", None)
    jobs = {name: value for name in OF_JOBS if (value := typed.pop(name, None)) is not None}
    environment = environment_of(code, typed.pop("environment", None), typed.pop("requirements", None))
    script = script_of(code, typed.get("script"))
    name = typed.get("name")
    own = {
        "name": _UNNAMED if name is None else name,
        "script": script,
        "args": typed.get("args") or [],
        "environment": environment,
    }
    return _Asked(
        code=code,
        request=read_request(typed, own),
        named=name is not None,
        jobs=jobs,
        warm_start=warm_start,
        study=study,
    )


def _send(context: typer.Context, asked: _Asked, *, follow: bool, wait: bool, as_json: bool) -> None:
    """Begin a search, say so, and watch it if that is asked for.

    Raises:
        InvalidInput: whatever the server finds wrong.
    """
    warn_of_siblings(asked.code)
    warn_of_parts(asked.request)
    with open_client(context) as client:
        found = dict(find_jobs(client, asked.jobs))
        if not asked.named:
            found["name"] = client.searches.free_name(Path(asked.request.script).stem)
        request = asked.request
        if asked.warm_start is not None:
            known = read_known(asked.warm_start, asked.study, request.settings())
            say_notes(known.notes)
            found["known"] = known.trials
        if found:
            request = validate(SearchRequest, {**request.model_dump(exclude_defaults=True), **found})
        view = client.searches.submit(asked.code, request)
        say_notes(view.notes)
        said = f"search {view.name} has begun"
        if not (follow or wait):
            print_outcome(view, f"{said}; `pliant searches show {view.name}` shows how it is", as_json=as_json)
            return
        say(said, stderr=True)
        ended = follow_search(client, view.name, live=follow)
    if as_json:
        print_json(ended)
    report_end(ended)
