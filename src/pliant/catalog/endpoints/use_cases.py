"""The use cases of endpoints: list, show, deploy, change, start, stop, roll back, remove.

They change the noun; jobs follow (`keeper`). Only a deployment queues its job at once, so that everything that is wrong
with it is said to who deploys.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Final

from pliant.catalog.endpoints.archives import WEIGHTS, ModelArchive, ModelArchives, refuse_without_model
from pliant.catalog.endpoints.exchange import put_version, running
from pliant.catalog.endpoints.ports import EndpointPorts
from pliant.catalog.endpoints.traffic import aim, canary, goal_of, problems_of_kernels, require_split, take_back
from pliant.catalog.sharing import require_owner, require_visible, visible_page
from pliant.core.access import Principal, VisibleJobs, name_once
from pliant.core.endpoint import (
    MAX_VERSIONS,
    Endpoint,
    EndpointSettings,
    EndpointVersion,
    Traffic,
    VersionSettings,
    VersionState,
)
from pliant.core.errors import Conflict, InvalidInput
from pliant.core.input import values_of
from pliant.core.job import JobSpec
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.core.serving_profile import EndpointPart, ServingProfile, problems_of_profile
from pliant.core.shares import problems_of_shares
from pliant.core.slot import share_of_slot, whole_slots

MAX_LOAD_S: Final = 600.0
"""A kernel that has not loaded its model by then is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What somebody wants to deploy."""

    name: str
    settings: Mapping[str, Any]
    """Fields of `EndpointSettings` that they give; the others stay as they are, or have their defaults."""
    version: Mapping[str, Any]
    """The same of `VersionSettings`; what is left out is as in the newest version, or as the trained job has it."""
    job: str | None = None
    """A trained job; None: an archive."""
    traffic: int | None = None
    """Percent of the requests that it is to take beside the version that serves; None: all."""
    file: str | None = None
    """What is run in it; None: what its name shows."""
    source: str = ""


class EndpointCatalog:
    """All endpoints. Safe to call from any thread."""

    def __init__(self, *, registry: Registry, archives: ModelArchives, ports: EndpointPorts) -> None:
        self.lock = RLock()
        self._registry = registry
        self._archives = archives
        self._ports = ports

    def page(self, caller: Principal, after: str, limit: int) -> tuple[tuple[Kept[Endpoint], ...], str | None]:
        """Return endpoints that somebody sees, and the name of the last if there are more."""
        return visible_page(self._registry, Endpoint, caller, after, limit)

    def get(self, caller: Principal, name: str) -> Kept[Endpoint]:
        """Return an endpoint.

        Raises:
            NotFound: none that they see.
        """
        return require_visible(self._registry, Endpoint, caller, name)

    def deploy(
        self, caller: Principal, asked: Deployment, archive: Path | None, visible: VisibleJobs | None
    ) -> Kept[Endpoint]:
        """Make a version of an endpoint, and the endpoint if there is none of that name.

        It takes traffic as soon as its first kernel has loaded its model, all of it or the part that is asked for, from
        the one that serves; a version that another deployment has put beside that has none any more. `visible` is which
        jobs the caller may name; None: all.

        Raises:
            NotFound: no such job that they see, or it has saved no model.
            Forbidden: the endpoint is somebody else's.
            InvalidInput, TooLarge: with everything that is wrong with it.
            Conflict: the code of the job is not kept.
            Unavailable: the disk cannot take it, or the server is going down.
        """
        before = self._before(caller, asked)
        present = before.noun if before is not None else None
        self._refuse_wrong(_endpoint_of(present, asked, caller), canary_too=asked.traffic not in (None, 100))
        kept, made = self._keep_model(caller, asked, archive, present)
        with self.lock:
            before = self._before(caller, asked)
            endpoint = _endpoint_of(before.noun if before is not None else None, asked, caller)
            version = replace(made, number=endpoint.next_number, created_at=self._ports.now(), created_by=caller.name)
            spec = spec_of(endpoint, version)
            if not self._archives.path(kept.checksum).is_file():
                raise Conflict(f"the same model was removed from another endpoint just now; deploy {asked.name} again")
            job_id = self._ports.jobs.start(spec, self._archives.path(kept.checksum), endpoint.owner, visible)
            endpoint = replace(
                endpoint,
                versions=(*endpoint.versions, replace(version, job_id=job_id)),
                next_number=endpoint.next_number + 1,
                started=True,
            )
            endpoint = _pruned(aim(endpoint, canary(endpoint, version.number, asked.traffic or 100)))
            try:
                written = self._write(endpoint, before)
            except BaseException:
                self._ports.jobs.stop(job_id, "the deployment that was not kept")
                raise
            if before is not None:
                self._remove_archives(before.noun)
            return written

    def change(
        self, caller: Principal, name: str, values: Mapping[str, Any], revision: int | None = None
    ) -> Kept[Endpoint]:
        """Change an endpoint while it serves.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            InvalidInput: with everything that is wrong with it.
            Stale: it is not at `revision` any more.
        """
        with self.lock:
            kept = self._own(caller, name)
            endpoint = replace(kept.noun, **_said(values))
            self._refuse_wrong(endpoint)
            return self._replace(endpoint, revision)

    def start(self, caller: Principal, name: str) -> Kept[Endpoint]:
        """Let an endpoint serve again; a version that has failed is tried again if there is no other.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Conflict: it has no version.
        """
        with self.lock:
            endpoint = self._own(caller, name).noun
            if not endpoint.versions:
                raise Conflict(f"{name} has no version; deploy one")
            endpoint = replace(endpoint, started=True)
            if not running(endpoint):
                again = replace(endpoint.versions[-1], state=VersionState.STARTING, reason="", job_id=None)
                endpoint = put_version(endpoint, again)
            return self._replace(endpoint)

    def stop(self, caller: Principal, name: str) -> Kept[Endpoint]:
        """Give all slots of an endpoint back; it refuses requests from now on.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
        """
        with self.lock:
            return self._replace(replace(self._own(caller, name).noun, started=False))

    def roll_back(self, caller: Principal, name: str, number: int | None = None) -> Kept[Endpoint]:
        """Give all traffic to one version: that which is named; or the one that serves, if another one takes traffic
        beside it or from it; or else the one that served before.

        One that has traffic takes it at once. Another one starts beside the others, as a new version does.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Conflict: there is no such version, or it has all traffic already.
        """
        with self.lock:
            endpoint = self._own(caller, name).noun
            number = _version_to_bring_back(endpoint, number).number
            endpoint = replace(endpoint, started=True)
            if number in endpoint.traffic_now:
                return self._replace(take_back(endpoint, number))
            return self._replace(aim(_with_jobs_for(endpoint, {number}), {number: 100}))

    def split(self, caller: Principal, name: str, traffic: Traffic) -> Kept[Endpoint]:
        """Share the traffic between versions by percent; one that does not run is started, one with nothing ends.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            InvalidInput: with everything that is wrong with it.
        """
        with self.lock:
            endpoint = self._own(caller, name).noun
            goal = require_split(traffic, endpoint.versions)
            endpoint = aim(_with_jobs_for(endpoint, goal.keys()), goal)
            self._refuse_wrong(endpoint)
            return self._replace(endpoint)

    def remove(self, caller: Principal, name: str, revision: int | None = None) -> None:
        """Forget an endpoint with its versions; its kernels answer what they have begun.

        Raises:
            NotFound, Forbidden: there is none that they see, or it is somebody else's.
            Stale: it is not at `revision` any more.
        """
        with self.lock:
            endpoint = self._own(caller, name).noun
            self._registry.remove(Endpoint, name, revision=revision)
            self._remove_archives(endpoint)
        self._ports.changed()

    def all(self) -> tuple[Kept[Endpoint], ...]:
        """Return all endpoints, in the order of their names."""
        return tuple(iterate_nouns(self._registry, Endpoint))

    def keep(self, kept: Kept[Endpoint], endpoint: Endpoint) -> bool:
        """Keep what the keeper found out, unless somebody changed the endpoint meanwhile; tell whether it was kept."""
        with self.lock:
            now = self._registry.get(Endpoint, endpoint.name)
            if now is None or now.revision != kept.revision:
                return False
            if now.noun != endpoint:
                self._registry.replace(endpoint, at=self._ports.now(), revision=kept.revision)
            return True

    def _before(self, caller: Principal, asked: Deployment) -> Kept[Endpoint] | None:
        kept = self._registry.get(Endpoint, asked.name)
        if kept is not None:
            self._own(caller, asked.name)
        return kept

    def _refuse_wrong(self, endpoint: Endpoint, *, canary_too: bool = False) -> None:
        shares = problems_of_shares(endpoint.shared_with, endpoint.owner, self._ports.unknown_users)
        kernels = problems_of_kernels(endpoint, 2 if canary_too and endpoint.current is not None else 1)
        if problems := (*problems_of_profile(endpoint), *kernels, *shares):
            raise InvalidInput(*problems)

    def _keep_model(
        self, caller: Principal, asked: Deployment, archive: Path | None, before: Endpoint | None
    ) -> tuple[ModelArchive, EndpointVersion]:
        """Keep what is deployed; return that, and the version that it makes, but for its number."""
        if asked.job is None:
            if archive is None:
                raise InvalidInput.at("job", "neither a job nor an archive was sent; send one of them")
            kept = self._archives.keep(archive, asked.file)
            newest = before.versions[-1] if before is not None and before.versions else VersionSettings()
            return kept, _version(kept, {**values_of(VersionSettings, newest), **asked.version}, asked.source)
        if archive is not None:
            raise InvalidInput.at("job", f"{asked.job!r} and an archive were sent; send one of them")
        jobs = self._ports.jobs
        job = jobs.require_visible(asked.job, caller)
        refuse_without_model(job)
        with jobs.code(job) as code:
            kept = self._archives.keep_job(job, code, jobs.weights(job.id))
        spec = job.spec
        given = {
            "slots_per_task": spec.slots_per_task,
            "environment": spec.environment,
            "memory_bytes": spec.memory_bytes,
            "env": spec.env if caller.owns(job.owner) else {},
            **asked.version,
        }
        version = _version(kept, given, job.id)
        data_dir = None if spec.dataset is not None else spec.data_dir
        return kept, replace(
            version, args=spec.args, weights=WEIGHTS, dataset=spec.dataset, data_dir=data_dir, python=spec.python
        )

    def _remove_archives(self, before: Endpoint) -> None:
        """Remove those archives of an endpoint, as it was, that no version of any endpoint has now."""
        used = {one.checksum for kept in self.all() for one in kept.noun.versions}
        self._archives.remove({one.checksum for one in before.versions} - used)

    def _own(self, caller: Principal, name: str) -> Kept[Endpoint]:
        kept = self.get(caller, name)
        require_owner(caller, kept.noun, f"the endpoint {name!r}")
        return kept

    def _write(self, endpoint: Endpoint, before: Kept[Endpoint] | None) -> Kept[Endpoint]:
        if before is not None:
            return self._replace(endpoint, before.revision)
        kept = self._registry.add(endpoint, at=self._ports.now())
        self._ports.changed()
        return kept

    def _replace(self, endpoint: Endpoint, revision: int | None = None) -> Kept[Endpoint]:
        kept = self._registry.replace(endpoint, at=self._ports.now(), revision=revision)
        self._ports.changed()
        return kept


def spec_of(endpoint: Endpoint, version: EndpointVersion) -> JobSpec:
    """Return what the job of a version is asked for."""
    profile = ServingProfile(**values_of(ServingProfile, endpoint))
    if endpoint.traffic_now:  # it shows with one kernel that it loads, beside those that serve; `capacity` has the rest
        profile = replace(profile, kernel_min=0)
    return JobSpec(
        name=f"{endpoint.name}-v{version.number}",
        script=version.file,
        args=version.args,
        min_tasks=max(1, profile.kernel_min),
        max_tasks=profile.kernel_max,
        virtual_workers=profile.kernel_max,
        slots_per_task=whole_slots(version.slots_per_task),
        priority=endpoint.priority,
        queue=endpoint.queue,
        memory_bytes=version.memory_bytes,
        environment=version.environment,
        python=version.python,
        env=version.env,
        dataset=version.dataset,
        data_dir=version.data_dir,
        start_timeout_s=MAX_LOAD_S,
        tracking=False,
        endpoint=EndpointPart(
            name=endpoint.name,
            version=version.number,
            runner=version.runner,
            profile=profile,
            weights=version.weights,
            slot_share=share_of_slot(version.slots_per_task),
        ),
    )


def _version(kept: ModelArchive, given: Mapping[str, Any], source: str) -> EndpointVersion:
    settings = VersionSettings(**given)
    return EndpointVersion(
        **values_of(VersionSettings, settings),
        number=0,
        runner=kept.runner,
        file=kept.file,
        source=source,
        checksum=kept.checksum,
        num_bytes=kept.num_bytes,
        state=VersionState.STARTING,
        created_at=0.0,
        created_by="",
    )


def _endpoint_of(before: Endpoint | None, asked: Deployment, caller: Principal) -> Endpoint:
    values = _said(asked.settings)
    if before is not None:
        return replace(before, **values)
    return Endpoint(name=asked.name, owner=caller.name, **{**values_of(EndpointSettings, EndpointSettings()), **values})


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    shared = {"shared_with": name_once(values["shared_with"])} if "shared_with" in values else {}
    return {**values, **shared}


def _pruned(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint without its oldest versions that serve nothing, if it has too many."""
    versions = list(endpoint.versions)
    needed = {one.number for one in running(endpoint)}
    for one in endpoint.versions:
        if len(versions) <= MAX_VERSIONS:
            break
        if one.number not in needed:
            versions.remove(one)
    return replace(endpoint, versions=tuple(versions))


def _version_to_bring_back(endpoint: Endpoint, number: int | None) -> EndpointVersion:
    if (
        number is None
        and endpoint.current is not None
        and endpoint.traffic_now.keys() | goal_of(endpoint).keys() > {endpoint.current}
    ):
        number = endpoint.current
    if number is None:
        before = [
            one for one in endpoint.versions if one.state is VersionState.RETIRED and one.number != endpoint.current
        ]
        earlier = [one for one in before if endpoint.current is None or one.number < endpoint.current]
        if not (earlier or before):
            raise Conflict(f"{endpoint.name} has no earlier version to go back to")
        return (earlier or before)[-1]
    version = endpoint.version(number)
    if version is None:
        there = ", ".join(str(one.number) for one in endpoint.versions) or "none"
        raise Conflict(f"{endpoint.name} has no version {number}; there are: {there}")
    if endpoint.started and goal_of(endpoint) == {number: 100} == endpoint.traffic_now:
        raise Conflict(f"version {number} of {endpoint.name} serves already")
    return version


def _with_jobs_for(endpoint: Endpoint, numbers: Collection[int]) -> Endpoint:
    """Return an endpoint of whose versions these are started if they do not run."""
    again = set(numbers) - endpoint.traffic_now.keys() - goal_of(endpoint).keys()
    versions = tuple(
        replace(one, state=VersionState.STARTING, reason="", job_id=None) if one.number in again else one
        for one in endpoint.versions
    )
    return replace(endpoint, versions=versions)
