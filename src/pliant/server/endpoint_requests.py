"""What the routes of endpoints ask for, as a port; the use cases stand behind it."""

from pathlib import Path
from typing import Protocol

from pliant.api.endpoints import DeployRequest, EndpointPage, EndpointPatch, EndpointView
from pliant.core.access import Principal, VisibleJobs
from pliant.core.endpoint import Traffic


class EndpointRequests(Protocol):
    """The use cases of endpoints. Safe to call from any thread.

    Every method raises `NotFound` for an endpoint that the caller does not see, those that change one `Forbidden` if it
    is somebody else's, `InvalidInput` with everything that is wrong, and `Stale` if it is not at `revision` any more.
    """

    def page(self, caller: Principal, after: str, limit: int) -> EndpointPage:
        """Return endpoints that somebody sees, in the order of their names."""
        ...

    def get(self, caller: Principal, name: str) -> EndpointView:
        """Return an endpoint."""
        ...

    def deploy(
        self, caller: Principal, name: str, asked: DeployRequest, archive: Path | None, visible: VisibleJobs | None
    ) -> EndpointView:
        """Add a version to an endpoint, which is made if there is none, and begin to load it.

        Args:
            caller: who deploys it.
            name: the endpoint's.
            asked: what is to be otherwise than it is.
            archive: the packed folder, which is read and left where it is; None if `asked` names a job.
            visible: the jobs that the caller may name; None: all.
        """
        ...

    def change(self, caller: Principal, name: str, patch: EndpointPatch, revision: int | None) -> EndpointView:
        """Change how an endpoint serves."""
        ...

    def start(self, caller: Principal, name: str) -> EndpointView:
        """Let an endpoint take requests again."""
        ...

    def stop(self, caller: Principal, name: str) -> EndpointView:
        """Take an endpoint's slots away, and let it refuse requests."""
        ...

    def rollback(self, caller: Principal, name: str, number: int | None) -> EndpointView:
        """Give the traffic to an earlier version."""
        ...

    def split(self, caller: Principal, name: str, traffic: Traffic) -> EndpointView:
        """Share the traffic between versions."""
        ...

    def remove(self, caller: Principal, name: str, revision: int | None = None) -> None:
        """Forget an endpoint with all its versions."""
        ...
