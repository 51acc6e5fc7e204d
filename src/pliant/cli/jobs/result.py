"""The commands `files` and `result`: what a job has left, listed or fetched."""

from pathlib import Path
from typing import Annotated

import typer

from pliant.cli import formatting
from pliant.cli.options import JobArgument, JsonOption
from pliant.cli.screen import TableColumn, print_json, say, say_notes, show_list
from pliant.cli.session import job_id_of, open_client
from pliant.core.errors import NotFound

_LEFT_OUT = "left-out.txt"
_COLUMNS = (TableColumn(title="PATH"), TableColumn(title="SIZE", right=True), TableColumn(title="CHANGED"))


def files(context: typer.Context, job: JobArgument, as_json: JsonOption = False) -> None:
    """List the results of a job: what `result` would fetch now.

    Below work/ is what the job wrote into the folder of its code, where it runs:
    new and changed files, but for what .pliantignore names.
    """
    with open_client(context) as client:
        found = client.files(job_id_of(client, job))
    rows = ([file.path, formatting.size(file.num_bytes), formatting.date_time(file.changed_at)] for file in found.files)
    show_list(found, _COLUMNS, rows, as_json=as_json, nothing="It has left nothing yet.")
    say_notes(f"left out: {line}" for line in found.left_out)


def result(
    context: typer.Context,
    job: JobArgument,
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A new or empty folder; default: JOB-result here.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only such files: '*.pt', model/; repeatable.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the results of a job.

    They are the model, the logs, what the script wrote to RESULT_DIR, and below
    work/ what it wrote into the folder of its code. `pliant files` lists them.

    \b
    pliant result digits
    pliant result digits --only model/ --only 'work/*.png'
    """
    with open_client(context) as client:
        job_id = job_id_of(client, job)
        folder = client.result(job_id, (to or Path(f"{job_id}-result")).expanduser().absolute(), only=only or ())
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    if only and not found:
        folder.rmdir()
        raise NotFound(f"no file of {job_id} is called so; `pliant files {job_id}` lists what there is")
    if as_json:
        print_json(
            {"job_id": job_id, "folder": str(folder), "files": [str(path.relative_to(folder)) for path in found]}
        )
        return
    num_bytes = sum(path.stat().st_size for path in found)
    say(
        f"{folder} holds the results of {job_id}: {formatting.count_of(len(found), 'file')}, "
        f"{formatting.size(num_bytes)}"
    )
    if (folder / _LEFT_OUT).is_file():
        say_notes([f"{folder / _LEFT_OUT} says what could not be sent"])
