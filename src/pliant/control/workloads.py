"""The use cases of people on workloads: submit, change, stop. Each refuses with a reason or notes all in a draft."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pliant.control.archive import unpack
from pliant.control.draft import Draft
from pliant.control.live import LiveJob
from pliant.control.settings import JobFolders
from pliant.control.submission import problems_of_bounds, problems_of_code, problems_of_spec
from pliant.control.transitions import stop
from pliant.core.errors import Conflict, InvalidInput, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.policy.membership import Membership
from pliant.wire.api import JobPatch

NEW_PREFIX = ".new-"
"""Folders of submissions that are being checked begin with this; whatever a crash leaves of them is removed."""


@contextmanager
def unpacked(spec: JobSpec, archive: Path, jobs: Path) -> Iterator[Path]:
    """Check a submission and yield a folder with its code, on the same disk as the jobs; moved away or removed after.

    Raises:
        InvalidInput: with everything that is wrong with it.
        TooLarge: it unpacks to more than is allowed.
        Unavailable: the disk cannot take it.
    """
    try:
        jobs.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=NEW_PREFIX, dir=jobs))
    except OSError as error:
        raise Unavailable(f"the code cannot be kept in {jobs}: {error.strerror}") from error
    try:
        code = folder / "code"
        code.mkdir()
        _check(spec, archive, code)
        yield code
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check(spec: JobSpec, archive: Path, code: Path) -> None:
    problems = problems_of_spec(spec)
    try:
        unpack(archive, code)
    except InvalidInput as error:
        raise InvalidInput(*error.problems, *problems) from error
    except OSError as error:
        raise Unavailable(f"the code cannot be unpacked in {code.parent.parent}: {error.strerror}") from error
    problems += problems_of_code(spec, code)
    if problems:
        raise InvalidInput(*problems)


def keep(code: Path, folders: JobFolders) -> None:
    """Make the folders of a job and move its code to its place."""
    for folder in (folders.model, folders.logs, folders.state):
        folder.mkdir(parents=True)
    code.rename(folders.code)


def submitted(draft: Draft, job_id: JobId, spec: JobSpec, owner: str) -> Job:
    """Note a new job."""
    job = Job(
        id=job_id,
        spec=spec,
        owner=owner,
        state=JobState.PENDING,
        priority=spec.priority,
        min_tasks=spec.min_tasks,
        max_tasks=spec.max_tasks,
        submitted_at=draft.now,
    )
    live = draft.put(LiveJob(job=job, membership=Membership(job_id=job_id), adopted_at=draft.now))
    size = f"{spec.min_tasks} to {spec.max_tasks} tasks" if spec.max_tasks > 1 else "1 task"
    draft.say(
        EventKind.JOB_SUBMITTED,
        f"{live.label} was submitted by {owner}: {size}, priority {spec.priority}",
        job_id=job_id,
        data={"priority": spec.priority, "min_tasks": spec.min_tasks, "max_tasks": spec.max_tasks},
    )
    return job


def changed(draft: Draft, live: LiveJob, patch: JobPatch, revision: int | None) -> None:
    """Note a person's change of a job.

    Raises:
        InvalidInput: the limits would not fit each other or V.
        Conflict: the job has ended, or was changed since `revision`.
    """
    job = live.job
    refuse_ended(job)
    if revision is not None and revision != job.revision:
        raise Conflict(
            f"{job.id} was changed meanwhile: it is at revision {job.revision}, you saw {revision}; look again"
        )
    asked = {
        name: value for name in ("priority", "min_tasks", "max_tasks") if (value := getattr(patch, name)) is not None
    }
    changes = {name: value for name, value in asked.items() if value != getattr(job, name)}
    if not changes:
        return
    new = replace(job, **changes)
    limit = min(job.spec.virtual_workers, live.virtual_workers or job.spec.virtual_workers)
    if problems := problems_of_bounds(new.min_tasks, new.max_tasks, limit):
        raise InvalidInput(*problems)
    words = ", ".join(f"{name} {getattr(job, name)} → {value}" for name, value in changes.items())
    draft.say(EventKind.JOB_CHANGED, f"{live.label}: {words}", job_id=job.id, data=changes)
    draft.put(replace(live, job=new))


def stopped(draft: Draft, live: LiveJob, who: str) -> None:
    """Note that a person wants a job to end.

    Raises:
        Conflict: it has ended.
    """
    refuse_ended(live.job)
    stop(draft, live, f"{who} stopped it")


def refuse_ended(job: Job) -> None:
    """Refuse to act on a job that has ended.

    Raises:
        Conflict: it has.
    """
    if job.ended and job.ended_at is not None:
        at = datetime.fromtimestamp(job.ended_at, UTC).isoformat(sep=" ", timespec="seconds")
        words = {JobState.COMPLETED: "completed", JobState.FAILED: "failed", JobState.STOPPED: "been stopped"}
        raise Conflict(f"{job.id} has already {words[job.state]} at {at}; submit it again to run it once more")
