"""Running a job again: the body that says what is to be otherwise, and what it says of the job that follows from it."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from pliant.api.derive import settable
from pliant.api.faults import problems_of
from pliant.api.jobs import ELASTIC_ONLY, JobRequest, NotedJob
from pliant.api.request import Changes
from pliant.core.array import words_of
from pliant.core.errors import InvalidInput
from pliant.core.input import values_of
from pliant.core.job import Job, JobSettings, JobSpec
from pliant.core.notice import NoticeSettings
from pliant.core.secret_names import hide_secrets

ALTERNATIVES: Final = (("weights", "resume_from"), ("data_dir", "dataset"), ("python", "environment"))
"""Of each of these fields one is given at most; who gives one anew means it in the place of the other."""


class RerunRequest(Changes, NoticeSettings, of=JobSettings):
    """What is to be otherwise than in the job that is run again, and who is sent a message at the end.

    What is left out stays as the job was submitted with. Variables in `env` come to those of the job. null for a field
    that need not be given: as if it had not been.
    """

    described_by = "doc"
    can_be_none = frozenset(one.name for one in settable(JobSettings) if one.field.default is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What is otherwise than in the job that is run again."""

    field: str
    """Such as `max_tasks` or `env.SEED`."""
    before: str | None
    """The value as a text; null: none."""
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunJob(NotedJob):
    """A new job that runs another one again."""

    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """A submission that runs a job again."""

    request: JobRequest
    spec: JobSpec
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


def rerun_of(job: Job, asked: RerunRequest, owner: str) -> Rerun:
    """Return the submission that runs a job again, perhaps as another person's.

    What the job waited for is waited for only as far as the job itself still does. Secrets among the variables of
    another person's job are not taken over, and are named in a note.

    Raises:
        InvalidInput: with everything that is wrong with the job as it would be.
    """
    before = _asked_for(job)
    changes = {name: value for name, value in asked.changes().items() if name not in _NOTICES}
    new_env = dict(changes.pop("env", {}))
    secret = () if owner == job.owner else _secrets(before["env"], new_env)
    env = {name: value for name, value in before["env"].items() if name not in secret} | new_env
    merged = before | _given_way(job, changes) | changes | {"env": env}
    try:
        request = JobRequest.model_validate(merged | values_of(NoticeSettings, asked))
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error
    array = job.spec.array
    if array is not None and "args" in changes:  # its values are arguments
        before |= {"args": job.spec.args, "array": words_of(array.values)}
        array = None
    return Rerun(
        request=request,
        spec=replace(request.spec(), array=array, own_numbers=_has_own_numbers(job, request)),
        differences=tuple(_differences(before, merged)),
        notes=(_left_out(job, secret),) if secret else (),
    )


def _asked_for(job: Job) -> dict[str, Any]:
    """Return the fields that somebody has to give to get such a job; of one of an array those that all of it have.

    The variables of a trial's values are among those of the job then: the new job is no trial.
    """
    spec = job.spec
    given = values_of(JobSettings, spec)
    if spec.array is not None:
        given |= {"name": spec.array.name, "args": spec.args[: len(spec.args) - len(spec.array.values)]}
    if spec.trial is not None:
        given["env"] = {**given["env"], **spec.trial.variables()}
    if given["name"] == spec.script:
        given["name"] = None
    if spec.dataset is not None:
        given["data_dir"] = None
    if spec.fixed:
        given["virtual_workers"] = None
    return given


def _has_own_numbers(job: Job, request: JobRequest) -> bool:
    """Tell whether it keeps the numbers of its script: as the job did, if it starts from the same state."""
    return job.spec.own_numbers and request.resume_from == job.spec.resume_from


def _given_way(job: Job, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not as they were because of the changes, or of the time that has passed."""
    fields = {one.name: one.field.default for one in settable(JobSettings)}
    gone = [other for group in ALTERNATIVES for name in group if changes.get(name) is not None for other in group]
    if changes.get("fixed", job.spec.fixed) != job.spec.fixed:
        gone += [*ELASTIC_ONLY, "max_restarts"]
    waits = {"after": () if job.ended else job.after, "after_any": () if job.ended else job.after_any}
    return {name: fields[name] for name in gone} | waits


def _secrets(env: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that are somebody's secrets, but for those that are given anew."""
    return tuple(name for name, shown in hide_secrets(env).items() if shown != env[name] and name not in new)


def _left_out(job: Job, secret: Sequence[str]) -> str:
    one = len(secret) == 1
    return (
        f"{', '.join(secret)} of {job.id} {'is a secret' if one else 'are secrets'} of {job.owner} and not taken over; "
        f"give {'a value' if one else 'values'} of your own in env if the script needs {'it' if one else 'them'}"
    )


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for name in before:
        if name != "env" and before[name] != after.get(name):
            yield Difference(field=name, before=_text(before[name]), after=_text(after.get(name)))
    old, new = before["env"], after["env"]
    shown_old, shown_new = hide_secrets(old), hide_secrets(new)
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield Difference(field=f"env.{name}", before=shown_old.get(name), after=shown_new.get(name))


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        return shlex.join(value) if value else None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return None if value is None else str(value)


_NOTICES: Final = frozenset(one.name for one in settable(NoticeSettings))
