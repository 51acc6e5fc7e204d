"""What a job needs before it can be given slots, an environment, and how control asks for it (`Preparations`)."""

from dataclasses import dataclass
from typing import Protocol

from pliant.core.access import VisibleJobs
from pliant.core.errors import Problem
from pliant.core.job import Job, JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The job can be started."""

    python: str
    """The whole path of the interpreter that runs its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing:
    """What the job needs is being made."""

    why: str
    """What goes on, in words that follow "waits for its environment: "; it may name the builder's newest line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpreparable:
    """What the job needs cannot be made."""

    why: str
    """What happened and what to do in the first line; what the builder said in those that follow."""


Preparation = Prepared | Preparing | Unpreparable


class Preparations(Protocol):
    """Makes what jobs need. Safe to call from any thread; no call waits for a build.

    Laws: a job that asks again gets an answer at least as far along; an answer is `Preparing` only while somebody works
    on it, and listeners are called after it became another. What was made outlives the server.
    """

    def problems(self, spec: JobSpec, code: str, *, visible: VisibleJobs | None = None) -> tuple[Problem, ...]:
        """Return what is wrong with what a submission asks for.

        Args:
            spec: the submission.
            code: the folder of its unpacked code.
            visible: of whoever submits it; None: they see all.
        """
        ...

    def status(self, job: Job, code: str) -> Preparation:
        """Return how far it is; begin to make it if nobody has.

        Args:
            job: asks for an environment.
            code: the folder of its code.
        """
        ...
