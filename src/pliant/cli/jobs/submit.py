"""The command `submit`: finds the script, makes the request, sends the code; or reads and writes job files."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pliant.api.arrays import ArrayRequest
from pliant.api.jobs import JobRequest
from pliant.api.rerun import ALTERNATIVES
from pliant.cli.catalog.environments import environment_of
from pliant.cli.fields import Given, read_typed, takes
from pliant.cli.jobs.arrays import report_array, values_of
from pliant.cli.jobs.asked import OPTIONS, find_jobs, report_job, secret_of, size_of, take_jobs, validate_job
from pliant.cli.jobs.job_file import JobFile, is_job_file, read_job_file, write_job_file
from pliant.cli.jobs.job_schema import print_schema
from pliant.cli.jobs.plan import bad_division
from pliant.cli.options import FollowOption, JsonOption, WaitOption, leave_out_none
from pliant.cli.problems import validate
from pliant.cli.screen import say, say_notes
from pliant.cli.session import open_client
from pliant.client import Client
from pliant.client.folders.script import find_script
from pliant.core.errors import InvalidInput
from pliant.core.near_name import near_name

_IMPORT: Final = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)
_INSTEAD: Final = (*ALTERNATIVES, ("python", "environment", "requirements"))

PathArgument = Annotated[
    Path,
    typer.Argument(metavar="PATH", help="A folder of code, one Python file, or a job file.", show_default=False),
]
ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGS", help="What comes after -- is passed to the script.", show_default=False),
]


SchemaOption = Annotated[
    bool,
    typer.Option(
        "--print-schema",
        help="Print the JSON Schema of job files.",
        callback=print_schema,
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
    pliant submit ddp.py --fixed 4
    pliant submit evaluate.py --after 7
    pliant submit train.py --array lr=0.1,0.01 --array batch=32,64 -- --epochs 3
    pliant submit train.py --max 8 --save job.yaml; pliant submit job.yaml
    """
    given |= {"array": None if array is None else values_of(array), "array_max": array_max, "args": args}
    if save is not None and (follow or wait or as_json):
        raise InvalidInput.at("--save", "nothing is submitted with it; leave --follow, --wait and --json out")
    file = read_job_file(path) if is_job_file(path) else None
    typed, from_file = (given | {"path": str(path)}, ()) if file is None else _join(context, given, file)
    with nullcontext() if file is None else file.naming_places(from_file):
        asked = _read(typed)
        if save is None:
            _send(context, asked, follow=follow, wait=wait, as_json=as_json)
            return
    say_notes(write_job_file(save, typed))
    say(f"{save} is written; `pliant submit {save}` submits it")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is to be sent."""

    code: Path
    request: JobRequest
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
    own = {"script": _script_of(code, given.get("script")), "args": typed.get("args") or [], "environment": environment}
    array = leave_out_none({name: typed.get(name) for name in ("array", "array_max")})
    kind = ArrayRequest if array else JobRequest
    request = validate_job(kind, leave_out_none(given | own | size_of(given) | secret_of(given) | array))
    return _Asked(code=code, request=request, jobs=jobs)


def _join(context: typer.Context, given: Given, file: JobFile) -> tuple[Given, Sequence[str]]:
    """Return what was typed and what a file says, of which the first wins; and which of it the file says."""
    typed = {name for name in given if _is_typed(context, name)}
    instead = {other for group in _INSTEAD if typed & {*group} for other in group}
    instead |= {"min_tasks", "max_tasks"} if "fixed" in typed else set()
    said = {name: value for name, value in file.typed.items() if name not in typed | instead}
    joined = given | said
    if "env" in typed:
        named = {pair.partition("=")[0] for pair in given["env"]}
        kept = [pair for pair in file.typed.get("env", []) if pair.partition("=")[0] not in named]
        joined["env"] = [*kept, *given["env"]]
    return joined, [name for name in said if name in file.lines]


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _send(context: typer.Context, asked: _Asked, *, follow: bool, wait: bool, as_json: bool) -> None:
    """Submit what is asked for, and say so.

    Raises:
        InvalidInput: it is an array, which cannot be followed; or whatever the server finds wrong.
    """
    if follow and isinstance(asked.request, ArrayRequest):
        raise InvalidInput.at(
            "--follow", "an array has many outputs; use --wait, or `pliant logs -f` of one of its jobs"
        )
    _warn_of_siblings(asked.code)
    _warn_of_parts(asked.request)
    with open_client(context) as client:
        _submit(client, asked, follow=follow, wait=wait, as_json=as_json)


def _submit(client: Client, asked: _Asked, *, follow: bool, wait: bool, as_json: bool) -> None:
    request = asked.request
    if asked.jobs:
        given = {**request.model_dump(exclude_defaults=True), **find_jobs(client, asked.jobs)}
        request = validate(type(request), given)
    if isinstance(request, ArrayRequest):
        made = client.arrays.submit(asked.code, request)
        say_notes(made.notes)
        report_array(client, made, wait=wait, as_json=as_json)
    else:
        report_job(client, client.submit(asked.code, request).job, follow=follow, wait=wait, as_json=as_json)


def _warn_of_parts(request: JobRequest) -> None:
    """Warn if the number of parts that was asked for leaves tasks idle for a part of every step at some sizes."""
    if request.fixed or request.mode == "fast" or request.virtual_workers is None:
        return
    if said := bad_division(request.virtual_workers, request.min_tasks, request.max_tasks):
        say_notes([said])


def _script_of(code: Path, given: str | None) -> str:
    """Return the script to run, relative to what is packed.

    Raises:
        InvalidInput: there is no such path, or it is not clear which script is meant.
    """
    if code.is_file():
        if given is not None and given != code.name:
            raise _unclear(
                f"{str(code)!r} is a file and is packed alone; leave --script out or give its folder as PATH"
            )
        return code.name
    if not code.is_dir():
        near = near_name(code.name, _names_in(code.parent))
        meant = "check the path" if near is None else f"is {str(code.with_name(near))!r} meant?"
        raise InvalidInput.at("PATH", f"{str(code)!r} is neither a folder nor a file; {meant}")
    if given is not None:
        return given
    return find_script(code)


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _unclear(message: str) -> InvalidInput:
    return InvalidInput.at("--script", message)


def _warn_of_siblings(code: Path) -> None:
    """Warn if a file that is packed alone imports what lies beside it."""
    if not code.is_file():
        return
    imported = set(_IMPORT.findall(code.read_text(encoding="utf-8", errors="replace"))) - {code.stem}
    beside = sorted(name for name in imported if (code.parent / f"{name}.py").is_file())
    if beside:
        say(
            f"note: only {code.name} is packed, but it imports {', '.join(beside)} from beside it; "
            f"give the folder as PATH to send both",
            stderr=True,
        )
