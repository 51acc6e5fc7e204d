"""The command `delete`: removes ended jobs with all that there is of them."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from pliant.cli.completion import complete
from pliant.cli.formatting import count_of
from pliant.cli.jobs.arrays import job_ids_of
from pliant.cli.problems import report
from pliant.cli.screen import say
from pliant.cli.session import is_array, job_id_of, open_client
from pliant.client import Client
from pliant.core.errors import InvalidInput, PliantError

_NUM_NAMED = 8


def delete(
    context: typer.Context,
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB|ARRAY...",
            help="Ids (job-3, array-1), numbers (3) or unique names.",
            autocompletion=complete("job or array"),
            show_default=False,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete several without a question.")] = False,
) -> None:
    """Delete jobs that have ended, for good, with their results.

    Code, results, checkpoints, logs, series and events of a job go, and nobody
    else gets its id. Of an array all jobs are deleted. A job that others wait for
    or start from stays; so does one that is the training of a model.

    \b
    pliant delete 3
    pliant delete --yes job-4 job-5 array-2
    """
    with open_client(context) as client:
        chosen = list(dict.fromkeys(text if is_array(text) else job_id_of(client, text) for text in jobs))
        if not yes and len(ids := job_ids_of(client, chosen)) > 1:
            _ask(ids)
        codes = [_delete(client, one) for one in chosen]
    if code := next(filter(None, codes), 0):
        raise typer.Exit(code)


def _ask(ids: Sequence[str]) -> None:
    """Go on if the person at the terminal says so.

    Raises:
        InvalidInput: there is nobody who could be asked.
        Exit: they do not want it.
    """
    if not sys.stdin.isatty():
        raise InvalidInput.at(
            "--yes", f"{count_of(len(ids), 'job')} would be deleted for good; give --yes if that is meant"
        )
    more = f" and {len(ids) - _NUM_NAMED} more" if len(ids) > _NUM_NAMED else ""
    asked = f"Delete {count_of(len(ids), 'job')} for good, with their results: {', '.join(ids[:_NUM_NAMED])}{more}?"
    if not typer.confirm(asked, err=True):
        say("nothing is deleted", stderr=True)
        raise typer.Exit(1)


def _delete(client: Client, one: str) -> int:
    """Delete a job or an array, and say so; of what is refused say why, and return the exit code of that."""
    try:
        if is_array(one):
            client.arrays.delete(one)
        else:
            client.delete(one)
    except PliantError as error:
        return report(error)
    say(f"{one} is deleted")
    return 0
