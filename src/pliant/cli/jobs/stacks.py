"""The command `stacks`."""

from typing import Annotated

import typer

from pliant.cli.options import JobArgument, JsonOption
from pliant.cli.screen import print_json, say
from pliant.cli.session import job_id_of, open_client
from pliant.client.nouns.stacks import TaskStacks
from pliant.core.errors import NotFound


def stacks(
    context: typer.Context,
    job: JobArgument,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Wait so long for answers.")] = 5.0,
    as_json: JsonOption = False,
) -> None:
    """Show in which line of Python every thread of a job is.

    It does no harm to the job. Of one that has ended it shows what was recorded
    when it was stuck.

    \b
    pliant stacks digits
    """
    with open_client(context) as client:
        job_id = job_id_of(client, job)
        if client.job(job_id).job.ended:
            found = client.recorded_stacks(job_id)
            if not found:
                raise NotFound(f"{job_id} has ended, and nobody asked where its threads were while it ran")
        else:
            found = client.stacks(job_id, timeout_s=timeout)
    if as_json:
        print_json(found)
        return
    for number, task in enumerate(found):
        say(("\n" if number else "") + _headline(task), style="bold")
        say(task.text.rstrip() if task.text else "It did not answer: it is still starting, or runs no Python script.")


def _headline(task: TaskStacks) -> str:
    waits = "" if task.waits is None else (", waits for other tasks" if task.waits else "")
    return task.task_id + (f": {task.line}" if task.line else "") + waits
