"""The command `submit`: finds the script, makes the request, sends the code; or reads and writes job files."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pliant.api.jobs import JobRequest
from pliant.cli.fields import Given, read_typed, takes
from pliant.cli.jobs.arrays import report_array, values_of
from pliant.cli.jobs.asked import OPTIONS, find_jobs, report_job, secret_of, size_of, take_jobs, validate_job
from pliant.cli.jobs.code import environment_of, is_job_file, script_of, warn_of_parts, warn_of_siblings
from pliant.cli.jobs.preview import DryRunOption, show_preview
from pliant.cli.options import ArgsArgument, FollowOption, JsonOption, WaitOption, leave_out_none
from pliant.cli.problems import validate
from pliant.cli.screen import say, say_notes
from pliant.cli.session import open_client
from pliant.client import Client
from pliant.core.errors import InvalidInput

if TYPE_CHECKING:
    from pliant.api.arrays import ArrayRequest
    from pliant.cli.jobs.file_keys import JobFile

PathArgument = Annotated[
    Path,
    typer.Argument(metavar="PATH", help="A folder of code, one Python file, or a job file.", show_default=False),
]


def _print_schema(value: bool) -> None:
    if value:
        from pliant.cli.jobs.job_schema import print_schema  # what a search says is in it, too

        print_schema(value)


SchemaOption = Annotated[
    bool,
    typer.Option(
        "--print-schema",
        help="Print the JSON Schema of job files.",
        callback=_print_schema,
        is_eager=True,
        expose_value=False,
    ),
]


@takes(OPTIONS, as_typed=True)
def submit(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    path: PathArgument,
    args: ArgsArgument = None,
    *,
    given: Given,
    array: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V,V…", help="A job for every combination of these; repeatable.", show_default=False),
    ] = None,
    array_max: Annotated[
        int | None, typer.Option(metavar="N", help="Run so many of them at once at most.", show_default=False)
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a job file of this instead of submitting it.", show_default=False),
    ] = None,
    _schema: SchemaOption = False,
    follow: FollowOption = False,
    wait: WaitOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Submit a training: pack code, send it, queue it.

    A folder is packed without .git, __pycache__, .venv, node_modules,
    .ipynb_checkpoints, *.pyc and what its .pliantignore names. A single file is packed alone. If a folder has
    train.py, main.py or one Python file only, that is the script. A job file
    (.yaml, .yml, .json) says all this; options given beside it win over it.

    What the script writes to RESULT_DIR, or into the folder of its code (10 GiB
    at most, and not what .pliantignore names), is its result: see `pliant files`.

    \b
    pliant submit train.py --max 8 -- --epochs 20
    pliant submit project/ --script train.py --min 2 --max 8 --follow
    pliant submit train.py --min 2 --max 8 --dry-run
    pliant submit ddp.py --fixed 4
    pliant submit evaluate.py --after 7
    pliant submit train.py --array lr=0.1,0.01 --array batch=32,64 -- --epochs 3
    pliant submit train.py --max 8 --save job.yaml; pliant submit job.yaml
    """
    given |= {"array": None if array is None else values_of(array), "array_max": array_max, "args": args}
    if save is not None and (follow or wait or dry_run or as_json):
        raise InvalidInput.at("--save", "nothing is submitted with it; leave --follow, --wait, --dry-run, --json out")
    file = _read_file(path) if is_job_file(path) else None
    typed, from_file = (given | {"path": str(path)}, ()) if file is None else file.beside(context, given)
    with nullcontext() if file is None else file.naming_places(from_file):
        asked = _read(typed)
        if dry_run:
            _foresee(context, asked, as_json=as_json)
            return
        if save is None:
            _send(context, asked, follow=follow, wait=wait, as_json=as_json)
            return
    from pliant.cli.jobs.job_file import write_job_file  # YAML takes its time to come

    say_notes(write_job_file(save, typed))
    say(f"{save} is written; `pliant submit {save}` submits it")


def _read_file(path: Path) -> "JobFile":
    from pliant.cli.jobs.job_file import read_job_file

    return read_job_file(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is to be sent."""

    code: Path
    request: JobRequest
    is_array: bool
    """It is an `ArrayRequest`, whose body is made only if one is asked for."""
    jobs: Mapping[str, Any]
    """The fields of the request that name jobs, as people call them."""


def _read(typed: Given) -> _Asked:
    """Return what is asked for with what was typed.

    Raises:
        InvalidInput: with what is wrong with it.
    """
    code = Path(typed["path"]).expanduser()
    given = read_typed(OPTIONS, typed)
    jobs = take_jobs(given)
    environment = environment_of(code, given.pop("environment", None), given.pop("requirements", None))
    own = {"script": script_of(code, given.get("script")), "args": typed.get("args") or [], "environment": environment}
    array = leave_out_none({name: typed.get(name) for name in ("array", "array_max")})
    request = validate_job(
        _kind_of(is_array=bool(array)), leave_out_none(given | own | size_of(given) | secret_of(given) | array)
    )
    return _Asked(code=code, request=request, is_array=bool(array), jobs=jobs)


def _kind_of(*, is_array: bool) -> type[JobRequest]:
    if not is_array:
        return JobRequest
    from pliant.api.arrays import ArrayRequest

    return ArrayRequest


def _send(context: typer.Context, asked: _Asked, *, follow: bool, wait: bool, as_json: bool) -> None:
    """Submit what is asked for, and say so.

    Raises:
        InvalidInput: it is an array, which cannot be followed; or whatever the server finds wrong.
    """
    if follow and asked.is_array:
        raise InvalidInput.at(
            "--follow", "an array has many outputs; use --wait, or `pliant logs -f` of one of its jobs"
        )
    warn_of_siblings(asked.code)
    warn_of_parts(asked.request)
    with open_client(context) as client:
        _submit(client, asked, follow=follow, wait=wait, as_json=as_json)


def _foresee(context: typer.Context, asked: _Asked, *, as_json: bool) -> None:
    """Print what would become of a job that was submitted now.

    Raises:
        InvalidInput: it is an array; or whatever the server finds wrong.
    """
    if asked.is_array:
        raise InvalidInput.at("--dry-run", "it foresees one job, and this is an array; leave --array out")
    with open_client(context) as client:
        show_preview(client.previews.submission(_with_ids(client, asked)), as_json=as_json)


def _with_ids(client: Client, asked: _Asked) -> JobRequest:
    """Return the request with the jobs that it names by their ids."""
    request = asked.request
    if not asked.jobs:
        return request
    return validate(type(request), {**request.model_dump(exclude_defaults=True), **find_jobs(client, asked.jobs)})


def _submit(client: Client, asked: _Asked, *, follow: bool, wait: bool, as_json: bool) -> None:
    request = _with_ids(client, asked)
    if asked.is_array:
        made = client.arrays.submit(asked.code, cast("ArrayRequest", request))
        say_notes(made.notes)
        report_array(client, made, wait=wait, as_json=as_json)
    else:
        report_job(client, client.submit(asked.code, request).job, follow=follow, wait=wait, as_json=as_json)
