"""The command `rerun`: a job that is there, submitted again, but for changes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from pliant.api.rerun import RerunRequest
from pliant.cli import formatting
from pliant.cli.fields import FieldOption, Given, options_of, read_typed, takes
from pliant.cli.jobs.asked import find_jobs, report_job, secret_of, size_of, take_jobs, validate_job
from pliant.cli.jobs.code import environment_of
from pliant.cli.options import JOB, NOTICE, FollowOption, JobArgument, JsonOption, WaitOption, leave_out_none
from pliant.cli.screen import say
from pliant.cli.session import job_id_of, open_client
from pliant.cli.spelling import respell
from pliant.client import JobHandle
from pliant.core.errors import Problem
from pliant.core.job import JobSettings
from pliant.core.notice import NoticeSettings

_CHANGES: Final[Mapping[str, FieldOption]] = {
    **options_of(JobSettings, JOB, but=("requirements",)),
    **options_of(NoticeSettings, NOTICE),
}
"""What is left out is not given. Requirements lie in the code, which stays."""
_NAMES: Final = {name: option.name for name, option in _CHANGES.items()} | {"args": "ARGS", "array": "--array"}


@takes(_CHANGES, as_typed=True)
def rerun(
    context: typer.Context,
    job: JobArgument,
    args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGS", help="What comes after -- is passed to the script, instead of what was.", show_default=False
        ),
    ] = None,
    *,
    given: Given,
    follow: FollowOption = False,
    wait: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Submit a job again: code and settings, as it was submitted.

    The code is what was sent then, whatever is in the folder today. Options
    say what is to be otherwise; --env adds variables to those of the job. A name
    or path is taken away by '', a limit by off. Of somebody else's job that is
    shared with you, secrets are left out.

    \b
    pliant rerun 3
    pliant rerun digits --max 4 --follow
    pliant rerun 3 --priority 9000 -- --lr 0.01
    pliant rerun 3 --time-limit off --dataset ''
    """
    away = {name for name, typed in given.items() if typed == "" and name in RerunRequest.can_be_none}
    given = read_typed(_CHANGES, {name: typed for name, typed in given.items() if name not in away})
    named = take_jobs(given)
    environment = environment_of(Path.cwd(), given.pop("environment", None), None)
    own = {"args": args or None, "environment": environment, **size_of(given), **secret_of(given)}
    request = validate_job(RerunRequest, given | leave_out_none(own) | dict.fromkeys(away))
    with open_client(context) as client:
        changes = request.model_dump(exclude_unset=True) | find_jobs(client, named)
        made = client.rerun(job_id_of(client, job), **changes)
        if not as_json:
            _say_differences(made, stderr=follow or wait)
        report_job(client, made.job, follow=follow, wait=wait, as_json=as_json)


def _say_differences(made: JobHandle, *, stderr: bool) -> None:
    """Say what is otherwise than in the job that is run again."""
    again = f"{made.id} runs {made.rerun_of} again"
    if not made.differences:
        say(f"{again}, as it was submitted", stderr=stderr)
        return
    say(f"{again}, but for:", stderr=stderr)
    for one in made.differences:
        name = respell(Problem(field=one.field, message=""), _NAMES).field
        before, after = (formatting.NOTHING if text is None else text for text in (one.before, one.after))
        say(f"  {name}: {before} → {after}", stderr=stderr)
