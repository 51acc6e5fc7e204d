"""The REST bodies about a job: what is asked for, and what is changed of it.

A submission needs no more than this file; what is answered about jobs is in `job_views`. Requests refuse unknown fields
and report every error at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from pydantic import model_validator

from pliant.api.request import Patch, Request, refuse
from pliant.core.input import values_of
from pliant.core.job import (
    DEFAULT_MAX_RESTARTS,
    Awaited,
    Job,
    JobSettings,
    JobSpec,
    NumTasks,
    Priority,
    QueueName,
)
from pliant.core.notice import NoticeSettings
from pliant.core.secret_names import hide_secrets
from pliant.core.tag import TagName, TagValue, tags_of

ELASTIC_ONLY = (
    "virtual_workers",
    "balance",
    "checkpoint_freq",
    "checkpoint_every_s",
    "resume_from",
    "mode",
    "audit",
    "stall_after_s",
    "on_stall",
    "metrics_every",
    "histograms_every",
    "tracking",
)


class JobRequest(Request, JobSettings, NoticeSettings):
    """A training to run, and who is sent a message at its end; travels beside its packed code."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        return refuse(self, (*self._clashes(), *self._against_its_kind()))

    def _clashes(self) -> Iterator[str]:
        if self.min_tasks > self.max_tasks:
            yield f"min_tasks {self.min_tasks} is above max_tasks {self.max_tasks}; lower the one or raise the other"
        if self.virtual_workers is not None and self.max_tasks > self.virtual_workers:
            yield (
                f"max_tasks {self.max_tasks} is above virtual_workers {self.virtual_workers}: the global batch "
                f"cannot be cut finer than that; lower max_tasks or raise virtual_workers"
            )
        if self.balance == "speed" and self.mode == "fast":
            yield "balance 'speed' divides virtual workers, and mode 'fast' has none; leave one of the two out"
        if self.weights is not None and self.resume_from is not None:
            yield "weights and resume_from both say where the training starts; give one of them"
        if self.data_dir is not None and self.dataset is not None:
            yield "data_dir and dataset both say where the data are; give one of them"
        if self.python is not None and self.environment is not None:
            yield "python and environment both say what the tasks run in; give one of them"
        if self.webhook_secret is not None and self.webhook is None:
            yield "webhook_secret signs what a webhook gets; give webhook as well"
        if self.notify_on != "end" and self.webhook is None and self.mail is None:
            yield "notify_on says when a message is sent, and nothing says to whom; give webhook or mail as well"

    def _against_its_kind(self) -> Iterator[str]:
        if not self.fixed:
            if self.max_restarts != DEFAULT_MAX_RESTARTS:
                yield "max_restarts is for fixed jobs; an elastic one goes on without starting again"
            return
        if self.min_tasks < self.max_tasks:
            yield (
                f"a fixed job has one size, but min_tasks is {self.min_tasks} and max_tasks {self.max_tasks}; "
                f"give both the same"
            )
        if wrong := [name for name in ELASTIC_ONLY if getattr(self, name) != type(self).model_fields[name].default]:
            yield f"{', '.join(wrong)}: for elastic jobs only; a fixed job's script does that by itself"

    def spec(self) -> JobSpec:
        """Return the noun that this body asks for, defaults filled in."""
        filled = {
            "name": self.name or self.script,
            "virtual_workers": self.max_tasks if self.fixed else self.virtual_workers,
            "tags": tags_of(self.tags),
        }
        return JobSpec(**{**values_of(JobSettings, self), **filled})

    def notices(self) -> NoticeSettings:
        """Return who is sent a message at its end; that is no part of the job, which others may see."""
        return NoticeSettings(**values_of(NoticeSettings, self))


J = TypeVar("J", bound=Job)


def without_secrets(job: J) -> J:
    """Return a job as it may be shown: a variable that is called like a secret has no value."""
    return replace(job, spec=replace(job.spec, env=hide_secrets(job.spec.env)))


class JobPatch(Patch):
    """What can be changed while a job waits or runs, tags also when it has ended; what is left out stays as it is."""

    priority: Priority | None = None
    min_tasks: NumTasks | None = None
    max_tasks: NumTasks | None = None
    queue: QueueName | None = None
    """Move the job to this queue; it leaves slots that the queue does not have at a step boundary."""
    tags: Mapping[TagName, TagValue | None] | None = None
    """Give the job these tags, values by name; null takes one away, and those that are not named stay."""
    after: Awaited | None = None
    """Let a job that has not started wait for these to complete, instead of what it waits for; none: it starts."""
    after_any: Awaited | None = None
    """The same for what it waits for to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedJob(Job):
    """A job that was just submitted or changed, with what its owner should know of it."""

    notes: tuple[str, ...] = ()
    """Sentences; each is an event of the job, too."""
