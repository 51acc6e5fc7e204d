"""A submission in IBM's words, from what was sent to a queued job and the exec that is kept of it."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pliant.core.access import Principal
from pliant.files.space import translate_disk_errors
from pliant.ibm.rest.lookup import Seen
from pliant.ibm.rest.routes.known import here_of
from pliant.ibm.rest.translate import arguments, frameworks, generator
from pliant.ibm.rest.translate.execution import Execution
from pliant.ibm.rest.translate.hardware import Submission
from pliant.ibm.rest.translate.job_request import queue_of, request_of, size_of
from pliant.ibm.rest.translate.package import packed
from pliant.ibm.rest.translate.program import DEFAULT_MAIN, Program, of_words, program_of
from pliant.server.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a client has sent."""

    args: str
    instance_group: str | None
    """`sigName`."""
    submission: Submission
    uploads: Sequence[Path]
    """The file, if there is one."""


def submit(context: Context, caller: Principal, sent: Sent) -> Seen:
    """Check all of a submission, queue its job, and keep the exec.

    Raises:
        InvalidInput: with everything that is wrong with it.
        TooLarge, Unavailable: as for every submission.
    """
    asked = arguments.parse(sent.args)
    framework = frameworks.load(context.frameworks).get(asked.get("--exec-start") or "")
    program = program_of(asked)
    if framework.generator is not None:
        program = _generated(asked, framework, program, sent)
    here = here_of(context, caller)
    request, notes = request_of(asked, framework, program, sent.submission, here)
    group = asked.get("--consumer") or asked.get("--ig") or sent.instance_group
    if group is not None and group == sent.instance_group:
        request = request.model_copy(update={"queue": queue_of(group, here.queues, field="sigName")})
    spec = request.spec()
    with translate_disk_errors(context.uploads), tempfile.TemporaryDirectory(dir=context.uploads) as name:
        archive = packed(sent.uploads, program, Path(name))
        job = context.control.submit(spec, archive, caller.name, context.sharing.sight(caller), notes)
    execution = Execution(
        name=job.id,
        owner=caller.name,
        args=asked.shown,
        framework=framework.name,
        app_name=asked.get("--appName") or framework.app_name,
        instance_group=group or "",
        num_workers=spec.max_tasks,
        notes=notes,
    )
    return Seen(context.registry.add(execution, at=job.submitted_at).noun, job)


def _generated(asked: arguments.Arguments, framework: frameworks.Framework, program: Program, sent: Sent) -> Program:
    """Return the program that a plug-in's generator makes of the one that was named."""
    size = size_of(asked, framework, sent.submission.hardwareSpec.nodes)
    words = generator.command(
        framework,
        model=program.file or DEFAULT_MAIN,
        num_workers=size.num_workers,
        slots_per_worker=size.slots,
        program=asked.program,
    )
    return replace(of_words(words), file=program.file)
