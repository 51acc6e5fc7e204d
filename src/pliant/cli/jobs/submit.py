"""The command `submit`: finds the script, makes the request, sends the code."""
# ruff: noqa: ARG001 (a parameter declares an option; those that are fields of the request are taken from the context)

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pliant.api.jobs import JobRequest
from pliant.cli import words
from pliant.cli.catalog.environments import environment_of
from pliant.cli.follow import see_through, tell_end
from pliant.cli.jobs.plan import advice
from pliant.cli.options import FollowOption, JsonOption, WaitOption, filled, whole_path
from pliant.cli.problems import checked
from pliant.cli.screen import print_json, say
from pliant.cli.session import job_id_of, open_client
from pliant.client import Client
from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import DEFAULT_CHECKPOINT_EVERY_S, DEFAULT_PRIORITY, DEFAULT_QUEUE, Job

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
QueueOption = Annotated[str, _option("Where it waits; `pliant queues` lists them.", metavar="NAME")]
PythonOption = Annotated[str | None, _option("Another Python interpreter, with Pliant installed.", plain=True)]
EnvironmentOption = Annotated[
    str | None, _option("Run in this: a name, a path, or conda:NAME.", metavar="NAME|DIR|conda:NAME", plain=True)
]
RequirementsOption = Annotated[
    str | None, _option("Run with these; the server builds it once.", metavar="FILE", plain=True)
]
EnvOption = Annotated[list[str] | None, _option("Environment variable; repeatable.", metavar="K=V", plain=True)]
DataOption = Annotated[str | None, _option("A folder of the server's, given as DATA_DIR.", metavar="DIR", plain=True)]
DatasetOption = Annotated[str | None, _option("A data set, given as DATA_DIR and kin.", metavar="NAME", plain=True)]
CheckpointOption = Annotated[int, _option("Epochs between checkpoints; 0: only when paused.", metavar="N")]
CheckpointEveryOption = Annotated[
    float, _option("Seconds between them inside an epoch; 0: none.", "--checkpoint-every", metavar="SECONDS")
]
ModeOption = Annotated[
    str, _option("exact: the same bits for any number of workers; fast: stock sums.", metavar="exact|fast")
]
WeightsOption = Annotated[
    str | None, _option("Start from these weights: a state_dict's path, or a job.", metavar="PATH|JOB", plain=True)
]
ResumeOption = Annotated[str | None, _option("Start from a job's newest checkpoint.", metavar="JOB", plain=True)]
FixedOption = Annotated[
    int | None, _option("A torchrun-style script of N processes; never resized.", "--fixed", metavar="N", plain=True)
]
RestartsOption = Annotated[
    int | None, _option("With --fixed: start again so often after a failure; default: 3.", metavar="N", plain=True)
]
MemoryOption = Annotated[
    str | None, _option("End a task that uses more memory, such as 4GB.", "--memory", metavar="SIZE", plain=True)
]
AuditOption = Annotated[bool, typer.Option("--audit", help="Record which samples every step used.")]

_AS_GIVEN: Final = (
    "name",
    "max_tasks",
    "min_tasks",
    "priority",
    "queue",
    "slots_per_task",
    "virtual_workers",
    "mode",
    "checkpoint_freq",
    "checkpoint_every_s",
    "dataset",
    "max_restarts",
    "audit",
)
"""Options that are fields of the request as they are."""


def submit(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    path: PathArgument,
    args: ArgsArgument = None,
    script: ScriptOption = None,
    name: NameOption = None,
    max_tasks: MaxOption = 1,
    min_tasks: MinOption = 1,
    priority: PriorityOption = DEFAULT_PRIORITY,
    queue: QueueOption = DEFAULT_QUEUE,
    slots_per_task: SlotsOption = 1,
    virtual_workers: VirtualOption = None,
    python: PythonOption = None,
    environment: EnvironmentOption = None,
    requirements: RequirementsOption = None,
    env: EnvOption = None,
    data_dir: DataOption = None,
    dataset: DatasetOption = None,
    mode: ModeOption = "exact",
    weights: WeightsOption = None,
    resume_from: ResumeOption = None,
    checkpoint_freq: CheckpointOption = 1,
    checkpoint_every_s: CheckpointEveryOption = DEFAULT_CHECKPOINT_EVERY_S,
    fixed: FixedOption = None,
    max_restarts: RestartsOption = None,
    memory: MemoryOption = None,
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
    pliant submit ddp.py --fixed 4
    """
    code = path.expanduser()
    given: dict[str, object] = {
        **{field: context.params[field] for field in _AS_GIVEN},
        "script": _script_of(code, script),
        "args": args or [],
        "python": whole_path(python),
        "environment": environment_of(code, environment, requirements),
        "env": _env_of(env or ()),
        "data_dir": whole_path(data_dir),
        "memory_bytes": None if memory is None else words.num_bytes_of(memory, "--memory"),
        **_size(fixed, min_tasks, max_tasks),
    }
    request = checked(JobRequest, filled(given))
    _warn_of_siblings(code)
    _warn_of_parts(request)
    with open_client(context) as client:
        request = _from(client, request, weights, resume_from)
        _tell(client, client.submit(code, request), follow=follow, wait=wait, as_json=as_json)


def _size(fixed: int | None, min_tasks: int, max_tasks: int) -> dict[str, object]:
    """Return the fields that `--fixed` sets.

    Raises:
        InvalidInput: another size is given as well.
    """
    if fixed is None:
        return {}
    if not {min_tasks, max_tasks} <= {1, fixed}:
        message = f"a fixed job has {fixed} processes, no more and no fewer; leave --min and --max out"
        raise InvalidInput(Problem(field="--fixed", message=message))
    return {"fixed": True, "min_tasks": fixed, "max_tasks": fixed}


def _from(client: Client, request: JobRequest, weights: str | None, resume_from: str | None) -> JobRequest:
    """Return the request with what the training starts from: jobs by id, paths from the root."""
    if weights is None and resume_from is None:
        return request
    given: dict[str, object] = request.model_dump(exclude_defaults=True)
    if weights is not None:
        is_path = os.sep in weights or weights.endswith(".pt") or Path(weights).is_file()
        given["weights"] = whole_path(weights) if is_path else job_id_of(client, weights)
    if resume_from is not None:
        given["resume_from"] = job_id_of(client, resume_from)
    return checked(JobRequest, filled(given))


def _warn_of_parts(request: JobRequest) -> None:
    """Warn if some sizes of the job would leave tasks idle for a part of every step."""
    if request.fixed or request.mode == "fast":
        return
    said = advice(request.spec().virtual_workers, request.min_tasks, request.max_tasks)
    if said:
        say(f"note: {said}", stderr=True)


def _tell(client: Client, job: Job, *, follow: bool, wait: bool, as_json: bool) -> None:
    said = f"{job.id} ({job.spec.name}) is submitted"
    ended = see_through(client, job.id, said, job, follow=follow, wait=wait, as_json=as_json)
    if ended is not None:
        if as_json:
            print_json(ended)
        tell_end(ended.id, ended)


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
