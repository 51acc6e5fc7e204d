"""The command `best`: fetches what the best trial of a search has left."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pliant.cli import formatting
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.screen import print_json, say
from pliant.cli.searches.tables import results_of, words_of
from pliant.cli.session import open_client
from pliant.client import Client
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
        trial = best_trial(client, name)
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


def best_trial(client: Client, name: str) -> Trial:
    """Return the best trial of a search.

    Raises:
        NotFound: there is no such search.
        Conflict: none of its trials has completed, or it has several objectives, of which none is simply the best.
    """
    view = client.searches.get(name)
    if len(view.settings.objectives) > 1:
        ids = ", ".join(f"{one.number} ({one.job_id})" for one in client.searches.best(name))
        message = (
            f"{name} has {len(view.settings.objectives)} objectives, and of trials {ids or '(none yet)'} none beats"
        )
        raise Conflict(f"{message} all others; `pliant result JOB` fetches what one of them has left")
    if view.best is None:
        raise Conflict(f"no trial of {name} has completed yet; `pliant searches show {name}` shows how it is")
    return view.best
