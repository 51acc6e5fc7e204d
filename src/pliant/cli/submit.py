"""The command `submit`: finds the script, makes the request, sends the code."""

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError

from pliant.cli.follow import follow_job
from pliant.cli.options import JsonOption
from pliant.cli.problems import input_error
from pliant.cli.screen import print_json, say
from pliant.cli.session import open_client
from pliant.client import Client
from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import DEFAULT_PRIORITY, Job
from pliant.core.lifecycle import JobState
from pliant.wire.api import JobRequest

_USUAL_NAMES: Final = ("train.py", "main.py")
_IMPORT: Final = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


def _option(text: str, *names: str, metavar: str = "TEXT", plain: bool = False) -> Any:
    """Return an option; `plain` ones show no default, because it is none or said in the text."""
    return typer.Option(*names, help=text, metavar=metavar, show_default=not plain)


PathArgument = Annotated[
    Path, typer.Argument(metavar="PATH", help="A folder of code, or one Python file.", show_default=False)
]
ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGS", help="What comes after -- is passed to the script.", show_default=False),
]
ScriptOption = Annotated[str | None, _option("The file to run, relative to PATH, if it is not clear.", plain=True)]
NameOption = Annotated[str | None, _option("For people; default: the script's name.", plain=True)]
MaxOption = Annotated[int, _option("Grow up to this many tasks.", "--max", metavar="N")]
MinOption = Annotated[int, _option("Start with, and pause below, this many tasks.", "--min", metavar="N")]
PriorityOption = Annotated[int, _option("1 to 10000; twice the priority gets twice the slots.", metavar="N")]
SlotsOption = Annotated[int, _option("GPUs (or CPU slots) that every task holds.", metavar="N")]
VirtualOption = Annotated[int | None, _option("Parts of the batch; default: 8, or --max.", metavar="N", plain=True)]
PythonOption = Annotated[str | None, _option("Another Python interpreter, with Pliant installed.", plain=True)]
EnvOption = Annotated[list[str] | None, _option("Environment variable; repeatable.", metavar="K=V", plain=True)]
DataOption = Annotated[str | None, _option("A folder of the server's, given as DATA_DIR.", metavar="DIR", plain=True)]
CheckpointOption = Annotated[int, _option("Epochs between checkpoints; 0: only when paused.", metavar="N")]
AuditOption = Annotated[bool, typer.Option("--audit", help="Record which samples every step used.")]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Print its output until it has ended.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Return when it has ended; code 1 unless it completed.")]


def submit(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    path: PathArgument,
    args: ArgsArgument = None,
    script: ScriptOption = None,
    name: NameOption = None,
    max_tasks: MaxOption = 1,
    min_tasks: MinOption = 1,
    priority: PriorityOption = DEFAULT_PRIORITY,
    slots_per_task: SlotsOption = 1,
    virtual_workers: VirtualOption = None,
    python: PythonOption = None,
    env: EnvOption = None,
    data_dir: DataOption = None,
    checkpoint_freq: CheckpointOption = 1,
    audit: AuditOption = False,
    follow: FollowOption = False,
    wait: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Submit a training: pack code, send it, queue it.

    A folder is packed without .git, __pycache__, .venv, node_modules, *.pyc and
    what its .pliantignore names. A single file is packed alone. If a folder has
    train.py, main.py or one Python file only, that is the script.

    \b
    pliant submit train.py --max 8 -- --epochs 20
    pliant submit project/ --script train.py --min 2 --max 8 --follow
    """
    code = path.expanduser()
    chosen = _script_of(code, script)
    given: dict[str, object] = {
        "name": name,
        "script": chosen,
        "args": args or [],
        "max_tasks": max_tasks,
        "min_tasks": min_tasks,
        "priority": priority,
        "slots_per_task": slots_per_task,
        "virtual_workers": virtual_workers,
        "python": _whole_path(python),
        "env": _env_of(env or ()),
        "data_dir": _whole_path(data_dir),
        "checkpoint_freq": checkpoint_freq,
        "audit": audit,
    }
    request = _request(given)
    _warn_of_siblings(code)
    with open_client(context) as client:
        job = client.submit(code, request)
        _tell(client, job, follow=follow, wait=wait, as_json=as_json)


def _request(given: dict[str, object]) -> JobRequest:
    try:
        return JobRequest.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise input_error(error) from error


def _tell(client: Client, job: Job, *, follow: bool, wait: bool, as_json: bool) -> None:
    if not (follow or wait):
        if as_json:
            print_json(job)
        else:
            say(f"{job.id} ({job.spec.name}) is submitted; `pliant logs -f {job.id}` follows it")
        return
    say(f"{job.id} ({job.spec.name}) is submitted", stderr=True)
    ended = follow_job(client, job.id) if follow else client.wait(job.id, timeout_s=math.inf)
    if as_json:
        print_json(ended)
    say(f"{ended.id} {ended.state.value}" + (f": {ended.reason}" if ended.reason else ""), stderr=True)
    if ended.state is not JobState.COMPLETED:
        raise typer.Exit(1)


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
        raise InvalidInput(
            Problem(field="PATH", message=f"{str(code)!r} is neither a folder nor a file; check the path")
        )
    if given is not None:
        return given
    there = sorted(file.name for file in code.glob("*.py"))
    usual = [name for name in _USUAL_NAMES if name in there]
    if usual or len(there) == 1:
        return usual[0] if usual else there[0]
    found = f"it has {', '.join(there[:8])}" if there else "it has no Python file at its top"
    raise _unclear(f"say which file of {str(code)!r} to run ({found})")


def _unclear(message: str) -> InvalidInput:
    return InvalidInput(Problem(field="--script", message=message))


def _env_of(given: Sequence[str]) -> dict[str, str]:
    wrong = [pair for pair in given if "=" not in pair]
    if wrong:
        raise InvalidInput(
            *(Problem(field="--env", message=f"{pair!r} has no '='; give it as NAME=VALUE") for pair in wrong)
        )
    return dict(pair.split("=", 1) for pair in given)


def _whole_path(given: str | None) -> str | None:
    """Return the path seen from the root, links kept: a virtual environment's Python is one."""
    return None if given is None else os.path.abspath(os.path.expanduser(given))


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
