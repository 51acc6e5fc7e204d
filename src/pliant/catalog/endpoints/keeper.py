"""Brings what runs in line with what is kept: starts and ends the jobs of versions, and shows gateways what there is.

One thread; it looks whenever something has happened, and once a second. It decides nothing itself (`exchange`). What it
was about to do when a server died, the next one's does: the nouns and the jobs say all that it has to know.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pliant.catalog.endpoints.archives import ModelArchives
from pliant.catalog.endpoints.capacity import Standstill
from pliant.catalog.endpoints.exchange import put_version, running, settle, statuses_of, weights_of
from pliant.catalog.endpoints.ports import EndpointPorts
from pliant.catalog.endpoints.use_cases import EndpointCatalog, spec_of
from pliant.core.access import VisibleJobs
from pliant.core.endpoint import Endpoint, EndpointVersion, VersionState, VersionStatus
from pliant.core.errors import PliantError, Unavailable, UserError
from pliant.core.input import values_of
from pliant.core.job import JobId
from pliant.core.registry import Kept
from pliant.core.serving import Serve, ServedEndpoint, ServedVersion
from pliant.core.serving_profile import ServingProfile

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
_WHO: Final = "another version in its place"


class EndpointKeeper:
    """Keeps all endpoints of a server as they are meant to be.

    Args:
        show: called with the newest picture, whenever it has changed.
        need_gateway: called whenever there is something to serve.
    """

    def __init__(
        self,
        *,
        catalog: EndpointCatalog,
        archives: ModelArchives,
        ports: EndpointPorts,
        show: Callable[[Serve], None],
        need_gateway: Callable[[], None],
    ) -> None:
        self._catalog = catalog
        self._archives = archives
        self._ports = ports
        self._show = show
        self._need_gateway = need_gateway
        self._shown: Serve | None = None
        self._wake = threading.Event()
        self._closed = False
        self._said = ""
        self._standstill = Standstill()

    def run(self) -> None:
        """Look until `close`."""
        while not self._closed:
            self._wake.wait(_LOOK_S)
            self._wake.clear()
            if not self._closed:
                self._look_safely()

    def wake(self) -> None:
        """Look now; from any thread."""
        self._wake.set()

    def close(self) -> None:
        """End `run`."""
        self._closed = True
        self._wake.set()

    def sweep(self) -> None:
        """Remove archives that no version needs any more; call when nobody deploys."""
        self._archives.sweep([one.checksum for kept in self._catalog.all() for one in kept.noun.versions])

    def look(self) -> None:
        """Bring everything in line once, and show the picture if it has changed."""
        with self._catalog.lock:  # or the job of a deployment would be seen before its version is
            statuses, owners = self._ports.jobs.statuses(), self._ports.jobs.endpoints()
            kept = self._catalog.all()
        named = {one.noun.name for one in kept}
        self._standstill.forget(named)
        for job_id, name in owners.items():
            if name not in named:
                self._ports.jobs.stop(job_id, "the end of its endpoint")
        endpoints = [
            self._settle(one, statuses, {job_id for job_id, name in owners.items() if name == one.noun.name})
            for one in kept
        ]
        picture = Serve(
            endpoints=tuple(
                _served(one, before.revision, statuses) for one, before in zip(endpoints, kept, strict=True)
            )
        )
        if any(one.started for one in endpoints):
            self._need_gateway()
        if picture != self._shown:
            self._shown = picture
            self._show(picture)

    def _look_safely(self) -> None:
        try:
            self.look()
            self._said = ""
        except PliantError as error:
            if str(error) != self._said:
                log.warning("endpoints cannot be looked after now, it is tried again: %s", error)
            self._said = str(error)
        except Exception:
            log.exception("endpoints could not be looked after; it is tried again")

    def _settle(self, kept: Kept[Endpoint], statuses: Mapping[JobId, VersionStatus], own: set[JobId]) -> Endpoint:
        there = statuses_of(kept.noun, statuses)
        still_s = self._standstill.observe(kept.noun.name, there, self._ports.now())
        found = settle(kept.noun, statuses, own, self._ports.jobs.find, still_s)
        if not self._catalog.keep(kept, found.endpoint):
            self.wake()  # somebody changed it meanwhile
            return kept.noun
        profile = ServingProfile(**values_of(ServingProfile, found.endpoint))
        for job_id in found.stop:
            self._ports.jobs.stop(job_id, _WHO if found.endpoint.started else "the stop of its endpoint")
        for job_id, bounds in found.bounds.items():
            self._ports.jobs.adjust(job_id, profile, bounds, found.endpoint.priority, found.endpoint.queue)
        for version in found.start:
            self._start(found.endpoint, version)
        return found.endpoint

    def _start(self, endpoint: Endpoint, version: EndpointVersion) -> None:
        """Queue the job of a version, while nobody can remove the endpoint or its archive."""
        with self._catalog.lock:
            now = next((one for one in self._catalog.all() if one.noun.name == endpoint.name), None)
            if now is None or now.noun != endpoint:
                self.wake()
                return
            try:
                job_id = self._ports.jobs.start(
                    spec_of(endpoint, version),
                    self._archives.path(version.checksum),
                    endpoint.owner,
                    VisibleJobs(owner=endpoint.owner),
                )
                version = replace(version, job_id=job_id)
            except Unavailable:
                raise
            except UserError as error:
                version = replace(version, state=VersionState.FAILED, reason=f"it could not be started again: {error}")
            self._catalog.keep(now, put_version(endpoint, version))
        self.wake()


def _served(endpoint: Endpoint, revision: int, statuses: Mapping[JobId, VersionStatus]) -> ServedEndpoint:
    """Return an endpoint as a gateway needs to know it; `revision` is at most its own."""
    shown = running(endpoint)
    weights = weights_of(endpoint, statuses)
    versions = []
    for one in shown:
        status = None if one.job_id is None else statuses.get(one.job_id)
        if status is not None:
            versions.append(
                ServedVersion(
                    number=one.number,
                    job_id=status.job_id,
                    token=status.token,
                    weight=weights.get(one.number, 0),
                    why=status.why,
                    metadata=one.metadata,
                )
            )
    return ServedEndpoint(
        name=endpoint.name,
        owner=endpoint.owner,
        shared_with=endpoint.shared_with,
        started=endpoint.started,
        profile=ServingProfile(**values_of(ServingProfile, endpoint)),
        versions=tuple(versions),
        why_not=_why_not(endpoint),
        revision=revision,
    )


def _why_not(endpoint: Endpoint) -> str:
    if not endpoint.started:
        return f"{endpoint.name} is stopped; its owner starts it with `pliant endpoints start {endpoint.name}`"
    if endpoint.current is None and endpoint.versions:
        newest = endpoint.versions[-1]
        if newest.state is VersionState.FAILED:
            first = newest.reason.splitlines()[0] if newest.reason else "its model did not load"
            return f"version {newest.number} of {endpoint.name} has failed: {first}"
    return ""
