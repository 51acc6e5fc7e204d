"""The use cases of endpoints over a registry, for tests of what people touch: models load when a test says so.

Rules of the real ones hold: who sees and changes what, revisions, versions that take each other's place. What is not
here is the pool: no kernel ever runs, and what is shown of kernels is what a test puts into `kernels` and `loads`.
"""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pliant.api.endpoints import (
    DeployRequest,
    EndpointPage,
    EndpointPatch,
    EndpointState,
    EndpointView,
    GatewayView,
    KernelView,
    VersionView,
    version_view,
)
from pliant.api.view import fill
from pliant.catalog.endpoints.traffic import require_split
from pliant.catalog.sharing import require_owner, require_visible, visible_page
from pliant.core.access import Principal, VisibleJobs
from pliant.core.endpoint import (
    MAX_VERSIONS,
    Endpoint,
    EndpointVersion,
    Traffic,
    VersionSettings,
    VersionState,
)
from pliant.core.errors import Conflict, InvalidInput, NotFound
from pliant.core.input import values_of
from pliant.core.job import JobId
from pliant.core.ports import Clock
from pliant.core.registry import Kept, Registry
from pliant.core.serving import VersionLoad
from pliant.core.serving_profile import problems_of_profile
from pliant.files.archive import unpack


class KeptEndpoints:
    """Endpoints whose models load, or do not, when a test says so."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self.http_url: str | None = None
        self.other_url: str | None = None
        """Where a gateway of another machine is."""
        self.grpc_address: str | None = None
        """Where a gateway of the test answers."""
        self.kernels: dict[str, tuple[KernelView, ...]] = {}
        """Of the current version, by endpoint."""
        self.loads: dict[str, VersionLoad] = {}
        self.files: dict[str, tuple[str, ...]] = {}
        """What came in the newest archive, by endpoint."""
        self.load_after_looks: int | None = None
        """Every version loads when it was looked at so often; None: when `load` is called."""
        self.fails_with = ""
        """Every version fails with this when it is looked at; empty: it loads."""
        self.exchange = ""
        """What is said of exchanges."""
        self._num_looks = 0
        self._registry = registry
        self._clock = clock

    # What a test does

    def load(self, name: str, metadata: Mapping[str, object] | None = None) -> None:
        """Let the newest version be loaded: it takes the place of the one before."""
        endpoint = self._kept(name).noun
        newest = endpoint.versions[-1].number
        self._keep(_serving(endpoint, newest, metadata or {}))

    def fail(self, name: str, reason: str) -> None:
        """Let the newest version not load."""
        endpoint = self._kept(name).noun
        newest = replace(endpoint.versions[-1], state=VersionState.FAILED, reason=reason)
        self._keep(replace(endpoint, versions=(*endpoint.versions[:-1], newest)))

    # What people ask

    def page(self, caller: Principal, after: str, limit: int) -> EndpointPage:
        page, last = visible_page(self._registry, Endpoint, caller, after, limit)
        return EndpointPage(endpoints=tuple(map(self._view, page)), next=last)

    def get(self, caller: Principal, name: str) -> EndpointView:
        kept = require_visible(self._registry, Endpoint, caller, name)
        newest = kept.noun.versions[-1]
        if self.fails_with and newest.state is VersionState.STARTING:
            self.fail(name, self.fails_with)
            kept = self._kept(name)
        elif self.load_after_looks is not None and newest.state is VersionState.STARTING:
            self._num_looks += 1
            if self._num_looks >= self.load_after_looks:
                self._num_looks = 0
                self.load(name)
                kept = self._kept(name)
        return self._view(kept)

    def deploy(
        self, caller: Principal, name: str, asked: DeployRequest, archive: Path | None, visible: VisibleJobs | None
    ) -> EndpointView:
        kept = self._registry.get(Endpoint, name)
        endpoint = Endpoint(name=name, owner=caller.name) if kept is None else self._own(caller, name).noun
        if asked.job is not None and visible is not None and not visible.covers(JobId(asked.job), ""):
            raise NotFound(f"there is no job {asked.job!r}")
        endpoint = _changed(endpoint, asked.given_settings())
        version = self._version(endpoint, asked, archive, caller.name)
        versions = (*endpoint.versions, version)[-MAX_VERSIONS:]
        endpoint = replace(endpoint, versions=versions, next_number=endpoint.next_number + 1, started=True)
        if kept is None:
            return self._view(self._registry.add(endpoint, at=self._clock.now()))
        return self._view(self._keep(endpoint))

    def change(self, caller: Principal, name: str, patch: EndpointPatch, revision: int | None) -> EndpointView:
        endpoint = _changed(self._own(caller, name).noun, patch.values())
        return self._view(self._keep(endpoint, revision))

    def start(self, caller: Principal, name: str) -> EndpointView:
        return self._view(self._keep(replace(self._own(caller, name).noun, started=True)))

    def stop(self, caller: Principal, name: str) -> EndpointView:
        return self._view(self._keep(replace(self._own(caller, name).noun, started=False)))

    def rollback(self, caller: Principal, name: str, number: int | None) -> EndpointView:
        endpoint = self._own(caller, name).noun
        earlier = [one.number for one in endpoint.versions if one.state is VersionState.RETIRED]
        chosen = number if number is not None else max((one for one in earlier if one < _current(endpoint)), default=0)
        if chosen not in earlier:
            raise Conflict(f"{name} has no earlier version {chosen or ''}that served; there are {earlier}")
        return self._view(self._keep(_serving(endpoint, chosen, {})))

    def split(self, caller: Principal, name: str, traffic: Traffic) -> EndpointView:
        endpoint = self._own(caller, name).noun
        goal = require_split(traffic, endpoint.versions)
        first = max(goal, key=lambda number: goal[number])
        return self._view(self._keep(replace(_serving(endpoint, first, {}), traffic=goal)))

    def remove(self, caller: Principal, name: str, revision: int | None = None) -> None:
        self._own(caller, name)
        self._registry.remove(Endpoint, name, revision=revision)

    # Inside

    def _version(self, endpoint: Endpoint, asked: DeployRequest, archive: Path | None, caller: str) -> EndpointVersion:
        before = endpoint.versions[-1:] or (VersionSettings(),)
        settings: dict[str, Any] = values_of(VersionSettings, before[0]) | asked.given_version()
        content = b"" if archive is None else archive.read_bytes()
        if archive is not None:
            self.files[endpoint.name] = _files_in(archive)
        return EndpointVersion(
            number=endpoint.next_number,
            runner="job" if archive is None else "python",
            file=asked.file or ("train.py" if archive is None else "serve.py"),
            source=asked.job or asked.source,
            checksum=hashlib.sha256(content).hexdigest(),
            num_bytes=len(content),
            state=VersionState.STARTING,
            job_id=JobId("job-1"),
            created_at=self._clock.now(),
            created_by=caller,
            **settings,
        )

    def _own(self, caller: Principal, name: str) -> Kept[Endpoint]:
        kept = require_visible(self._registry, Endpoint, caller, name)
        require_owner(caller, kept.noun, f"the endpoint {name!r}")
        return kept

    def _kept(self, name: str) -> Kept[Endpoint]:
        kept = self._registry.get(Endpoint, name)
        assert kept is not None
        return kept

    def _keep(self, endpoint: Endpoint, revision: int | None = None) -> Kept[Endpoint]:
        return self._registry.replace(endpoint, at=self._clock.now(), revision=revision)

    def _view(self, kept: Kept[Endpoint]) -> EndpointView:
        endpoint = kept.noun
        kernels = self.kernels.get(endpoint.name, ())
        state, reason = _state(endpoint, kernels)
        return fill(
            EndpointView,
            endpoint,
            kept,
            state=state,
            reason=reason,
            exchange=self.exchange,
            versions=tuple(self._version_view(endpoint, one, kernels) for one in endpoint.versions),
            http_url=self.http_url,
            grpc_address=self.grpc_address,
            gateways=tuple(self._gateway(url) for url in (self.http_url, self.other_url) if url is not None),
            colour=None,
        )

    def _gateway(self, url: str) -> GatewayView:
        return GatewayView(machine=None, http_url=url, grpc_address=self.grpc_address, certificate=None)

    def _version_view(
        self, endpoint: Endpoint, version: EndpointVersion, kernels: tuple[KernelView, ...]
    ) -> VersionView:
        mine = kernels if version.number == endpoint.current else ()
        return version_view(
            version,
            traffic=endpoint.traffic_now.get(version.number, 0),
            num_kernels=len(mine),
            num_ready=sum(kernel.state == "ready" for kernel in mine),
            wanted=len(mine),
            why="its model is being loaded" if version.state is VersionState.STARTING else "",
            demand="",
            load=self.loads.get(endpoint.name) if mine else None,
            kernels=mine,
        )


def _files_in(archive: Path) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        unpack(archive, Path(folder))
        found = (path for path in Path(folder).rglob("*") if path.is_file())
        return tuple(sorted(str(path.relative_to(folder)) for path in found))


def _changed(endpoint: Endpoint, values: Mapping[str, object]) -> Endpoint:
    changed = replace(endpoint, **dict[str, Any](values))
    if problems := problems_of_profile(changed):
        raise InvalidInput(*problems)
    return changed


def _current(endpoint: Endpoint) -> int:
    return endpoint.current or endpoint.next_number


def _serving(endpoint: Endpoint, number: int, metadata: Mapping[str, object]) -> Endpoint:
    def after(version: EndpointVersion) -> EndpointVersion:
        if version.number == number:
            return replace(version, state=VersionState.SERVING, metadata=metadata or version.metadata)
        return replace(version, state=VersionState.RETIRED) if version.number == endpoint.current else version

    return replace(endpoint, versions=tuple(map(after, endpoint.versions)), current=number, traffic={})


def _state(endpoint: Endpoint, kernels: tuple[KernelView, ...]) -> tuple[EndpointState, str]:
    newest = endpoint.versions[-1]
    if not endpoint.started:
        return "stopped", f"{endpoint.owner} stopped it"
    if endpoint.current is None:
        return ("failed", newest.reason) if newest.state is VersionState.FAILED else ("starting", "")
    return ("serving", "") if kernels else ("idle", "nobody asks")
