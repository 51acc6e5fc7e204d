"""All commands, the settings before them, and what an error becomes.

A command's file is imported when the command is called, and not before: its name and its first sentence, which help
pages and shells show, stand in a table here. So `pliant version` and a shell that completes a name wait for no client.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup

from pliant.cli.settings import Settings
from pliant.cli.spelling import use_spelling_of
from pliant.core.errors import PliantError
from pliant.entry.interrupt import INTERRUPTED, leaving_at_once

_HELP = """Trainings that share GPUs, and grow and shrink while they run.

\b
pliant up -d                        start the server on this machine
pliant submit train.py --max 8      submit a training
pliant top                          watch slots, jobs and decisions
pliant logs -f 1                    follow its output
pliant set 1 --priority 10000       give it more of the slots
pliant result 1                     fetch the trained model
"""

_EPILOG = """\b
Exit codes: 0 ok, 1 the job failed or something unexpected, 2 bad input,
3 not found, 4 no server answers, 5 not possible in the present state,
6 not logged in, or not allowed.
`pliant --install-completion` sets up completion of commands and names.
"""

_FOR_SCRIPTS: Final = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""All that follows the first argument is a script's."""


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """Where a command stands, and what it does in a sentence."""

    path: str
    """Its file, and its function or group in it."""
    help: str
    """The first sentence of its help page."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    hidden: bool = False
    """It is another name of one that the help page has."""


COMMANDS: Final[Mapping[str, CommandPlace]] = MappingProxyType(
    {
        "up": CommandPlace("admin.server:up", "Start the server on this machine."),
        "down": CommandPlace("admin.server:down", "Save all jobs and end the server."),
        "agent": CommandPlace("admin.agent:agent", "Let this machine work for a server on another one."),
        "submit": CommandPlace("jobs.submit:submit", "Submit a training: pack code, send it, queue it."),
        "rerun": CommandPlace("jobs.rerun:rerun", "Submit a job again: code and settings, as it was submitted."),
        "tune": CommandPlace("searches.tune:tune", "Search for the best values of a script's parameters."),
        "best": CommandPlace("searches.best:best", "Fetch the results of a search's best trial, with its values."),
        "plan": CommandPlace("jobs.plan:plan", "Tell how virtual workers divide over tasks."),
        "ps": CommandPlace("jobs.jobs:ps", "List jobs that wait or run, newest first."),
        "show": CommandPlace("jobs.jobs:show_job", "Show a job, its tasks and how it grew and shrank."),
        "top": CommandPlace("jobs.top:top", "Watch slots, endpoints, searches and jobs live; q ends it."),
        "logs": CommandPlace("jobs.logs:logs", "Print what a job writes to stdout and stderr."),
        "metrics": CommandPlace("jobs.metrics:metrics", "Print the loss, metrics and logged values of jobs by step."),
        "why": CommandPlace("jobs.why:why", "Tell why a job, or a search, has the slots it has."),
        "stacks": CommandPlace("jobs.stacks:stacks", "Show in which line of Python every thread of a job is."),
        "shell": CommandPlace("jobs.shell:shell", "Open a shell beside a task of a job, within its walls."),
        "notebook": CommandPlace("jobs.notebook:notebook", "Run Jupyter on slots of the pool, and open it here."),
        "events": CommandPlace("jobs.events:events", "Print what happened, with every decision."),
        "set": CommandPlace("jobs.jobs:set_job", "Change priority, minimum, maximum, queue or tags of a job."),
        "stop": CommandPlace("jobs.jobs:stop", "End a job at its next step boundary, with its state saved."),
        "delete": CommandPlace("jobs.delete:delete", "Delete jobs that have ended, for good, with their results."),
        "files": CommandPlace("jobs.result:files", "List the results of a job: what `result` would fetch now."),
        "result": CommandPlace("jobs.result:result", "Fetch the results of a job."),
        "share": CommandPlace("catalog.share:share", "Let others see a job of yours, its logs and results."),
        "console": CommandPlace("people.console:console", "Open the web console in a browser, logged on."),
        "login": CommandPlace("people.login:login", "Log in at a server; the password is asked for."),
        "logout": CommandPlace("people.login:logout", "End the login at a server, there and here."),
        "whoami": CommandPlace("people.login:whoami", "Tell who you are to the server, and what you may do."),
        "passwd": CommandPlace("people.login:passwd", "Change your own password; your other logins end."),
        "audit": CommandPlace("people.audit:audit", "Print who did or tried what, newest first; for administrators."),
        "retention": CommandPlace("admin.upkeep:retention", "Show or change how long what ended jobs left is kept."),
        "cleanup": CommandPlace("admin.upkeep:cleanup", "Remove what ended jobs left, by the rules."),
        "backup": CommandPlace("admin.upkeep:backup", "Copy all that the server holds into one file, while it runs."),
        "restore": CommandPlace("admin.upkeep:restore", "Make a server's state from a backup."),
        "deploy": CommandPlace("endpoints.deploy:deploy", "Serve a trained job or a model as an endpoint."),
        "predict": CommandPlace("endpoints.predict:predict", "Ask the model of an endpoint; the answer is JSON."),
        "train": CommandPlace("catalog.trainings:train", "Train a model."),
        "trainings": CommandPlace("catalog.trainings:trainings", "List the trainings of a model, or show one."),
        "run": CommandPlace("jobs.run:run", "Run a script alone, without a server.", _FOR_SCRIPTS),
        "version": CommandPlace("admin.version:version", "Print the version."),
        "users": CommandPlace("people.users:app", "Users: list, add, set, remove."),
        "tokens": CommandPlace("people.tokens:app", "Personal tokens: list, add, revoke."),
        "data": CommandPlace("catalog.datasets:app", "Data sets: what trainings read."),
        "env": CommandPlace("catalog.environments:env", "Environments: what tasks run in."),
        "endpoints": CommandPlace("endpoints.endpoints:endpoints", "Endpoints: models that answer requests."),
        "searches": CommandPlace("searches.searches:searches", "Searches: the best values of a script's parameters."),
        "algorithms": CommandPlace(
            "catalog.algorithms:app", "Algorithms: code of your own that chooses values of searches."
        ),
        "queues": CommandPlace("admin.queues:queues", "Queues: where jobs wait, and how they share."),
        "groups": CommandPlace("admin.queues:groups", "Resource groups: named sets of slots."),
        "machines": CommandPlace(
            "admin.machines:machines", "Machines: who sits where; let them join, drain, label them."
        ),
        "nodes": CommandPlace(
            "admin.machines:machines", "Machines: who sits where; let them join, drain, label them.", hidden=True
        ),
        "templates": CommandPlace("catalog.templates:app", "Code that models are made from."),
        "models": CommandPlace("catalog.models:app", "Templates with data, numbers and a training engine."),
    }
)
"""In the order of the help page."""


class Listed(TyperCommand):
    """A command, or a group of them, whose file is not imported yet."""

    def __init__(self, name: str, place: CommandPlace) -> None:
        super().__init__(name, help=place.help, hidden=place.hidden, rich_markup_mode=None)
        self._place = place

    def load(self) -> Any:
        """Return the command itself."""
        file, _, name = self._place.path.partition(":")
        sys.modules.setdefault("httpx._main", cast(Any, None))  # its own command line, which httpx imports if it can
        with leaving_at_once():
            found = getattr(import_module(f"pliant.cli.{file}"), name)
        around = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=self.name)
        else:
            around.command(self.name, context_settings=dict(self._place.settings) or None)(found)
        (command,) = typer.main.get_group(around).commands.values()
        use_spelling_of(command)
        return command


class Commands(TyperGroup):
    """The commands of the table."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, place in COMMANDS.items():
            self.add_command(Listed(name, place))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that is called, imported now, and what follows it."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found.load() if isinstance(found, Listed) else found, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is called; at Ctrl-C say what else there is to know of it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            for note in getattr(interrupt, "__notes__", ()):
                typer.echo(f"\n{note}", err=True)
            raise


app = typer.Typer(
    name="pliant",
    cls=Commands,
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def settings(
    context: typer.Context,
    home: Annotated[Path, typer.Option(envvar="PLIANT_HOME", metavar="DIR", help="State folder of the server.")] = Path(
        "~/.pliant"
    ),
    url: Annotated[
        str | None, typer.Option(envvar="PLIANT_URL", metavar="URL", help="Address of the server, if it is not in DIR.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="PLIANT_TOKEN", metavar="TEXT", help="Its token; better given as environment.")
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(envvar="PLIANT_CA", metavar="FILE", help="Its certificate, or its authority's (PEM).")
    ] = None,
) -> None:
    """Keep what stands before the verb."""
    certificate = None if ca is None else ca.expanduser().absolute()
    context.obj = Settings(home=home.expanduser().absolute(), url=url or None, token=token or None, ca=certificate)


def run(argv: Sequence[str] | None) -> int:
    """Run a command and return its exit code."""
    try:
        code = app(args=argv, prog_name="pliant", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # what cannot be written is told, too
    except typer.Abort:  # at a question of typer's
        return INTERRUPTED
    except (PliantError, OSError, typer.TyperException) as error:
        from pliant.cli.problems import report  # only errors need it

        return report(error)
    return code if isinstance(code, int) else 0
