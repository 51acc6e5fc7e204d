"""What endpoints need of the other rooms (the ports of `pliant.catalog.endpoints.ports`), over control and people."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.catalog.endpoints.archives import ModelArchives
from pliant.catalog.endpoints.keeper import EndpointKeeper
from pliant.catalog.endpoints.ports import EndpointPorts
from pliant.catalog.endpoints.use_cases import EndpointCatalog
from pliant.control.loop.tick import Control
from pliant.control.requests.jobs import open_archive
from pliant.control.requests.sharing import Sharing
from pliant.core.access import Principal, VisibleJobs
from pliant.core.endpoint import VersionStatus
from pliant.core.errors import NotFound
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.core.serving import Serve
from pliant.core.serving_profile import KernelBounds, ServingProfile
from pliant.files.untrusted.path import UntrustedPath

FOLDER: Final = "endpoints"
"""Where the archives of versions lie, in the state folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRoom:
    """The use cases of endpoints, and what keeps them as they are meant to be."""

    catalog: EndpointCatalog
    keeper: EndpointKeeper


def make_endpoints(
    registry: Registry,
    clock: Clock,
    control: Control,
    sharing: Sharing,
    knows: Callable[[str], bool],
    *,
    show: Callable[[Serve], None],
    need_gateway: Callable[[], None],
) -> EndpointRoom:
    """Return the endpoints over a control room.

    Args:
        knows: tells whether there is such a user.
        show: is given the newest picture for the gateway.
        need_gateway: is called whenever there is something to serve.
    """
    archives = ModelArchives(control.settings.home / FOLDER)
    ports = EndpointPorts(
        jobs=ControlVersions(control, sharing),
        unknown_users=lambda names: [name for name in names if not knows(name)],
        now=clock.now,
        changed=lambda: keeper.wake(),
    )
    catalog = EndpointCatalog(registry=registry, archives=archives, ports=ports)
    keeper = EndpointKeeper(catalog=catalog, archives=archives, ports=ports, show=show, need_gateway=need_gateway)
    return EndpointRoom(catalog=catalog, keeper=keeper)


class ControlVersions:
    """The jobs of a control room, as endpoints see them."""

    def __init__(self, control: Control, sharing: Sharing) -> None:
        self._control = control
        self._sharing = sharing

    def start(self, spec: JobSpec, archive: Path, owner: str, visible: VisibleJobs | None) -> JobId:
        """Queue the job of a version."""
        return self._control.requests.submit(spec, archive, owner, visible).id

    def stop(self, job_id: JobId, who: str) -> None:
        """End the job of a version; ignore one that has ended."""
        self._control.kernels.stop(job_id, who)

    def adjust(self, job_id: JobId, profile: ServingProfile, bounds: KernelBounds, priority: int, queue: str) -> None:
        """Have the job of a version serve like this from now on; ignore one that has ended."""
        self._control.kernels.adjust(job_id, profile, bounds, priority, queue)

    def statuses(self) -> Mapping[JobId, VersionStatus]:
        """Return how all versions stand whose jobs have not ended."""
        return self._control.kernels.statuses()

    def endpoints(self) -> Mapping[JobId, str]:
        """Return which endpoint each job serves that has not ended."""
        return self._control.kernels.endpoints()

    def find(self, job_id: JobId) -> Job | None:
        """Return a job without asking who may see it; None if there is none (any more)."""
        try:
            return self._control.queries.job(job_id)
        except NotFound:
            return None

    def require_visible(self, job_id: str, caller: Principal) -> Job:
        """Return a job that the caller sees."""
        return self._control.queries.require_visible(job_id, self._sharing.visible_jobs(caller))

    def code(self, job: Job) -> AbstractContextManager[Path]:
        """Return a path of the archive that a job was submitted with, good within the block."""
        return open_archive(job, self._control.settings.folders(job.id))

    def weights(self, job_id: JobId) -> UntrustedPath:
        """Return where a job's trained model is, or will be."""
        return self._control.settings.folders(job_id).weights
