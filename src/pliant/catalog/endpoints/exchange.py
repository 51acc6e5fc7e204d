"""Which versions of an endpoint run, and which of them take its traffic: a pure decision about the noun and the jobs.

A version that is deployed starts beside those that serve. When its first kernel is ready, traffic moves to it with its
kernels (`traffic`, `capacity`); when it has arrived, the versions without any are retired. If its model does not load
it has failed, and nothing changes. Example:

    deploy 2       1 serving 100 %     2 starting               start 2
    job-9 ready    1 serving 50 %      2 serving 50 %           two kernels of each
    job-9 has 4    1 retired           2 serving 100 %          stop job-4
    job-9 failed   1 serving 100 %     2 failed: "its model …"

A version that loads and then falls over has failed, too, if its kernels end several times in a row with no request
answered in between: while it takes over, the others keep what they have; if it has taken all, and it is the newest and
has never answered, the version before it is started again and takes it back.

Whatever is found in between (a job that somebody deleted, a server that died halfway) the next decision mends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.catalog.endpoints.capacity import make_room, num_needed, ready_of, share_kernels
from pliant.catalog.endpoints.traffic import aim, gains_of, goal_kernels, goal_of, losses_of, move, without
from pliant.core.endpoint import Endpoint, EndpointVersion, VersionState, VersionStatus
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JobState
from pliant.core.serving_profile import KernelBounds

MAX_UNANSWERED: Final = 3
"""So many kernels in a row may end before one has answered a request, if another version could answer it."""

FindJob = Callable[[JobId], Job | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionExchange:
    """What is to become of an endpoint."""

    endpoint: Endpoint
    start: tuple[EndpointVersion, ...] = ()
    """Versions that need a job."""
    stop: tuple[JobId, ...] = ()
    """Jobs that nobody needs any more."""
    bounds: Mapping[JobId, KernelBounds] = field(default_factory=dict)
    """How many kernels the jobs may have that are needed."""


def settle(
    endpoint: Endpoint,
    statuses: Mapping[JobId, VersionStatus],
    own: set[JobId],
    find: FindJob,
    still_s: float,
) -> VersionExchange:
    """Return what is to become of an endpoint now.

    Args:
        endpoint: as it is kept.
        statuses: of all jobs of versions that have not ended.
        own: those of them that serve this endpoint.
        find: returns a job that has ended.
        still_s: for how long no kernel of it has come or gone, in seconds.
    """
    endpoint = replace(endpoint, versions=tuple(_observed(one, statuses, find) for one in endpoint.versions))
    endpoint = _begun(_given_up(endpoint, statuses), statuses)
    endpoint = without(endpoint, {one.number for one in endpoint.versions if one.state is VersionState.FAILED})
    yields: Mapping[int, int] = {}
    if endpoint.started:
        there = statuses_of(endpoint, statuses)
        yields = make_room(endpoint, there, still_s)
        endpoint = move(endpoint, ready_of(there, yields), num_needed(endpoint, there))
    endpoint = _with_states(endpoint, statuses)
    wanted = running(endpoint)
    kept = {one.job_id for one in wanted}
    bounds = share_kernels(endpoint, statuses_of(endpoint, statuses), yields)
    return VersionExchange(
        endpoint=endpoint,
        start=tuple(one for one in wanted if one.job_id is None or one.job_id not in statuses),
        stop=tuple(sorted(own - kept, key=lambda job_id: (len(job_id), job_id))),
        bounds={one.job_id: bounds[one.number] for one in wanted if one.job_id is not None},
    )


def running(endpoint: Endpoint) -> tuple[EndpointVersion, ...]:
    """Return the versions that are to have a job: those that have traffic, or are to have some."""
    if not endpoint.started:
        return ()
    numbers = endpoint.traffic_now.keys() | goal_of(endpoint).keys()
    return tuple(one for one in endpoint.versions if one.number in numbers)


def weights_of(endpoint: Endpoint, statuses: Mapping[JobId, VersionStatus]) -> dict[int, int]:
    """Return by which weights requests that name no version are shared between the versions that run.

    That is their traffic, but for a version that has no kernel because they keep ending: as long as others have some,
    its share is theirs. Before any version ever served, requests wait for the newest that starts.
    """
    there = statuses_of(endpoint, statuses)
    traffic = endpoint.traffic_now
    if not traffic:
        return {max(goal, key=lambda one: (goal[one], one)): 1} if (goal := goal_of(endpoint)) else {}
    lost = {
        number
        for number, one in there.items()
        if number in traffic and one.wanted and one.num_failures and not one.num_ready
    }
    steady = {one: percent for one, percent in traffic.items() if one not in lost}
    return dict(steady) if any(there[one].num_ready for one in steady if one in there) else dict(traffic)


def describe(endpoint: Endpoint, statuses: Mapping[JobId, VersionStatus]) -> str:
    """Return in a sentence which exchange of versions is under way, and what it waits for; empty: none."""
    exchange, gaining = endpoint.exchange, gains_of(endpoint)
    if exchange is None or not gaining or not endpoint.started:
        return ""
    there = statuses_of(endpoint, statuses)
    before = " and ".join(map(str, sorted(losses_of(endpoint))))
    num = max(exchange.num_kernels, num_needed(endpoint, there))
    said = []
    for number, percent in sorted(gaining.items()):
        status = there.get(number)
        to = f"version {number} is to take {percent} % of the requests" + (f" from version {before}" if before else "")
        if status is None or not status.has_served:
            how = "it loads its model" if status is not None and status.kernels else "it waits for its first kernel"
        else:
            takes = f"it takes {endpoint.traffic_now.get(number, 0)} %"
            how = f"{takes} with {status.num_ready} of {goal_kernels(endpoint, num)[number]} kernels"
        if status is not None and status.num_failures > 1:
            how += f"; its kernels keep ending, {status.num_failures} in a row"
        elif status is not None and status.num_staying < status.wanted and status.why:
            how += f"; {status.why}"
        said.append(f"{to}: {how}")
    return "; ".join(said)


def put_version(endpoint: Endpoint, version: EndpointVersion) -> Endpoint:
    """Return an endpoint with the new value of one of its versions."""
    versions = tuple(version if one.number == version.number else one for one in endpoint.versions)
    return replace(endpoint, versions=versions)


def statuses_of(endpoint: Endpoint, statuses: Mapping[JobId, VersionStatus]) -> dict[int, VersionStatus]:
    """Return how the versions of an endpoint stand that have a job, by number."""
    return {
        one.number: statuses[one.job_id]
        for one in endpoint.versions
        if one.job_id is not None and one.job_id in statuses
    }


def _begun(endpoint: Endpoint, statuses: Mapping[JobId, VersionStatus]) -> Endpoint:
    """Return an endpoint that is on its way to the newest version that starts, if it is not on its way to others.

    Before any version ever served, the first that has loaded takes all traffic, though another one was deployed since.
    """
    there = statuses_of(endpoint, statuses)
    starting = [one.number for one in endpoint.versions if one.state is VersionState.STARTING]
    loaded = [number for number in starting if number in there and there[number].has_served]
    if loaded and not endpoint.traffic_now:
        endpoint = replace(endpoint, traffic={loaded[-1]: 100}, current=loaded[-1])
        if goal_of(endpoint) == endpoint.traffic_now:
            endpoint = replace(endpoint, exchange=None)
        starting = [number for number in starting if number > loaded[-1]]
    return aim(endpoint, {starting[-1]: 100}) if endpoint.exchange is None and starting else endpoint


def _given_up(endpoint: Endpoint, statuses: Mapping[JobId, VersionStatus]) -> Endpoint:
    """Return an endpoint whose versions have failed that load and answer nothing, where others can answer instead."""
    there, now = statuses_of(endpoint, statuses), endpoint.traffic_now
    broken = {number for number, one in there.items() if one.has_served and one.num_failures >= MAX_UNANSWERED}
    if not now or not broken or not endpoint.started:
        return endpoint
    newest, gaining, others = endpoint.versions[-1], gains_of(endpoint), now.keys() - broken
    unproven = {newest.number} if newest.number in broken and not there[newest.number].has_answered else set()
    given_up = {number for number in broken if number in gaining} | (unproven & now.keys()) if others else set()
    before = [one for one in endpoint.versions if one.state is VersionState.RETIRED]
    if not others and unproven == now.keys() and before:
        given_up = unproven
        endpoint = put_version(endpoint, replace(before[-1], state=VersionState.STARTING, reason="", job_id=None))
    for number in given_up:
        reason = f"its kernels end before they answer, {there[number].num_failures} in a row"
        version = next(one for one in endpoint.versions if one.number == number)
        endpoint = put_version(endpoint, replace(version, state=VersionState.FAILED, reason=reason))
    return endpoint


def _with_states(endpoint: Endpoint, statuses: Mapping[JobId, VersionStatus]) -> Endpoint:
    """Return an endpoint whose versions are in the states that follow from where its traffic is."""
    there = statuses_of(endpoint, statuses)
    now, goal = endpoint.traffic_now, goal_of(endpoint)

    def seen(one: EndpointVersion) -> EndpointVersion:
        has_served = one.state is VersionState.SERVING or (one.number in there and there[one.number].has_served)
        if one.number in now or (one.number in goal and has_served):
            return replace(one, state=VersionState.SERVING, reason="")
        if one.number in goal:
            return replace(one, state=VersionState.STARTING)
        ran = one.state in (VersionState.SERVING, VersionState.STARTING)
        return replace(one, state=VersionState.RETIRED) if ran else one

    return replace(endpoint, versions=tuple(map(seen, endpoint.versions)))


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
