"""What a submission in IBM's words means as a Pliant job. Pure: what only the server knows is given.

Every option is honoured, or a note says why it has no effect; what would run something else than was meant is refused.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import ValidationError

from pliant.api.faults import problems_of
from pliant.api.jobs import JobRequest
from pliant.core.errors import InvalidInput, Problem
from pliant.core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, MAX_PRIORITY
from pliant.ibm.rest.translate.arguments import ENVIRONMENT, Arguments, pairs, variables
from pliant.ibm.rest.translate.frameworks import Framework, FrameworkKind
from pliant.ibm.rest.translate.hardware import Nodes, Submission, SubmittedSource, read_sources
from pliant.ibm.rest.translate.program import Program

_AMOUNT = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?P<unit>[KMGT])?i?B?", re.IGNORECASE)
DATA_ROOT: Final = "."
"""What a client means that names no path of data."""
_FLAG_OF = {
    "memory_bytes": "--workerMemoryLimit",
    "name": "--appName",
    "script": "--model-main",
    "max_tasks": "--numWorker",
    "slots_per_task": "--workerDeviceNum",
    "priority": "--msd-priority",
    "queue": "--consumer",
    "environment": "--conda-env-name",
    "dataset": "--cs-datastore-meta",
    "data_dir": "--cs-datastore-meta",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionContext:
    """What a submission can name on a server, and what only that server knows."""

    user: str
    """Who submits."""
    python_version: str
    """Such as `3.11`: what runs a program that names no environment."""
    queues: Collection[str] = frozenset({DEFAULT_QUEUE})
    has_dataset: Callable[[str], bool] = lambda _: False
    has_environment: Callable[[str], bool] = lambda _: False
    """Of a registered one, or `conda:NAME` or `conda:/path`."""
    data_folder: Callable[[str], str | None] = lambda _: None
    """Returns the whole path of a folder below the data root; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many workers, and how large."""

    num_workers: int
    slots: int
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    """What has been found so far."""

    fields: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def size_of(arguments: Arguments, framework: Framework, nodes: Nodes) -> Size:
    """Return how many workers a submission asks for: its options first, then its hardware, then the framework's own.

    Raises:
        InvalidInput: a number is out of the framework's bounds, with every such number.
    """
    notes: list[str] = []
    problems: list[Problem] = []
    options = dict(pairs(arguments.get("--edt-options") or "", field="--edt-options"))
    most = options.pop("maxWorkers", None)
    if most is not None and not (most.isascii() and most.isdigit() and len(most) < 10):
        problems.append(Problem(field="--edt-options", message=f"maxWorkers {most!r} is not a whole number; give one"))
        most = None
    notes += [f"--edt-options {name}={value} is accepted and has no effect" for name, value in options.items()]
    asked = arguments.whole("--numWorker")
    asked = asked if asked is not None else int(most) if most is not None else nodes.num_nodes
    num_workers = framework.num_workers if asked is None else asked
    if not 1 <= num_workers <= framework.max_workers:
        message = f"{num_workers} is not 1 to {framework.max_workers}, as {framework.name} has it; give another number"
        problems.append(Problem(field="--numWorker", message=message))
    slots = _slots(arguments, nodes, notes)
    if slots > framework.max_gpu_per_worker:
        message = f"{slots} is above {framework.max_gpu_per_worker}, the most of {framework.name}; give less"
        problems.append(Problem(field="--workerDeviceNum", message=message))
    if problems:
        raise InvalidInput(*problems)
    return Size(num_workers=num_workers, slots=slots, notes=tuple(notes))


def _slots(arguments: Arguments, nodes: Nodes, notes: list[str]) -> int:
    text = arguments.get("--workerDeviceNum") or arguments.get("--gpuPerWorker")
    asked = float(text) if text is not None else nodes.gpu.num_gpu
    if asked is None:
        return 1
    slots = max(1, math.ceil(asked))
    if slots != asked:
        notes.append(
            f"a worker gets {slots} slot{'s' * (slots != 1)}, not {asked:g}: slots are whole, and at least one"
        )
    return slots


def to_job_request(
    arguments: Arguments, framework: Framework, program: Program, submission: Submission, known: SubmissionContext
) -> tuple[JobRequest, tuple[str, ...]]:
    """Return the job that a submission means, and what of it has no effect.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    reading = _Reading(notes=list(arguments.without_effect))
    for read in (_size, _place, _environment, _data):
        try:
            read(reading, arguments, framework, submission, known)
        except InvalidInput as error:
            reading.problems += error.problems
    _note_ignored(reading, arguments, submission.hardwareSpec.nodes, known)
    if framework.kind is FrameworkKind.ELASTIC and not program.is_script:
        message = f"{framework.name} runs Python scripts only; use distPyTorch, or name a .py file"
        reading.problems.append(Problem(field="--exec-start", message=message))
    name = arguments.get("--appName") or PurePosixPath(program.file or program.words[0]).name
    fields = reading.fields | {"name": name, "script": program.script, "args": program.arguments}
    if reading.problems:
        raise InvalidInput(*reading.problems)
    try:
        return JobRequest(**fields), tuple(reading.notes)
    except ValidationError as error:
        raise InvalidInput(*name_options(problems_of(error))) from error


def name_options(problems: Iterable[Problem], queue: str = "--consumer") -> tuple[Problem, ...]:
    """Return what is wrong with the fields of a job, by the options that said them; `queue` is the one of its queue."""
    options = {**_FLAG_OF, "queue": queue}
    return tuple(replace(one, field=options.get(one.field, one.field)) for one in problems)


def _size(
    reading: _Reading, arguments: Arguments, framework: Framework, submission: Submission, _: SubmissionContext
) -> None:
    size = size_of(arguments, framework, submission.hardwareSpec.nodes)
    reading.notes += size.notes
    fixed = framework.kind is not FrameworkKind.ELASTIC
    reading.fields |= {"slots_per_task": size.slots, "max_tasks": size.num_workers}
    if fixed:
        reading.fields |= {"fixed": True, "min_tasks": size.num_workers, "max_restarts": 0}
    env = dict(variables(arguments.options.get(ENVIRONMENT, ()), field=ENVIRONMENT))
    if level := arguments.get("--debug-level"):
        env.setdefault("DLI_LOGGER_LEVEL", level)
    env.setdefault("WMLA_NWORKER", str(size.num_workers))
    env.setdefault("WMLA_WORKER_NDEVICE", str(size.slots))
    env.setdefault("FRAME_WORK", framework.name)
    reading.fields["env"] = env
    if limit := arguments.get("--workerMemoryLimit"):
        reading.fields["memory_bytes"] = _bytes_of(limit, "--workerMemoryLimit")


def _bytes_of(text: str, flag: str) -> int:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise InvalidInput.at(flag, f"{text!r:.80} is no amount of memory; give one like 4G")
    power = " KMGT".index((found["unit"] or " ").upper())
    return round(float(found["number"]) * float(1024**power))


def _place(reading: _Reading, arguments: Arguments, _: Framework, __: Submission, known: SubmissionContext) -> None:
    priority = arguments.whole("--msd-priority")
    if priority is not None and priority < 1:
        reading.problems.append(Problem(field="--msd-priority", message=f"{priority} is not above 0; give 1 to 10000"))
    if priority is not None and priority > MAX_PRIORITY:
        reading.notes.append(f"--msd-priority {priority} counts as {MAX_PRIORITY}, the highest there is")
    reading.fields["priority"] = DEFAULT_PRIORITY if priority is None else max(1, min(priority, MAX_PRIORITY))
    for flag in ("--consumer", "--ig"):
        asked = arguments.get(flag)
        if asked is not None:
            reading.fields["queue"] = find_queue(asked, known.queues, field=flag)
            return


def find_queue(asked: str, queues: Collection[str], *, field: str) -> str:
    """Return the queue of a name, or that the last part of a consumer's path names which is one.

    Raises:
        InvalidInput: there is none.
    """
    for name in (asked, *reversed([part for part in asked.split("/") if part])):
        if name in queues:
            return name
    known = ", ".join(sorted(queues)[:20])
    raise InvalidInput.at(field, f"Instance group name {asked} not found: there is no such queue; there are {known}")


def _environment(
    reading: _Reading, arguments: Arguments, _: Framework, __: Submission, known: SubmissionContext
) -> None:
    name, home = arguments.get("--conda-env-name"), arguments.get("--conda-home")
    ways = [name, f"conda:{name}"] if name else []
    if name and home:
        ways.insert(0, f"conda:{home.rstrip('/')}/envs/{name}")
    found = next((way for way in ways if known.has_environment(way)), None)
    if found is not None:
        reading.fields["environment"] = found
    elif name is not None:
        message = (
            f"there is neither an environment nor a conda environment {name!r:.200} that you can use; make it, name "
            f"another one, or leave the option out: then the server's own Python {known.python_version} runs"
        )
        reading.problems.append(Problem(field="--conda-env-name", message=message))
    version = arguments.get("--python-version")
    if version is not None and found is None and not f"{known.python_version}.".startswith(f"{version.rstrip('.')}."):
        message = f"--python-version {version}: Python {known.python_version} runs; name an environment for another one"
        reading.notes.append(message)


def _data(
    reading: _Reading, arguments: Arguments, _: Framework, submission: Submission, known: SubmissionContext
) -> None:
    sources: Sequence[SubmittedSource] = submission.dataSource
    if text := arguments.get("--data-source"):
        sources = read_sources(text)
    paths: list[str] = []
    for source in sources:
        if source.type == "fs":
            paths += [path.strip() for path in source.location.paths.split(",") if path.strip()] or [DATA_ROOT]
        else:
            reading.notes.append(f"a data source of type {source.type!r} has no effect: only fs is known here")
    where = "dataSource" if sources else "--cs-datastore-meta"
    if not sources and (meta := arguments.get("--cs-datastore-meta")):
        paths = _paths_of_meta(pairs(meta, field=where), where)
    if not paths:
        return
    reading.notes += [f"{where}: {path!r} has no effect; a job has one folder of data" for path in paths[1:]]
    _take_data(reading, paths[0], where, known)


def _paths_of_meta(meta: Mapping[str, str], where: str) -> list[str]:
    if meta.get("type", "fs") != "fs":
        raise InvalidInput.at(where, f"type {meta['type']!r} is not known here; give type=fs")
    return [meta.get("data_path") or DATA_ROOT] if meta.keys() & {"type", "data_path"} else []


def _take_data(reading: _Reading, path: str, where: str, known: SubmissionContext) -> None:
    """Take a whole path as a folder of the server, another as a data set, or as a folder below the data root."""
    if PurePosixPath(path).is_absolute():
        reading.fields["data_dir"] = path
    elif known.has_dataset(name := path.strip("/")):
        reading.fields["dataset"] = name
    elif folder := known.data_folder(name):
        reading.fields["data_dir"] = folder
    else:
        message = f"there is neither a data set {name!r} nor a folder of this name below the data root; import it first"
        if path == DATA_ROOT:
            message = "the server's data root is no folder; name a data set, or ask who runs the server to make it"
        reading.problems.append(Problem(field=where, message=message))


def _note_ignored(reading: _Reading, arguments: Arguments, nodes: Nodes, known: SubmissionContext) -> None:
    """Note what is asked for and cannot be had."""
    user = arguments.get("--submit-user")
    if user is not None and user != known.user:
        reading.notes.append(f"--submit-user {user}: the job is {known.user}'s, who has logged on")
    if kind := arguments.get("--workerDeviceType"):
        reading.notes.append(f"--workerDeviceType {kind}: a pool has slots of one kind, and tasks get those")
    if nodes.mem.size:
        reading.notes.append(f"hardwareSpec: memory of {nodes.mem.size} is not measured out; a task has its slots")
    if nodes.cpu.units:
        reading.notes.append(f"hardwareSpec: {nodes.cpu.units} processors are not measured out; a task has its slots")
