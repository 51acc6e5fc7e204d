"""The commands `searches …`: list, show, list trials, change, stop, resume, add trials, read decisions, remove."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer

from pliant.api.searches import DecisionPage, SearchPage, SearchPatch, TrialPage, TrialsRequest
from pliant.cli import formatting
from pliant.cli.fields import Given, takes
from pliant.cli.jobs.why import explain_search
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.problems import validate
from pliant.cli.readable import readable_log
from pliant.cli.screen import print_json, print_outcome, say, show, show_facts, show_list, table
from pliant.cli.searches.asked import CHANGES
from pliant.cli.searches.follow import follow_search, report_end
from pliant.cli.searches.report.write import fetch_report, write_report
from pliant.cli.searches.request import read_values
from pliant.cli.searches.schedule import lineage_of, schedule_columns, schedule_rows
from pliant.cli.searches.storage import hide_password, write_study
from pliant.cli.searches.tables import (
    DECISION_COLUMNS,
    SEARCH_COLUMNS,
    decision_row,
    facts_of,
    say_no_best,
    search_row,
    trial_columns,
    trial_row,
)
from pliant.cli.session import open_client
from pliant.core.errors import InvalidInput
from pliant.core.search import TrialState

searches = typer.Typer(
    name="searches",
    help="Searches: the best values of a script's parameters.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, name_argument("search", "Of the search.")]
_NOTHING: Final = "There are no searches yet; `pliant tune PATH` begins one."
_MAX_BYTES: Final = 16 << 20


@searches.callback()
def searches_or_verb(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the searches that you may see, or do something with one."""
    if context.invoked_subcommand is None:
        _list(context, as_json=as_json)


@searches.command("list")
def list_searches(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the searches that you may see.

    TRIALS are those that have ended, of those that are asked for.
    """
    _list(context, as_json=as_json)


def _list(context: typer.Context, *, as_json: bool) -> None:
    with open_client(context) as client:
        found = tuple(client.searches.list())
    page = SearchPage(searches=found, next=None)
    show_list(page, SEARCH_COLUMNS, map(search_row, found), _NOTHING, as_json=as_json)


@searches.command("show")
def show_search(
    context: typer.Context,
    name: NameArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Watch its trials until it has ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a search: how it stands, what it searches, its best trials."""
    with open_client(context) as client:
        if follow:
            ended = follow_search(client, name, live=True)
            if as_json:
                print_json(ended)
            report_end(ended)
            return
        view = client.searches.get(name)
        best = () if as_json else client.searches.best(name, limit=5)
        line = lineage_of(best[0], lambda number: client.searches.trial(name, number)) if best else ()
    if as_json:
        print_json(view)
        return
    show_facts(facts_of(view))
    if best:
        say("\nBest trials", style="bold")
        show(table(trial_columns(view.settings), (trial_row(view.settings, one) for one in best)))
    if len(line) > 1:
        say("\nSchedule of the best", style="bold")
        show(table(schedule_columns(view.settings), schedule_rows(view.settings, line)))


@searches.command("trials")
def list_trials(
    context: typer.Context,
    name: NameArgument,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            help=f"Only in this state: {', '.join(TrialState)}. Several: with commas, or repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the trials of a search."""
    states = _states(state or ())
    with open_client(context) as client:
        settings = client.searches.get(name).settings
        found = tuple(client.searches.trials(name, states=states))
    rows = (trial_row(settings, one) for one in found)
    page = TrialPage(trials=found, next=None)
    show_list(page, trial_columns(settings), rows, f"{name} has no such trials.", as_json=as_json)


def _states(given: Sequence[str]) -> list[TrialState]:
    words = [word for text in given for word in text.split(",") if word]
    if unknown := [word for word in words if word not in [*TrialState]]:
        raise InvalidInput.at("state", f"{unknown[0]!r} is no state of a trial; give one of {', '.join(TrialState)}")
    return [TrialState(word) for word in words]


@searches.command("best")
def list_best(
    context: typer.Context,
    name: NameArgument,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="So many.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """List the best trials that have completed, the best first.

    Those that violate a constraint are none of them. Of several objectives it
    lists those that no other trial beats (the Pareto front), by the first one.
    `pliant best` fetches the best one.
    """
    with open_client(context) as client:
        view = client.searches.get(name)
        found = client.searches.best(name, limit=limit)
    settings = view.settings
    rows = (trial_row(settings, one) for one in found)
    page = TrialPage(trials=found, next=None)
    show_list(page, trial_columns(settings), rows, say_no_best(view), as_json=as_json)


@searches.command("set")
@takes(CHANGES)
def set_search(context: typer.Context, name: NameArgument, given: Given, as_json: JsonOption = False) -> None:
    """Change the limits of a search; one that had come to a limit goes on.

    \b
    pliant searches set digits --max-trials 100 --parallel off
    """
    with open_client(context) as client:
        view = client.searches.change(name, validate(SearchPatch, given))
    print_outcome(view, f"{view.name} is changed; it is {view.state.value}", as_json=as_json)


@searches.command("stop")
def stop(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Pause a search's trials where they are, and begin no more."""
    with open_client(context) as client:
        view = client.searches.stop(name)
    print_outcome(view, f"{view.name} is stopped; `pliant searches resume {view.name}` lets it go on", as_json=as_json)


@searches.command("resume")
def resume(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Let a search that was stopped go on where it was."""
    with open_client(context) as client:
        view = client.searches.resume(name)
    print_outcome(view, f"{view.name} is {view.state.value}", as_json=as_json)


@searches.command("add")
def add(
    context: typer.Context,
    name: NameArgument,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="JSON: the values of a trial, or a list of such.", show_default=False),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A value of one trial; repeatable.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Let values of your own be tried next; what is left out is chosen.

    They count beyond --max-trials.

    \b
    pliant searches add digits --param lr=0.01 --param act=relu
    pliant searches add digits values.json
    """
    if (file is None) == (not param):
        raise InvalidInput.at("--param", "give values, or a file of them")
    trials = _read_trials(file) if file is not None else [read_values(param or ())]
    asked = validate(TrialsRequest, {"trials": trials})
    with open_client(context) as client, _naming_param() if file is None else nullcontext():
        view = client.searches.add_trials(name, asked.trials)
    what = "it is" if len(asked.trials) == 1 else f"these {len(asked.trials)} are"
    print_outcome(view, f"{view.name}: {what} tried next", as_json=as_json)


@contextmanager
def _naming_param() -> Iterator[None]:
    """Say of what is wrong with the values of the only trial which parameter it is."""
    try:
        yield
    except InvalidInput as error:
        named = (replace(one, field=one.field.replace("trials.0", "param", 1)) for one in error.problems)
        raise InvalidInput(*named) from error


def _read_trials(file: Path) -> Sequence[Mapping[str, Any]]:
    """Return the values of trials that a file of JSON holds.

    Raises:
        InvalidInput: it cannot be read, or holds none.
    """
    try:
        with file.expanduser().open("rb") as opened:
            text = opened.read(_MAX_BYTES + 1)
        found = json.loads(text)
    except OSError as error:
        raise InvalidInput.at("FILE", f"{str(file)!r} cannot be read ({error.strerror}); check the path") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput.at("FILE", f"{str(file)!r} is no JSON ({error}); mend it") from error
    trials = [found] if isinstance(found, dict) else found
    if not (isinstance(trials, list) and all(isinstance(one, dict) for one in trials)):
        message = f'{str(file)!r} holds no values by name; give {{"lr": 0.01}}, or a list of such'
        raise InvalidInput.at("FILE", message)
    return trials


@searches.command("log")
def log(
    context: typer.Context,
    name: NameArgument,
    algorithm: Annotated[
        bool, typer.Option("--algorithm", help="What the algorithm has printed that chooses its values.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what a search decided, and why."""
    with open_client(context) as client:
        if algorithm:
            print_log(client.searches.algorithm_log(name), sys.stdout)
            return
        found = tuple(client.searches.decisions(name))
    page = DecisionPage(decisions=found, last=found[-1].position if found else 0)
    show_list(page, DECISION_COLUMNS, map(decision_row, found), f"{name} has decided nothing yet.", as_json=as_json)


@searches.command("why")
def why(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Tell why a search has the slots it has, and what waits for what."""
    with open_client(context) as client:
        explain_search(client, client.searches.get(name), as_json=as_json)


@searches.command("report")
def report(
    context: typer.Context,
    name: NameArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="A folder; default: NAME-report here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a page about a search, with charts, into a folder.

    Its course, how important parameters are, values side by side, slots over
    time, and the best trials. A report that is there is replaced.

    \b
    pliant searches report digits
    """
    folder = (output or Path(f"{name}-report")).expanduser().absolute()
    with open_client(context) as client:
        page = write_report(fetch_report(client, name), folder)
    print_outcome({"page": str(page)}, f"{page} is the report of {name}", as_json=as_json)


@searches.command("export")
def export(
    context: typer.Context,
    name: NameArgument,
    to: Annotated[
        str,
        typer.Argument(metavar="STORAGE", help="sqlite:///x.db, postgresql://…, x.journal, or env:VARIABLE."),
    ],
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the new study; default: the search's.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a search's trials as a new study of Optuna.

    optuna-dashboard and Optuna itself open it. A URL with a password is better
    kept in a variable, which env:VARIABLE names: others see what is typed.

    \b
    pliant searches export digits sqlite:///studies.db
    """
    with open_client(context) as client:
        settings = client.searches.get(name).settings
        trials = tuple(client.searches.trials(name))
    study = study or name
    write_study(to, study, settings, trials)
    where = hide_password(to)
    said = f"{where} holds the study {study}: {formatting.count_of(len(trials), 'trial')}"
    print_outcome({"storage": where, "study": study, "num_trials": len(trials)}, said, as_json=as_json)


@searches.command("remove")
def remove(context: typer.Context, name: NameArgument) -> None:
    """Forget a search with its trials.

    Jobs of it that have not ended are stopped; all of them stay as jobs.
    """
    with open_client(context) as client:
        client.searches.remove(name)
    say(f"{name} is forgotten")


def print_log(text: str, out: TextIO) -> None:
    """Print what an algorithm has printed: it may be somebody else's, so a terminal gets what it may show."""
    out.write(readable_log(text) if out.isatty() else text)
