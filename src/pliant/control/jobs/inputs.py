"""What a job needs of others besides its code: environments, data sets, somebody who sends messages (`JobInputs`).

Where a data set lies is written into what was asked for, and from there into the variables of the job's tasks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pliant.core.access import VisibleJobs
from pliant.core.confinement import RunAs
from pliant.core.dataset import DataPlace, DataPlaces
from pliant.core.errors import Problem
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.notice import Notices, NoticeSettings
from pliant.core.preparation import Preparation, Preparations, Unpreparable

CheckCode = Callable[[str], tuple[Problem, ...]]
"""Returns what is wrong with a submission, given the folder of its code."""


class NoData:
    """`DataPlaces` of a server that keeps no data sets."""

    @contextmanager
    def using(self, name: str | None, visible: VisibleJobs | None) -> Iterator[DataPlace | Problem | None]:  # noqa: ARG002
        """Refuse every name."""
        yield None if name is None else Problem(field="dataset", message=f"there is no data set {name!r:.80} here")


class NoPreparations:
    """`Preparations` of a server that makes no environments."""

    def problems(self, spec: JobSpec, code: str, *, visible: VisibleJobs | None = None) -> tuple[Problem, ...]:  # noqa: ARG002
        """Refuse every environment."""
        if spec.environment is None:
            return ()
        message = f"{spec.environment!r} cannot be made: this server makes no environments; leave it out"
        return (Problem(field="environment", message=message),)

    def status(self, job: Job, code: str) -> Preparation:  # noqa: ARG002 (the protocol's)
        """Refuse every environment."""
        return Unpreparable(why=f"the environment {job.spec.environment!r} cannot be made: this server makes none")


class NoNotices:
    """`Notices` of a server that sends none."""

    def problems(self, wanted: NoticeSettings) -> tuple[Problem, ...]:
        """Refuse every message."""
        message = "this server sends no messages; leave it out"
        return tuple(Problem(field=channel, message=message) for channel, _ in wanted.channels())

    def keep(self, job_id: JobId, wanted: NoticeSettings, owner: str) -> None:
        """Keep nothing: nothing is asked for that was not refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInputs:
    """Where the environments and data sets of jobs come from, and who keeps what is sent when they are over."""

    preparations: Preparations = field(default_factory=NoPreparations)
    data: DataPlaces = field(default_factory=NoData)
    notices: Notices = field(default_factory=NoNotices)
    user_of: Callable[[str], RunAs | None] = lambda _person: None
    """Whom the processes of a person run as; None: the server's own user."""

    @contextmanager
    def hold(self, spec: JobSpec, visible: VisibleJobs | None) -> Iterator[tuple[JobSpec, CheckCode]]:
        """Yield what was asked for with the folder of its data set, which nobody removes until the end of the block.

        With it comes what finds out what is wrong: an environment that cannot be made, a data set that cannot be used.
        """
        with self.data.using(spec.dataset, visible) as found:
            if isinstance(found, DataPlace):
                spec = replace(spec, data_dir=found.folder, data_parts=found.parts)
            missing = (found,) if isinstance(found, Problem) else ()
            yield spec, lambda code: (*missing, *self.preparations.problems(spec, code, visible=visible))
