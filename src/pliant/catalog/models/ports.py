"""What models need of the rest of the server: jobs, and who is who."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pliant.core.access import Principal
from pliant.core.job import Job, JobSpec
from pliant.files.untrusted.path import UntrustedPath


class Jobs(Protocol):
    """The jobs that train models. Safe to call from any thread."""

    def submit(self, spec: JobSpec, archive: Path, caller: Principal) -> Job:
        """Queue a job that runs the code in an archive (tar.gz).

        Raises:
            InvalidInput, TooLarge, Conflict, NotFound, Unavailable: as for any other submission.
        """
        ...

    def find(self, job_id: str) -> Job | None:
        """Return a job; None if there is none of that id (any more)."""
        ...

    def require_visible(self, job_id: str, caller: Principal) -> Job:
        """Return a job that somebody may see.

        Raises:
            NotFound: none that they may see.
        """
        ...

    def stop(self, job_id: str, caller: Principal) -> Job:
        """End a job at its next step boundary.

        Raises:
            NotFound, Conflict: there is none, or it has ended.
        """
        ...

    def weights(self, job_id: str) -> UntrustedPath:
        """Return where the trained model of a job is, or will be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The rest of the server, as models see it."""

    jobs: Jobs
    unknown_users: Callable[[Collection[str]], Collection[str]]
    """Returns those of some names that no user has."""
    now: Callable[[], float]
    """Seconds since the epoch (UTC)."""
