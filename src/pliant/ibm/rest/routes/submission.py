"""A submission in IBM's words, from what was sent to a queued job and the exec that is kept of it."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pliant.core.access import Principal
from pliant.core.dataset import Dataset
from pliant.core.errors import InvalidInput
from pliant.core.job import JobSpec
from pliant.core.registry import MAX_NAME
from pliant.files.space import translate_disk_errors
from pliant.ibm.rest.groups import queue_names
from pliant.ibm.rest.lookup import Exec
from pliant.ibm.rest.routes.server import python_version
from pliant.ibm.rest.translate import arguments, frameworks, generator
from pliant.ibm.rest.translate.execution import Execution
from pliant.ibm.rest.translate.hardware import Submission
from pliant.ibm.rest.translate.job_request import (
    SubmissionContext,
    find_queue,
    name_options,
    size_of,
    to_job_request,
)
from pliant.ibm.rest.translate.package import pack_upload
from pliant.ibm.rest.translate.program import DEFAULT_MAIN, Program, of_words, program_of
from pliant.server.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionForm:
    """What a client has form."""

    args: str
    instance_group: str | None
    """`sigName`."""
    submission: Submission
    uploads: Sequence[Path]
    """The file, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJob:
    """What a submission means as a job."""

    arguments: arguments.Arguments
    framework: frameworks.Framework
    program: Program
    spec: JobSpec
    notes: Sequence[str]
    """What of it has no effect, and why."""
    group: str
    """The instance group, as it was given."""
    queue_option: str
    """What says in which queue the job shall wait."""


def read_job(context: Context, caller: Principal, form: SubmissionForm) -> AskedJob:
    """Return what a submission means.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    asked = arguments.parse(form.args)
    framework = frameworks.load(context.frameworks).get(asked.get("--exec-start") or "")
    program = program_of(asked)
    if framework.generator is not None:
        program = _generate(context, caller, asked, framework, program, form)
    known = submission_context(context, caller)
    request, notes = to_job_request(asked, framework, program, form.submission, known)
    group = asked.get("--consumer") or asked.get("--ig") or form.instance_group
    queue_option = _queue_option(asked, form)
    if group is not None and queue_option == "sigName":
        request = request.model_copy(update={"queue": find_queue(group, known.queues, field="sigName")})
    return AskedJob(
        arguments=asked,
        framework=framework,
        program=program,
        spec=request.spec(),
        notes=notes,
        group=group or "",
        queue_option=queue_option,
    )


@contextmanager
def packed_code(context: Context, asked: AskedJob, uploads: Sequence[Path]) -> Iterator[Path]:
    """Yield an archive of the code that was sent; what is wrong with the job meanwhile is told by its options.

    Raises:
        InvalidInput: with everything that is wrong with it.
        TooLarge, Unavailable: as for every submission.
    """
    with translate_disk_errors(context.uploads), tempfile.TemporaryDirectory(dir=context.uploads) as name:
        archive = pack_upload(uploads, asked.program, Path(name))
        try:
            yield archive
        except InvalidInput as error:
            raise InvalidInput(*name_options(error.problems, queue=asked.queue_option)) from error


def submit(context: Context, caller: Principal, form: SubmissionForm) -> Exec:
    """Check all of a submission, queue its job, and keep the exec.

    Raises:
        InvalidInput: with everything that is wrong with it.
        TooLarge, Unavailable: as for every submission.
    """
    asked = read_job(context, caller, form)
    with packed_code(context, asked, form.uploads) as archive:
        visible = context.sharing.visible_jobs(caller)
        job = context.control.requests.submit(asked.spec, archive, caller.name, visible, asked.notes)
    execution = Execution(
        name=job.id,
        owner=caller.name,
        args=asked.arguments.shown,
        framework=asked.framework.name,
        app_name=asked.arguments.get("--appName") or asked.framework.app_name,
        instance_group=asked.group,
        num_workers=asked.spec.max_tasks,
        notes=job.notes,
    )
    return Exec(context.registry.add(execution, at=job.submitted_at).noun, job)


def _queue_option(asked: arguments.Arguments, form: SubmissionForm) -> str:
    """Return what says in which queue the job shall wait."""
    named = next((option for option in ("--consumer", "--ig") if asked.get(option)), None)
    return named or ("sigName" if form.instance_group else "--consumer")


def _generate(
    context: Context,
    caller: Principal,
    asked: arguments.Arguments,
    framework: frameworks.Framework,
    program: Program,
    form: SubmissionForm,
) -> Program:
    """Return the program that a plug-in's generator makes of the one that was named."""
    size = size_of(asked, framework, form.submission.hardwareSpec.nodes)
    words = generator.command(
        framework,
        model=program.file or DEFAULT_MAIN,
        num_workers=size.num_workers,
        slots_per_worker=size.slots,
        program=asked.program,
        person=caller.name,
        isolation=context.children,
    )
    return replace(of_words(words), file=program.file)


def submission_context(context: Context, caller: Principal) -> SubmissionContext:
    """Return what a submission of this caller can name on this server."""

    def has_dataset(name: str) -> bool:
        kept = context.registry.get(Dataset, name) if 0 < len(name) <= MAX_NAME else None
        return kept is not None and caller.sees(kept.noun.owner, kept.noun.shared_with)

    def has_environment(text: str) -> bool:
        spec = JobSpec(name=text, script=text, virtual_workers=1, environment=text)
        return not context.environments.problems(spec, "", visible=context.sharing.visible_jobs(caller))

    return SubmissionContext(
        user=caller.name,
        python_version=python_version(),
        queues=queue_names(context),
        has_dataset=has_dataset,
        has_environment=has_environment,
        data_folder=lambda path: _below(context.datasets.data_root, path),
    )


def _below(root: Path, path: str) -> str | None:
    """Return the whole path of a folder below the data root, where links lead nowhere else."""
    try:
        found = (root / path).resolve()
        return str(found) if found.is_relative_to(root.resolve()) and found.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long, links in a ring, a NUL
        return None
