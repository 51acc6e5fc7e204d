"""Options and arguments that several commands share, so that they read alike everywhere."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pliant.cli.session import complete_job

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="Id (job-3), number (3) or unique name.", autocompletion=complete_job, show_default=False
    ),
]
OptionalJobArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]", help="Only this job: id, number or name.", autocompletion=complete_job, show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Print its output until it has ended.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Return when it has ended; code 1 unless it completed.")]


def option(text: str, *names: str, metavar: str = "TEXT") -> Any:
    """Return an option that shows no default."""
    return typer.Option(*names, help=text, metavar=metavar, show_default=False)


def filled(given: Mapping[str, object]) -> dict[str, object]:
    """Return what was given; an option that was left out is None."""
    return {name: value for name, value in given.items() if value is not None}


def whole_path(given: str | None) -> str | None:
    """Return the path seen from the root, links kept: a virtual environment's Python is one."""
    return None if given is None else os.path.abspath(os.path.expanduser(given))
