"""The command `why`: why a job, or a search with all its trials, has the slots it has."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.text import Text

from pliant.api.job_views import Why
from pliant.api.searches import SearchView, TrialWhy
from pliant.cli import formatting
from pliant.cli.completion import complete
from pliant.cli.options import JsonOption
from pliant.cli.screen import TableColumn, print_json, say, show, state_text, table
from pliant.cli.session import all_jobs, job_id_of, open_client, search_of
from pliant.client import Client
from pliant.client.nouns.search_line import headline
from pliant.core.errors import Conflict
from pliant.core.search import SearchState

_NUM_DECISIONS: Final = 10
_DECISION_COLUMNS: Final = (
    TableColumn(title="TIME"),
    TableColumn(title="TASKS"),
    TableColumn(title="REASON", wrap=True),
)
_TRIAL_COLUMNS: Final = (
    TableColumn(title="TRIAL", right=True),
    TableColumn(title="JOB"),
    TableColumn(title="STATE"),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="WHY", wrap=True),
)


def why(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="JOB|SEARCH",
            help="Id (job-3), number (3) or unique name.",
            autocompletion=complete("job or search"),
            show_default=False,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Tell why a job, or a search, has the slots it has.

    Of a search: how many of its trials train and why, each with its own reason,
    and what waits for what.
    """
    with open_client(context) as client:
        search = _search_meant(client, name)
        if search is not None:
            explain_search(client, search, as_json=as_json)
            return
        answer = client.why(job_id_of(client, name))
    if as_json:
        print_json(answer)
    else:
        _explain_job(answer)


def _search_meant(client: Client, name: str) -> SearchView | None:
    """Return the search of a name; None if a job is meant.

    Raises:
        Conflict: a search goes on that is called so, and a job as well.
    """
    search = search_of(client, name)
    if search is None:
        return None
    jobs = [job for job in all_jobs(client, ended=False, searches=None) if job.spec.name == name]
    if jobs and search.state is SearchState.RUNNING:
        ids = ", ".join(job.id for job in jobs[:8])
        raise Conflict(f"{name!r} is a search, and {ids}; give that id, or use `pliant searches why {name}`")
    return None if jobs else search


def explain_search(client: Client, search: SearchView, *, as_json: bool) -> None:
    """Print why a search has the slots it has."""
    answer = client.searches.why(search.name)
    if as_json:
        print_json(answer)
        return
    say(f"{headline(search)}.")
    if answer.num_slots:
        say(f"Its trials hold {formatting.count_of(answer.num_slots, 'slot')}.")
    for sentence in (*answer.sentences, answer.remark):
        if sentence:
            say(sentence)
    if answer.trials:
        say("\nTrials", style="bold")
        show(table(_TRIAL_COLUMNS, (list(_trial_cells(one)) for one in answer.trials)))


def _trial_cells(trial: TrialWhy) -> Iterator[str | Text]:
    yield str(trial.number)
    yield trial.job_id
    yield formatting.NOTHING if trial.job_state is None else state_text(trial.job_state)
    yield str(trial.num_slots)
    yield trial.sentence


def _explain_job(answer: Why) -> None:
    tasks = f" with {formatting.count_of(answer.num_tasks, 'task')}" if answer.num_tasks or answer.target_tasks else ""
    aim = f", to become {answer.target_tasks}" if answer.target_tasks != answer.num_tasks else ""
    of_search = "" if answer.trial is None else f" (trial {answer.trial} of the search {answer.search})"
    say(f"{answer.job_id}{of_search} is {answer.state}{tasks}{aim}.")
    say(answer.sentence)
    if answer.remark:
        say(answer.remark)
    if answer.trial is not None:
        say(f"`pliant why {answer.search}` tells how its search stands.")
    if answer.history:
        say("\nDecisions, newest first", style="bold")
        shown = answer.history[:_NUM_DECISIONS]
        cells = ([formatting.clock_time(event.at), _change(event.data), event.message] for event in shown)
        show(table(_DECISION_COLUMNS, cells))


def _change(data: object) -> str:
    if not isinstance(data, dict) or "from" not in data or "to" not in data:
        return ""
    return f"{data['from']} → {data['to']}"
