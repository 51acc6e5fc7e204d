"""The command `logs`."""

from enum import StrEnum
from typing import Annotated

import typer

from pliant.api.job_views import JobDetail
from pliant.cli.follow import STREAMS, Readers, Write, follow_job, leaders, read_tasks, write_plain, write_prefixed
from pliant.cli.options import JobArgument, JsonLinesOption
from pliant.cli.screen import print_json_line, say
from pliant.cli.session import job_id_of, open_client
from pliant.cli.wait import leaving_alone
from pliant.core.errors import NotFound


class Stream(StrEnum):
    """What to read."""

    STDOUT = "stdout"
    STDERR = "stderr"
    BOTH = "both"


def logs(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK", help="Id (job-3.2) or number (2); repeatable.", show_default=False),
    ] = None,
    all_tasks: Annotated[bool, typer.Option("--all", "-a", help="Every task.")] = False,
    stream: Annotated[Stream, typer.Option(help="Which output.")] = Stream.BOTH,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, metavar="N", help="Only the last lines.", show_default=False)
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Print what a job writes to stdout and stderr.

    Each goes to our own; by default those of the task that leads. Lines of
    several tasks begin with the task.

    \b
    pliant logs digits -f
    pliant logs 3 --all --stream stderr --tail 20
    """
    streams = STREAMS if stream is Stream.BOTH else (stream.value,)
    with open_client(context) as client:
        detail = client.job(job_id_of(client, job))
        job_id = detail.job.id
        task_ids = _task_ids(detail, task or [], all_tasks=all_tasks)
        write = _writer(as_json=as_json, several=all_tasks or len(task_ids) > 1)
        if follow and task:
            readers = Readers(client, job_id, streams)
            for task_id in task_ids:
                readers.start(task_id, tail)
            with leaving_alone(job_id):
                readers.write_rest(write)
        elif follow:
            ended = follow_job(client, job_id, streams=streams, every_task=all_tasks, tail=tail, write=write)
            say(f"{ended.id} {ended.state.value}", stderr=True)
        elif task_ids:
            for line in read_tasks(client, job_id, task_ids, streams=streams, tail=tail):
                write(line)
        else:
            say(f"{job_id} has started no task yet ({detail.job.state.value})", stderr=True)


def _task_ids(detail: JobDetail, given: list[str], *, all_tasks: bool) -> list[str]:
    there = [task.id for task in detail.tasks]
    if all_tasks:
        return [*there]
    if not given:
        return [task.id for task in leaders(detail)]
    named = [f"{detail.job.id}.{text}" if text.isdecimal() else text for text in given]
    for task_id in named:
        if task_id not in there:
            raise NotFound(f"{detail.job.id} has no task {task_id!r}; `pliant show {detail.job.id}` lists its tasks")
    return [*named]


def _writer(*, as_json: bool, several: bool) -> Write:
    if as_json:
        return print_json_line
    return write_prefixed if several else write_plain
