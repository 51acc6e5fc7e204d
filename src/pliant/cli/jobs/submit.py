"""The command `submit`: finds the script, makes the request, sends the code."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.api.arrays import ArrayRequest
from pliant.api.jobs import JobRequest, NotedJob
from pliant.cli.catalog.environments import environment_of
from pliant.cli.fields import Given, options_of, takes
from pliant.cli.follow import follow_to_end, print_end
from pliant.cli.jobs.arrays import names_of, report_array, values_of
from pliant.cli.jobs.plan import bad_division
from pliant.cli.options import JOB, NOTICE, FollowOption, JsonOption, WaitOption, leave_out_none, whole_path
from pliant.cli.problems import validate
from pliant.cli.screen import print_json, say, say_notes
from pliant.cli.session import job_id_of, open_client
from pliant.client import Client
from pliant.client.folders.script import find_script
from pliant.core.errors import InvalidInput
from pliant.core.job import JobSettings
from pliant.core.notice import NoticeSettings

_SECRET_VARIABLE: Final = "PLIANT_WEBHOOK_SECRET"
_IMPORT: Final = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


PathArgument = Annotated[
    Path, typer.Argument(metavar="PATH", help="A folder of code, or one Python file.", show_default=False)
]
ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGS", help="What comes after -- is passed to the script.", show_default=False),
]


@takes({**options_of(JobSettings, JOB, defaults=True), **options_of(NoticeSettings, NOTICE, defaults=True)})
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
    follow: FollowOption = False,
    wait: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Submit a training: pack code, send it, queue it.

    A folder is packed without .git, __pycache__, .venv, node_modules, *.pyc and
    what its .pliantignore names. A single file is packed alone. If a folder has
    train.py, main.py or one Python file only, that is the script.

    What the script writes to RESULT_DIR, or into the folder of its code (10 GiB
    at most, and not what .pliantignore names), is its result: see `pliant files`.

    \b
    pliant submit train.py --max 8 -- --epochs 20
    pliant submit project/ --script train.py --min 2 --max 8 --follow
    pliant submit ddp.py --fixed 4
    pliant submit evaluate.py --after 7
    pliant submit train.py --array lr=0.1,0.01 --array batch=32,64 -- --epochs 3
    """
    code = path.expanduser()
    origins = {name: given.pop(name, None) for name in ("weights", "resume_from")}
    awaited = {name: given.pop(name, None) for name in ("after", "after_any")}
    environment = environment_of(code, given.pop("environment", None), given.pop("requirements", None))
    script = _script_of(code, given.get("script"))
    own = {"script": script, "args": args or [], "environment": environment, **_size(given), **_secret(given)}
    kind = JobRequest if array is None and array_max is None else ArrayRequest
    values = {} if array is None else {"array": values_of(array)}
    request = validate(kind, leave_out_none(given | own | values | {"array_max": array_max}))
    if follow and isinstance(request, ArrayRequest):
        raise InvalidInput.at(
            "--follow", "an array has many outputs; use --wait, or `pliant logs -f` of one of its jobs"
        )
    _warn_of_siblings(code)
    _warn_of_parts(request)
    with open_client(context) as client:
        request = _from(client, request, names_of(client, awaited), **origins)
        if isinstance(request, ArrayRequest):
            made = client.arrays.submit(code, request)
            say_notes(made.notes)
            report_array(client, made, wait=wait, as_json=as_json)
        else:
            _report(client, client.submit(code, request).job, follow=follow, wait=wait, as_json=as_json)


def _size(given: Given) -> dict[str, object]:
    """Return the fields that `--fixed` sets.

    Raises:
        InvalidInput: another size is given as well.
    """
    fixed = given.get("fixed")
    if fixed is None:
        return {}
    if not {given["min_tasks"], given["max_tasks"]} <= {1, fixed}:
        message = f"a fixed job has {fixed} processes, no more and no fewer; leave --min and --max out"
        raise InvalidInput.at("--fixed", message)
    return {"fixed": True, "min_tasks": fixed, "max_tasks": fixed}


def _secret(given: Given) -> dict[str, object]:
    """Return what a webhook's document is signed with, which stands in the environment alone."""
    secret = os.environ.get(_SECRET_VARIABLE)
    return {"webhook_secret": secret} if secret and given.get("webhook") is not None else {}


def _from(
    client: Client,
    request: JobRequest,
    awaited: Mapping[str, Sequence[str]],
    weights: str | None,
    resume_from: str | None,
) -> JobRequest:
    """Return the request with what the training starts from, and after: jobs by id, paths from the root."""
    if weights is None and resume_from is None and not awaited:
        return request
    given: dict[str, object] = {**request.model_dump(exclude_defaults=True), **awaited}
    if weights is not None:
        is_path = os.sep in weights or weights.endswith(".pt") or Path(weights).is_file()
        given["weights"] = whole_path(weights) if is_path else job_id_of(client, weights)
    if resume_from is not None:
        given["resume_from"] = job_id_of(client, resume_from)
    return validate(type(request), leave_out_none(given))


def _warn_of_parts(request: JobRequest) -> None:
    """Warn if the number of parts that was asked for leaves tasks idle for a part of every step at some sizes."""
    if request.fixed or request.mode == "fast" or request.virtual_workers is None:
        return
    if said := bad_division(request.virtual_workers, request.min_tasks, request.max_tasks):
        say_notes([said])


def _report(client: Client, job: NotedJob, *, follow: bool, wait: bool, as_json: bool) -> None:
    say_notes(job.notes)
    said = f"{job.id} ({job.spec.name}) is submitted"
    ended = follow_to_end(client, job.id, said, job, follow=follow, wait=wait, as_json=as_json)
    if ended is not None:
        if as_json:
            print_json(ended)
        print_end(ended.id, ended)


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
        raise InvalidInput.at("PATH", f"{str(code)!r} is neither a folder nor a file; check the path")
    if given is not None:
        return given
    return find_script(code)


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
