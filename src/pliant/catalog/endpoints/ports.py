"""What endpoints need of the rest of the server: jobs, the kernels of versions, and who is who."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pliant.core.access import Principal, VisibleJobs
from pliant.core.endpoint import VersionStatus
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.serving_profile import KernelBounds, ServingProfile
from pliant.files.untrusted.path import UntrustedPath


class VersionJobs(Protocol):
    """The jobs that realise versions, and those that were trained. Safe to call from any thread."""

    def start(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> JobId:
        """Queue the job of a version.

        Raises:
            InvalidInput, TooLarge, Conflict, NotFound, Unavailable: as for any other submission.
        """
        ...

    def stop(self, job_id: JobId, who: str) -> None:
        """End the job of a version; ignore one that has ended."""
        ...

    def adjust(self, job_id: JobId, profile: ServingProfile, bounds: KernelBounds, priority: int, queue: str) -> None:
        """Have the job of a version serve like this from now on; ignore one that has ended."""
        ...

    def statuses(self) -> Mapping[JobId, VersionStatus]:
        """Return how all versions stand whose jobs have not ended."""
        ...

    def endpoints(self) -> Mapping[JobId, str]:
        """Return which endpoint each job serves that has not ended."""
        ...

    def find(self, job_id: JobId) -> Job | None:
        """Return a job without asking who may see it; None if there is none (any more)."""
        ...

    def require_visible(self, job_id: str, caller: Principal) -> Job:
        """Return a job that the caller sees.

        Raises:
            NotFound: none that they see.
        """
        ...

    def code(self, job: Job) -> AbstractContextManager[Path]:
        """Return a path of the archive that a job was submitted with, good within the block.

        Raises:
            Conflict: it is not kept.
        """
        ...

    def weights(self, job_id: JobId) -> UntrustedPath:
        """Return where a job's trained model is, or will be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPorts:
    """The rest of the server, as endpoints see it."""

    jobs: VersionJobs
    unknown_users: Callable[[Collection[str]], Collection[str]]
    """Returns those of some names that no user has."""
    now: Callable[[], float]
    """Seconds since the epoch (UTC)."""
    changed: Callable[[], None]
    """Called after something changed that a gateway has to know, or a job that has to be started or ended."""
