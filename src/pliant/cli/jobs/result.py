"""The command `result`."""

from pathlib import Path
from typing import Annotated

import typer

from pliant.cli import formatting
from pliant.cli.options import JobArgument, JsonOption
from pliant.cli.screen import print_json, say
from pliant.cli.session import job_id_of, open_client


def result(
    context: typer.Context,
    job: JobArgument,
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A new or empty folder; default: JOB-result here.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the results of a job.

    They are the model, the logs and what the script wrote to RESULT_DIR.
    """
    with open_client(context) as client:
        job_id = job_id_of(client, job)
        folder = client.result(job_id, (to or Path(f"{job_id}-result")).expanduser().absolute())
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if as_json:
        print_json(
            {"job_id": job_id, "folder": str(folder), "files": [str(path.relative_to(folder)) for path in files]}
        )
        return
    num_bytes = sum(path.stat().st_size for path in files)
    say(
        f"{folder} holds the results of {job_id}: {formatting.count_of(len(files), 'file')}, "
        f"{formatting.size(num_bytes)}"
    )
