"""The use cases of people on workloads: submit, change, stop. Each refuses with a reason or notes all in a draft."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pliant.api.jobs import JobPatch
from pliant.control.jobs import transitions
from pliant.control.jobs.draft import Draft
from pliant.control.jobs.inputs import CheckCode
from pliant.control.jobs.kind import Kinds
from pliant.control.jobs.live import LiveJob
from pliant.control.jobs.waiting import AWAITED, Awaited, wait_for, why_waits
from pliant.control.requests.origin import FOLDER
from pliant.control.requests.reach import Reach
from pliant.control.requests.submission import problems_of_code, problems_of_spec
from pliant.control.requests.trial_files import put_values, reads_files
from pliant.control.settings import ARCHIVE, JobFolders
from pliant.control.upkeep.results import note_submitted
from pliant.core.errors import Conflict, InvalidInput, Stale, Unavailable
from pliant.core.event import EventKind
from pliant.core.job import DEFAULT_QUEUE, Job, JobId, JobSpec, TaskId
from pliant.core.job_params import params_of_args
from pliant.core.lifecycle import JobState
from pliant.core.tag import changed_tags, words_of_tags
from pliant.files.archive import CODE_LIMITS, MODEL_LIMITS, unpack
from pliant.files.folder import copy_file
from pliant.files.pack import pack
from pliant.files.space import disk_error
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove

STACKS_EVERY_S = 2.0
"""Every answer is an event; nobody is to fill the store with them."""
NOTES = "submitted"
NEW_PREFIX = ".new-"
"""Folders of submissions that are being checked begin with this; whatever a crash leaves of them is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job that is about to be queued."""

    id: JobId
    spec: JobSpec
    after: tuple[str, ...] = ()
    """What it has to wait for to complete."""
    after_any: tuple[str, ...] = ()
    """What it has to wait for to end."""
    rerun_of: JobId | None = None
    """The job that it runs again."""
    colour: int = 0


@contextmanager
def unpack_code(spec: JobSpec, archive: Path, reach: Reach, kinds: Kinds, check: CheckCode) -> Iterator[Path]:
    """Check a submission and yield a folder with its code, on the same disk as the jobs.

    Whoever keeps the code moves it away; what is left after the block is removed. `reach` is what its owner may name;
    `check` finds out what else is wrong.

    Raises:
        InvalidInput: with everything that is wrong with it.
        TooLarge: it unpacks to more than is allowed.
        Unavailable: the disk cannot take it.
    """
    jobs = reach.jobs
    try:
        jobs.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=NEW_PREFIX, dir=jobs))
    except OSError as error:
        raise disk_error(jobs, error) from error
    try:
        code = folder / "code"
        code.mkdir()
        _unpack(spec, archive, code, (kinds, reach), check)
        _note(spec, code, archive)
        yield code
    finally:
        discard_folder(folder)


def _unpack(spec: JobSpec, archive: Path, code: Path, rules: tuple[Kinds, Reach], check: CheckCode) -> None:
    problems = problems_of_spec(spec, *rules)
    try:
        unpack(archive, code, limits=CODE_LIMITS if spec.endpoint is None else MODEL_LIMITS)
    except InvalidInput as error:
        raise InvalidInput(*error.problems, *problems) from error
    except OSError as error:
        raise disk_error(code.parent.parent, error) from error
    problems += problems_of_code(spec, code) + check(str(code))
    try:
        problems += put_values(spec, code)
    except OSError as error:
        raise disk_error(code.parent.parent, error) from error
    if problems:
        raise InvalidInput(*problems)


def _note(spec: JobSpec, code: Path, archive: Path) -> None:
    """Note the code as it was submitted; the archive that is kept is the one that was sent, or has more in it."""
    kept = code.parent / NOTES / ARCHIVE
    try:
        note_submitted(code, code.parent / NOTES)
        if reads_files(spec):
            with kept.open("xb") as out:
                out.writelines(pack(code))
        else:
            copy_file(archive, kept)
    except OSError as error:
        raise disk_error(code.parent.parent, error) from error


def clean(jobs: Path) -> None:
    """Remove what is left of submissions that a server was checking when it was killed."""
    for folder in jobs.glob(f"{NEW_PREFIX}*"):
        discard_folder(folder)


def close_folders(jobs: Path) -> None:
    """Close the folders of jobs to other users, before these may pass through the folder above.

    Raises:
        Unavailable: that is not possible.
    """
    try:
        for folder in jobs.glob("*"):
            if folder.stat().st_mode & 0o067:
                folder.chmod(folder.stat().st_mode & 0o710)
    except OSError as error:
        raise Unavailable(f"the folders of jobs in {jobs} cannot be closed to others: {error}") from error


@contextmanager
def place_code(code: Path, folders: JobFolders) -> Iterator[None]:
    """Make the folders of a job and move its code to its place; nothing of it stays if the block raises.

    Raises:
        Unavailable: the disk cannot take it.
    """
    try:
        folders.root.mkdir(mode=0o700)
        for folder in (folders.model, folders.logs, folders.state):
            os.makedirs(str(folder))  # nobody else knows of them yet
        code.rename(str(folders.code))
        (code.parent / NOTES).rename(str(folders.submitted))
        if (copies := code.parent / FOLDER).exists():
            copies.rename(folders.root / FOLDER)
        yield
    except BaseException as error:
        discard_folder(folders.root)
        if isinstance(error, OSError):
            raise disk_error(folders.root, error) from error
        raise


def discard_folder(folder: Path) -> None:
    """Remove what is left of a job that was never queued."""
    with suppress(OSError):
        remove(UntrustedPath(folder.parent, folder.name))


def submit(draft: Draft, kinds: Kinds, new: NewJob, owner: str, notes: Sequence[str] = ()) -> Job:
    """Note a new job, and what its owner has to know of it."""
    spec, job_id = new.spec, new.id
    job = Job(
        id=job_id,
        spec=spec,
        owner=owner,
        state=JobState.PENDING,
        priority=spec.priority,
        min_tasks=spec.min_tasks,
        max_tasks=spec.max_tasks,
        queue=spec.queue,
        tags=spec.tags,
        after=new.after,
        after_any=new.after_any,
        submitted_at=draft.now,
        params=params_of_args(spec.args),
        colour=new.colour,
        rerun_of=new.rerun_of,
    )
    if job.after or job.after_any:
        job = replace(job, why=why_waits(job))
    kind = kinds.of(job)
    live = draft.put(kind.begin(job, draft.now))
    again = "" if new.rerun_of is None else f" to run {new.rerun_of} again"
    draft.say(
        EventKind.JOB_SUBMITTED,
        f"{live.label} was submitted by {owner}{again}: {kind.size(spec)}, priority {spec.priority}"
        + (f", queue {spec.queue}" if spec.queue != DEFAULT_QUEUE else "")
        + (f"; it {job.why}" if job.why else ""),
        job_id=job_id,
        data={"priority": spec.priority, "min_tasks": spec.min_tasks, "max_tasks": spec.max_tasks},
    )
    _warn(draft, live, notes)
    return job


def _warn(draft: Draft, live: LiveJob, notes: Sequence[str]) -> None:
    for note in notes:
        draft.say(EventKind.WARNING, f"{live.label}: {note}", job_id=live.id)


def change(
    draft: Draft,
    kinds: Kinds,
    live: LiveJob,
    patch: JobPatch,
    revision: int | None,
    notes: Sequence[str] = (),
    awaited: Awaited | None = None,
) -> None:
    """Note a person's change of a job, and what they have to know of it.

    Args:
        awaited: what the job waits for from now on; None: what it did.

    Raises:
        InvalidInput: the job cannot have such bounds, or so many tags.
        Conflict: the job has ended, or would be resized and is of a kind that cannot be.
        Stale: it was changed since `revision`.
    """
    job = live.job
    if not only_tags(patch):
        refuse_ended(job)
    if revision is not None and revision != job.revision:
        raise Stale(
            f"{job.id} was changed meanwhile: it is at revision {job.revision}, not {revision}; read it again and "
            f"repeat the change"
        )
    wanted = {**patch.changes(), **({} if awaited is None else dict(zip(AWAITED, awaited, strict=True)))}
    if patch.tags is not None:
        wanted["tags"] = changed_tags(job.tags, patch.tags)
    changes = {name: value for name, value in wanted.items() if value != getattr(job, name)}
    if not changes:
        return
    new = replace(job, **changes)
    if changes.keys() & {"min_tasks", "max_tasks"}:
        kinds.of(job).check_resize(live, new.min_tasks, new.max_tasks)
    said = {name: _shown(value) for name, value in changes.items()}
    by = {"who": draft.who} if draft.who else {}
    words = ", ".join(f"{name} {_shown(getattr(job, name))} → {value}" for name, value in said.items())
    draft.say(EventKind.JOB_CHANGED, f"{live.label}: {words}", job_id=job.id, data=said | by)
    _warn(draft, live, notes)
    live = draft.put(replace(live, job=new))
    if changes.keys() & set(AWAITED):
        wait_for(draft, live, new.after, new.after_any, "a person changed that")


def only_tags(patch: JobPatch) -> bool:
    """Tell whether nothing but tags changes, which may also be those of a job that has ended."""
    return patch.changes().keys() <= {"tags"}


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return words_of_tags(value) or "nothing"
    return (", ".join(value) or "nothing") if isinstance(value, tuple) else value


def stop(draft: Draft, kinds: Kinds, live: LiveJob, who: str, *, now: bool = False) -> None:
    """Note that a person wants a job to end: at a step boundary, or at once, when what it has not saved is lost.

    Raises:
        Conflict: it has ended.
    """
    refuse_ended(live.job)
    live = transitions.stop(draft, kinds.of(live.job), live, f"{who} stopped it" + " at once" * now)
    for task in live.running if now else ():
        live = transitions.kill(draft, live, task.id, "was killed by Pliant because its job was stopped at once")


def ask_stacks(draft: Draft, kinds: Kinds, live: LiveJob) -> tuple[TaskId, ...]:
    """Ask the processes of a job where their threads are; return which were asked.

    Raises:
        Conflict: it has ended or has no process; or somebody asked a moment ago.
    """
    refuse_ended(live.job)
    if not live.running:
        raise Conflict(f"{live.id} is {live.job.state.value} and has no process; `why` says what it waits for")
    if live.stacks_at is not None and draft.now - live.stacks_at < STACKS_EVERY_S:
        raise Conflict(
            f"{live.id} was asked for its stacks {draft.now - live.stacks_at:.1f} s ago; its events have them, or ask "
            f"again in {STACKS_EVERY_S:g} s"
        )
    live = kinds.of(live.job).ask_stacks(draft, draft.put(replace(live, stacks_at=draft.now)))
    return tuple(task.id for task in live.running)


def drain(draft: Draft, kinds: Kinds, cause: str) -> None:
    """Note that the server goes down: all jobs save their state and leave their slots at a step boundary."""
    draft.say(EventKind.SERVER_STOPPING, f"the server stops ({cause}); jobs save their state and are paused")
    for live in draft.jobs():
        if live.competes and live.staying:
            staying = tuple(task.id for task in live.staying)
            transitions.leave(draft, kinds.of(live.job), live, staying, cause)


def refuse_ended(job: Job) -> None:
    """Refuse to act on a job that has ended.

    Raises:
        Conflict: it has.
    """
    if job.ended and job.ended_at is not None:
        at = f"{datetime.fromtimestamp(job.ended_at, UTC):%Y-%m-%d %H:%M:%S} UTC"
        words = {JobState.COMPLETED: "completed", JobState.FAILED: "failed", JobState.STOPPED: "been stopped"}
        raise Conflict(f"{job.id} has already {words[job.state]} at {at}; run it again if it is needed")
