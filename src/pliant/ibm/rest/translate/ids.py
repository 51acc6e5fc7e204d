"""IBM's identifiers of what Pliant calls jobs and tasks, and back. Pure.

An exec is `wmla-N` for `job-N`. Its application `app-YYYYMMDDhhmmss-NNNN` and its driver
`driver-YYYYMMDDhhmmss-NNNN-UUID` carry the time of submission and the job's number, an executor `K-UUID` the task's. A
UUID follows from the id, so nothing has to be kept.
"""

import re
from datetime import UTC, datetime
from uuid import UUID, uuid5

from pliant.core.errors import NotFound
from pliant.core.job import Job, JobId, Task

_SPACE = UUID("6f1d2d1e-7d0f-5b57-9a56-5d1c0f1a2b3c")
_EXEC = re.compile(r"wmla-([1-9][0-9]{0,17})")
_JOB = re.compile(r"job-([1-9][0-9]{0,17})")
_APPLICATION = re.compile(r"(?:app|driver)-[0-9]{14}-0*([1-9][0-9]{0,17})(?:-[0-9a-f-]{36})?")
_EXECUTOR = re.compile(r"([1-9][0-9]{0,17})(?:-[0-9a-f-]{36})?")


def number_of(job_id: str) -> int:
    """Return the N of job-N."""
    return int(job_id.rpartition("-")[2])


def exec_id(job_id: str) -> str:
    """Return the exec that a job is."""
    return f"wmla-{number_of(job_id)}"


def job_of_exec(name: str) -> JobId:
    """Return the job that an exec is.

    Raises:
        NotFound: it is no such id.
    """
    found = _EXEC.fullmatch(name)
    if found is None:
        raise NotFound(_hint(name) or f"{name!r} is no exec; their ids are wmla-1, wmla-2, …")
    return JobId(f"job-{found[1]}")


def app_id(job: Job) -> str:
    """Return the application of a job."""
    return f"app-{_stamp(job)}"


def driver_id(job: Job) -> str:
    """Return the driver of a job's application."""
    return f"driver-{_stamp(job)}-{uuid5(_SPACE, job.id)}"


def _stamp(job: Job) -> str:
    at = datetime.fromtimestamp(job.submitted_at, UTC)
    return f"{at:%Y%m%d%H%M%S}-{number_of(job.id):04d}"


def job_of_application(name: str) -> JobId:
    """Return the job that an application, its driver or an exec of this name can only be; compare it with `is_named`.

    Raises:
        NotFound: it is no such id.
    """
    found = _APPLICATION.fullmatch(name) or _EXEC.fullmatch(name)
    if found is None:
        message = f"there is no application {name!r}; list the applications to see which there are"
        raise NotFound(_hint(name) or message)
    return JobId(f"job-{found[1]}")


def _hint(name: str) -> str:
    """Return what to ask for instead of a job by the name that `pliant` shows; empty if it is none."""
    found = _JOB.fullmatch(name)
    return f"this is the name of a job, and here it is asked for by its exec's id, wmla-{found[1]}" if found else ""


def is_named(job: Job, name: str) -> bool:
    """Tell whether this is the name of the job's exec, application or driver, to the last character."""
    return name in (exec_id(job.id), app_id(job), driver_id(job))


def executor_id(task: Task) -> str:
    """Return the executor that a task is."""
    return f"{executor_number(task)}-{uuid5(_SPACE, task.id)}"


def executor_number(task: Task) -> int:
    """Return the K of job-N.K."""
    return int(task.id.rpartition(".")[2])


def is_executor(task: Task, name: str) -> bool:
    """Tell whether a task is the executor of this name, which is its whole id or its number alone."""
    found = _EXECUTOR.fullmatch(name)
    return found is not None and name in (executor_id(task), str(executor_number(task)))
