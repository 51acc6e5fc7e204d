"""Options and arguments that several commands share, so that they read alike everywhere."""

from typing import Annotated

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
