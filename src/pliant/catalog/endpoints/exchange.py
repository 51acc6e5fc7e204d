"""Which versions of an endpoint run: a pure decision about the noun and the jobs there are.

A version that is deployed starts beside the one that serves. When its first kernel is ready it takes the other's place,
and the other's job is ended; if its model does not load it has failed, and nothing changes. Example:

    deploy 2       1 serving (job-4)   2 starting               start 2
    job-9 ready    1 retired           2 serving (job-9)        stop job-4
    job-9 failed   1 serving (job-4)   2 failed: "its model …"

Whatever is found in between (a job that somebody deleted, a server that died halfway) the next decision mends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pliant.core.endpoint import Endpoint, EndpointVersion, VersionState, VersionStatus
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JobState

FindJob = Callable[[JobId], Job | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionExchange:
    """What is to become of an endpoint."""

    endpoint: Endpoint
    start: tuple[EndpointVersion, ...] = ()
    """Versions that need a job."""
    stop: tuple[JobId, ...] = ()
    """Jobs that nobody needs any more."""


def settle(
    endpoint: Endpoint, statuses: Mapping[JobId, VersionStatus], own: set[JobId], find: FindJob
) -> VersionExchange:
    """Return what is to become of an endpoint now.

    Args:
        endpoint: as it is kept.
        statuses: of all jobs of versions that have not ended.
        own: those of them that serve this endpoint.
        find: returns a job that has ended.
    """
    served = {job_id for job_id, status in statuses.items() if status.has_served}
    endpoint = replace(endpoint, versions=tuple(_observed(one, statuses, find) for one in endpoint.versions))
    starting = [one for one in endpoint.versions if one.state is VersionState.STARTING]
    if ready := [one for one in starting if one.job_id in served]:
        endpoint = promote(endpoint, ready[-1].number)
    if starting:
        endpoint = _retire_other_newcomers(endpoint, starting[-1].number)
    current = endpoint.version(endpoint.current)
    if current is not None and current.state is VersionState.FAILED:
        endpoint = replace(endpoint, current=None)
    wanted = running(endpoint)
    kept = {one.job_id for one in wanted}
    return VersionExchange(
        endpoint=endpoint,
        start=tuple(one for one in wanted if one.job_id is None or one.job_id not in statuses),
        stop=tuple(sorted(own - kept, key=lambda job_id: (len(job_id), job_id))),
    )


def running(endpoint: Endpoint) -> tuple[EndpointVersion, ...]:
    """Return the versions that are to have a job: the one that serves, and the newest that starts."""
    if not endpoint.started:
        return ()
    starting = [one for one in endpoint.versions if one.state is VersionState.STARTING]
    current = endpoint.version(endpoint.current)
    return (*((current,) if current is not None else ()), *starting[-1:])


def promote(endpoint: Endpoint, number: int) -> Endpoint:
    """Return an endpoint with a version in the place of the one that serves."""

    def moved(one: EndpointVersion) -> EndpointVersion:
        if one.number == number:
            return replace(one, state=VersionState.SERVING, reason="")
        return replace(one, state=VersionState.RETIRED) if one.state is VersionState.SERVING else one

    return replace(endpoint, current=number, versions=tuple(moved(one) for one in endpoint.versions))


def put_version(endpoint: Endpoint, version: EndpointVersion) -> Endpoint:
    """Return an endpoint with the new value of one of its versions."""
    versions = tuple(version if one.number == version.number else one for one in endpoint.versions)
    return replace(endpoint, versions=versions)


def _retire_other_newcomers(endpoint: Endpoint, newest: int) -> Endpoint:
    """Return an endpoint of whose versions that start only the newest does."""
    versions = tuple(
        replace(one, state=VersionState.RETIRED) if one.state is VersionState.STARTING and one.number != newest else one
        for one in endpoint.versions
    )
    return replace(endpoint, versions=versions)


def _observed(version: EndpointVersion, statuses: Mapping[JobId, VersionStatus], find: FindJob) -> EndpointVersion:
    """Return a version with what its job shows of it."""
    if version.job_id is None or version.state not in (VersionState.STARTING, VersionState.SERVING):
        return version
    status = statuses.get(version.job_id)
    if status is not None:
        return replace(version, metadata=status.metadata) if status.metadata else version
    job = find(version.job_id)
    if job is not None and job.state is JobState.FAILED:
        return replace(version, state=VersionState.FAILED, reason=job.reason)
    return version
