"""Endpoints as the answers of the REST API: the nouns, with what runs of them and what the load is."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pliant.api.endpoints import (
    DeployRequest,
    EndpointPage,
    EndpointPatch,
    EndpointState,
    EndpointView,
    GatewayView,
    KernelState,
    KernelView,
    VersionView,
    version_view,
)
from pliant.api.view import fill
from pliant.catalog.endpoints.exchange import describe
from pliant.catalog.endpoints.use_cases import Deployment, EndpointCatalog
from pliant.core.access import Principal, VisibleJobs
from pliant.core.endpoint import Endpoint, EndpointVersion, Traffic, VersionState, VersionStatus
from pliant.core.job import JobId, Task
from pliant.core.lifecycle import TaskState
from pliant.core.registry import Kept
from pliant.core.serving import GatewayHello


class ShownEndpoints:
    """The use cases of endpoints, with what people see of them.

    Args:
        statuses: returns how all versions stand that run.
        places: returns what gateways said of themselves, one of each machine; none while there are none.
    """

    def __init__(
        self,
        catalog: EndpointCatalog,
        statuses: Callable[[], Mapping[JobId, VersionStatus]],
        places: Callable[[], tuple[GatewayHello, ...]],
    ) -> None:
        self._catalog = catalog
        self._statuses = statuses
        self._places = places

    def page(self, caller: Principal, after: str, limit: int) -> EndpointPage:
        """Return endpoints that somebody sees, in the order of their names."""
        found, last = self._catalog.page(caller, after, limit)
        statuses = self._statuses()
        return EndpointPage(endpoints=tuple(self._view(kept, statuses) for kept in found), next=last)

    def get(self, caller: Principal, name: str) -> EndpointView:
        """Return an endpoint; see `EndpointCatalog.get`."""
        return self._shown(self._catalog.get(caller, name))

    def deploy(
        self, caller: Principal, name: str, asked: DeployRequest, archive: Path | None, visible: VisibleJobs | None
    ) -> EndpointView:
        """Make a version of an endpoint; see `EndpointCatalog.deploy`."""
        deployment = Deployment(
            name=name,
            settings=asked.given_settings(),
            version=asked.given_version(),
            job=asked.job,
            file=asked.file,
            source=asked.source,
            traffic=asked.traffic,
        )
        return self._shown(self._catalog.deploy(caller, deployment, archive, visible))

    def change(self, caller: Principal, name: str, patch: EndpointPatch, revision: int | None) -> EndpointView:
        """Change an endpoint while it serves; see `EndpointCatalog.change`."""
        return self._shown(self._catalog.change(caller, name, patch.values(), revision))

    def start(self, caller: Principal, name: str) -> EndpointView:
        """Let an endpoint serve again; see `EndpointCatalog.start`."""
        return self._shown(self._catalog.start(caller, name))

    def stop(self, caller: Principal, name: str) -> EndpointView:
        """Give all slots of an endpoint back; see `EndpointCatalog.stop`."""
        return self._shown(self._catalog.stop(caller, name))

    def rollback(self, caller: Principal, name: str, number: int | None) -> EndpointView:
        """Bring a version back; see `EndpointCatalog.roll_back`."""
        return self._shown(self._catalog.roll_back(caller, name, number))

    def split(self, caller: Principal, name: str, traffic: Traffic) -> EndpointView:
        """Share the traffic between versions; see `EndpointCatalog.split`."""
        return self._shown(self._catalog.split(caller, name, traffic))

    def remove(self, caller: Principal, name: str, revision: int | None = None) -> None:
        """Forget an endpoint; see `EndpointCatalog.remove`."""
        self._catalog.remove(caller, name, revision)

    def _shown(self, kept: Kept[Endpoint]) -> EndpointView:
        return self._view(kept, self._statuses())

    def _view(self, kept: Kept[Endpoint], statuses: Mapping[JobId, VersionStatus]) -> EndpointView:
        traffic = kept.noun.traffic_now
        versions = tuple(_version(one, traffic.get(one.number, 0), statuses) for one in kept.noun.versions)
        state, reason = state_of(kept.noun, versions)
        gateways = tuple(map(_gateway, self._places()))
        running = [one.job_id for one in kept.noun.versions if one.job_id is not None]
        return fill(
            EndpointView,
            kept.noun,
            kept,
            versions=versions,
            exchange=describe(kept.noun, statuses),
            state=state,
            reason=reason,
            http_url=gateways[0].http_url if gateways else None,
            grpc_address=gateways[0].grpc_address if gateways else None,
            gateways=gateways,
            colour=next((statuses[job_id].colour for job_id in running if job_id in statuses), None),
        )


def state_of(endpoint: Endpoint, versions: tuple[VersionView, ...]) -> tuple[EndpointState, str]:
    """Return how an endpoint stands, and why, in a sentence; empty if there is nothing to say."""
    if not endpoint.started:
        return "stopped", "somebody stopped it"
    current = next((one for one in versions if one.number == endpoint.current), None)
    starting = [one for one in versions if one.state is VersionState.STARTING]
    if current is None:
        if starting:
            return "starting", starting[-1].why or starting[-1].demand
        failed = [one for one in versions if one.state is VersionState.FAILED]
        return "failed", failed[-1].reason if failed else "no version of it serves"
    note = _note(versions, current)
    if current.num_ready:
        return "serving", note
    if current.wanted == 0:
        return "idle", note or "nobody asks it; the first request brings a kernel"
    return ("starting" if current.num_kernels else "waiting"), current.why


def _note(versions: tuple[VersionView, ...], current: VersionView) -> str:
    """Return what is to be known of a version that was deployed after the one that serves."""
    newest = versions[-1]
    if newest.number <= current.number or newest.state not in (VersionState.STARTING, VersionState.FAILED):
        return ""
    how = "starts" if newest.state is VersionState.STARTING else "has failed"
    first = newest.reason.splitlines()[0] if newest.reason else ""
    return f"version {newest.number} {how}" + (f": {first}" if first else "")


def _version(version: EndpointVersion, traffic: int, statuses: Mapping[JobId, VersionStatus]) -> VersionView:
    status = None if version.job_id is None else statuses.get(version.job_id)
    if status is None:
        return version_view(
            version, traffic=traffic, num_kernels=0, num_ready=0, wanted=0, why="", demand="", load=None, kernels=()
        )
    return version_view(
        version,
        traffic=traffic,
        num_kernels=len(status.kernels),
        num_ready=status.num_ready,
        wanted=status.wanted,
        why=status.why,
        demand=status.demand,
        load=status.load,
        kernels=tuple(map(_kernel, status.kernels)),
    )


def _gateway(hello: GatewayHello) -> GatewayView:
    return GatewayView(
        machine=hello.machine or None,
        http_url=hello.http_url,
        grpc_address=hello.grpc_address or None,
        certificate=(hello.kernels.certificate or None) if hello.kernels is not None else None,
    )


def _kernel(task: Task) -> KernelView:
    states: Mapping[TaskState, KernelState] = {TaskState.TRAINING: "ready", TaskState.LEAVING: "leaving"}
    return KernelView(
        task_id=task.id,
        state=states.get(task.state, "starting"),
        node_id=task.node_id,
        slots=task.slots,
        started_at=task.started_at,
        pid=task.pid,
    )
