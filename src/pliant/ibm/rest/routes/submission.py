"""A submission in IBM's words, from what was sent to a queued job and the exec that is kept of it."""

import tempfile
from collections.abc import Sequence
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


def submit(context: Context, caller: Principal, form: SubmissionForm) -> Exec:
    """Check all of a submission, queue its job, and keep the exec.

    Raises:
        InvalidInput: with everything that is wrong with it.
        TooLarge, Unavailable: as for every submission.
    """
    asked = arguments.parse(form.args)
    framework = frameworks.load(context.frameworks).get(asked.get("--exec-start") or "")
    program = program_of(asked)
    if framework.generator is not None:
        program = _generate(context, caller, asked, framework, program, form)
    known = submission_context(context, caller)
    request, notes = to_job_request(asked, framework, program, form.submission, known)
    group = asked.get("--consumer") or asked.get("--ig") or form.instance_group
    if group is not None and _queue_option(asked, form) == "sigName":
        request = request.model_copy(update={"queue": find_queue(group, known.queues, field="sigName")})
    spec = request.spec()
    with translate_disk_errors(context.uploads), tempfile.TemporaryDirectory(dir=context.uploads) as name:
        archive = pack_upload(form.uploads, program, Path(name))
        visible = context.sharing.visible_jobs(caller)
        try:
            job = context.control.requests.submit(spec, archive, caller.name, visible, notes)
        except InvalidInput as error:
            raise InvalidInput(*name_options(error.problems, queue=_queue_option(asked, form))) from error
    execution = Execution(
        name=job.id,
        owner=caller.name,
        args=asked.shown,
        framework=framework.name,
        app_name=asked.get("--appName") or framework.app_name,
        instance_group=group or "",
        num_workers=spec.max_tasks,
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
