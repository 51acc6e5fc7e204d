"""The command `best`: fetches what the best trial of a search has left."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pliant.api.searches import SearchView
from pliant.cli import formatting
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.screen import print_json, say
from pliant.cli.session import open_client
from pliant.client.nouns.search_line import no_best, results_of, words_of
from pliant.core.errors import Conflict
from pliant.core.search import Trial

_PARAMETERS = "parameters.json"


def best(
    context: typer.Context,
    name: Annotated[str, name_argument("search", "Of the search.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="A new or empty folder; default: NAME-best here."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the results of a search's best trial, with its values.

    The folder holds what `pliant result` fetches of its job, and parameters.json.

    \b
    pliant best digits
    pliant best digits --output model/
    """
    with open_client(context) as client:
        trial = require_best(client.searches.get(name))
        to = (output or Path(f"{name}-best")).expanduser().absolute()
        folder = client.result(trial.job_id, to)
    (folder / _PARAMETERS).write_text(json.dumps(trial.values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    if as_json:
        files = [str(path.relative_to(folder)) for path in found]
        print_json({"trial": trial.number, "job_id": trial.job_id, "folder": str(folder), "files": files})
        return
    size = formatting.size(sum(path.stat().st_size for path in found))
    say(f"trial {trial.number} of {name} ({trial.job_id}): {results_of(trial)} with {words_of(trial)}")
    say(f"{folder} holds its results: {formatting.count_of(len(found), 'file')}, {size}")


def require_best(view: SearchView) -> Trial:
    """Return the best trial of a search.

    Raises:
        Conflict: none of its trials has completed and keeps its constraints, or it has several objectives, of which
            none is simply the best.
    """
    if len(view.settings.objectives) > 1:
        message = f"{view.name} has {len(view.settings.objectives)} objectives, and no trial of it is simply the best"
        listed = f"`pliant searches best {view.name}` lists those that no other one beats, each with its job"
        raise Conflict(f"{message}; {listed}, which `pliant result` fetches and `pliant deploy` serves")
    if view.best is None and (said := no_best(view)):
        raise Conflict(f"{view.name} has no best trial: {said}; `pliant searches trials {view.name}` lists them all")
    if view.best is None:
        raise Conflict(f"no trial of {view.name} has completed yet; `pliant searches show {view.name}` shows how it is")
    return view.best
