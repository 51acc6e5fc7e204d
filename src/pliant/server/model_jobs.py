"""What models need of the other rooms (the ports of `pliant.catalog.models.ports`), over control and people."""

from collections.abc import Callable
from pathlib import Path

from pliant.catalog.models.ports import Ports
from pliant.catalog.models.services import ModelServices, open_models
from pliant.control.loop.tick import Control
from pliant.control.requests.sharing import Sharing
from pliant.core.access import Principal
from pliant.core.errors import NotFound
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.files.untrusted.path import UntrustedPath
from pliant.server.visibility import require_owner


def make_models(
    registry: Registry, clock: Clock, control: Control, sharing: Sharing, knows: Callable[[str], bool]
) -> ModelServices:
    """Return templates, models and trainings over a control room; `knows` tells whether there is such a user."""
    ports = Ports(
        jobs=ControlJobs(control, sharing),
        unknown_users=lambda names: [name for name in names if not knows(name)],
        now=clock.now,
    )
    return open_models(registry, control.settings.home, ports)


class ControlJobs:
    """The jobs of a control room, as a caller sees them."""

    def __init__(self, control: Control, sharing: Sharing) -> None:
        self._control = control
        self._sharing = sharing

    def submit(self, spec: JobSpec, archive: Path, caller: Principal) -> Job:
        """Queue a job of the caller."""
        return self._control.requests.submit(spec, archive, caller.name, self._sharing.visible_jobs(caller))

    def find(self, job_id: str) -> Job | None:
        """Return a job without asking who may see it; None if there is none."""
        try:
            return self._control.queries.job(job_id)
        except NotFound:
            return None

    def require_visible(self, job_id: str, caller: Principal) -> Job:
        """Return a job that the caller sees."""
        return self._control.queries.require_visible(job_id, self._sharing.visible_jobs(caller))

    def stop(self, job_id: str, caller: Principal) -> Job:
        """End a job of the caller."""
        require_owner(self._control.queries.job(job_id), caller)
        return self._control.requests.stop(job_id, caller.name)

    def weights(self, job_id: str) -> UntrustedPath:
        """Return where a job's trained model is, or will be."""
        return self._control.settings.folders(JobId(job_id)).weights
