"""The command line: one command per verb, the settings before them, and what an error becomes."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pliant.cli.admin import queues, server, upkeep
from pliant.cli.catalog import datasets, environments, models, share, templates, trainings
from pliant.cli.jobs import events, jobs, logs, plan, result, run, submit, top
from pliant.cli.people import audit, login, tokens, users
from pliant.cli.problems import report
from pliant.cli.session import Settings
from pliant.core.errors import PliantError

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
`pliant --install-completion` sets up completion of commands and jobs.
"""

app = typer.Typer(
    name="pliant",
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


app.command("up")(server.up)
app.command("down")(server.down)
app.command("submit")(submit.submit)
app.command("plan")(plan.plan)
app.command("ps")(jobs.ps)
app.command("show")(jobs.show_job)
app.command("top")(top.top)
app.command("logs")(logs.logs)
app.command("why")(jobs.why)
app.command("events")(events.events)
app.command("set")(jobs.set_job)
app.command("stop")(jobs.stop)
app.command("result")(result.result)
app.command("share")(share.share)
app.command("login")(login.login)
app.command("logout")(login.logout)
app.command("whoami")(login.whoami)
app.command("passwd")(login.passwd)
app.add_typer(users.app, name="users")
app.add_typer(tokens.app, name="tokens")
app.command("audit")(audit.audit)
app.command("retention")(upkeep.retention)
app.command("cleanup")(upkeep.cleanup)
app.command("backup")(upkeep.backup)
app.command("restore")(upkeep.restore)
app.add_typer(datasets.app)
app.add_typer(environments.env)
app.add_typer(queues.queues)
app.add_typer(queues.groups)
app.add_typer(templates.app)
app.add_typer(models.app)
app.command("train")(trainings.train)
app.command("trainings")(trainings.trainings)
app.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(run.run)
app.command("version")(server.version)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Raises:
        SystemExit: always, with the exit code.
    """
    try:
        app(args=argv, prog_name="pliant")
    except (PliantError, TimeoutError) as error:
        sys.exit(report(error))


if __name__ == "__main__":
    main()
