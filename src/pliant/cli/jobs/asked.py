"""What `submit` and `rerun` share: the options of a job, what they make of them, and what is said of a new job."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pliant.api.jobs import NotedJob
from pliant.cli.fields import FieldOption, Given, options_of
from pliant.cli.jobs.arrays import names_of
from pliant.cli.options import JOB, NOTICE, names_file, whole_path
from pliant.cli.problems import M, validate
from pliant.cli.screen import print_json, say_notes
from pliant.cli.session import job_id_of
from pliant.client import Client
from pliant.core.errors import InvalidInput
from pliant.core.job import JobSettings
from pliant.core.notice import NoticeSettings

OPTIONS: Final[Mapping[str, FieldOption]] = {
    **options_of(JobSettings, JOB, defaults=True),
    **options_of(NoticeSettings, NOTICE, defaults=True),
}
"""Those of `submit`."""
OF_JOBS: Final = ("weights", "resume_from", "after", "after_any")
"""Options that name jobs, which a server knows by their ids."""
_SECRET_VARIABLE: Final = "PLIANT_WEBHOOK_SECRET"


def take_jobs(given: Given) -> dict[str, Any]:
    """Take from what is given what names jobs, and return it."""
    return {name: given.pop(name) for name in OF_JOBS if given.get(name) is not None}


def find_jobs(client: Client, named: Mapping[str, Any]) -> dict[str, object]:
    """Return fields that name jobs, with these by id and paths from the root.

    Raises:
        NotFound, Conflict: see `job_id_of`.
    """
    found: dict[str, object] = dict(
        names_of(client, {name: named[name] for name in ("after", "after_any") if name in named})
    )
    if (weights := named.get("weights")) is not None:
        is_path = names_file(weights, Path.cwd())
        found["weights"] = whole_path(weights) if is_path else job_id_of(client, weights)
    if (resume_from := named.get("resume_from")) is not None:
        found["resume_from"] = job_id_of(client, resume_from)
    return found


def size_of(given: Given) -> dict[str, object]:
    """Return the fields that `--fixed` sets.

    Raises:
        InvalidInput: another size is given as well.
    """
    fixed = given.get("fixed")
    if fixed is None:
        return {}
    if not {given.get("min_tasks", 1), given.get("max_tasks", 1)} <= {1, fixed}:
        message = f"a fixed job has {fixed} processes, no more and no fewer; leave --min and --max out"
        raise InvalidInput.at("--fixed", message)
    return {"fixed": True, "min_tasks": fixed, "max_tasks": fixed}


def validate_job(kind: type[M], given: Mapping[str, object]) -> M:
    """Return a request of these fields.

    Raises:
        InvalidInput: with everything that is wrong with them; of a size that `--fixed` sets as that.
    """
    try:
        return validate(kind, given)
    except InvalidInput as error:
        of_size = ("min_tasks", "max_tasks") if given.get("fixed") else ()
        problems = (replace(one, field="fixed") if one.field in of_size else one for one in error.problems)
        raise InvalidInput(*dict.fromkeys(problems)) from error


def secret_of(given: Given) -> dict[str, object]:
    """Return what a webhook's document is signed with, which stands in the environment alone."""
    secret = os.environ.get(_SECRET_VARIABLE)
    return {"webhook_secret": secret} if secret and given.get("webhook") is not None else {}


def report_job(client: Client, job: NotedJob, *, follow: bool, wait: bool, as_json: bool) -> None:
    """Say that a job was submitted; follow it or wait for its end if that is asked for."""
    from pliant.cli.follow import follow_to_end, print_end  # the job is submitted: nothing waits for it

    say_notes(job.notes)
    said = f"{job.id} ({job.spec.name}) is submitted"
    ended = follow_to_end(client, job.id, said, job, follow=follow, wait=wait, as_json=as_json)
    if ended is not None:
        if as_json:
            print_json(ended)
        print_end(ended.id, ended)
