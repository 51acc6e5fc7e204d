"""Which versions run: decided from the noun and the jobs alone."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.endpoints.played_pool import status, version

from pliant.catalog.endpoints.exchange import running, settle
from pliant.core.endpoint import Endpoint, EndpointVersion, VersionState
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.lifecycle import JobState

STARTING, SERVING, RETIRED, FAILED = VersionState


def endpoint(*versions: EndpointVersion, current: int | None = None, started: bool = True) -> Endpoint:
    return Endpoint(
        name="digits", owner="ann", versions=versions, current=current, started=started, next_number=len(versions) + 1
    )


def job(state: JobState, reason: str = "") -> Job:
    spec = JobSpec(name="digits-v1", script="serve.py", virtual_workers=1)
    return Job(
        id=JobId("job-9"),
        spec=spec,
        owner="ann",
        state=state,
        priority=1,
        min_tasks=1,
        max_tasks=1,
        submitted_at=0.0,
        reason=reason,
    )


def states(endpoint: Endpoint) -> list[VersionState]:
    return [one.state for one in endpoint.versions]


def test_the_version_that_serves_goes_on_while_the_next_one_loads() -> None:
    found = settle(
        endpoint(version(1, SERVING, "job-4"), version(2, STARTING, "job-9"), current=1),
        {JobId("job-4"): status("job-4"), JobId("job-9"): status("job-9", has_served=False)},
        {JobId("job-4"), JobId("job-9")},
        lambda _: None,
        0.0,
    )

    assert (found.start, found.stop, found.endpoint.current) == ((), (), 1)


def test_the_next_version_takes_its_place_when_it_is_ready() -> None:
    found = settle(
        endpoint(version(1, SERVING, "job-4"), version(2, STARTING, "job-9"), current=1),
        {JobId("job-4"): status("job-4"), JobId("job-9"): status("job-9")},
        {JobId("job-4"), JobId("job-9")},
        lambda _: None,
        0.0,
    )

    assert (found.endpoint.current, states(found.endpoint), found.stop) == (2, [RETIRED, SERVING], (JobId("job-4"),))
    assert found.endpoint.versions[1].metadata == {"platform": "job-9"}


def test_a_version_whose_model_does_not_load_changes_nothing_for_the_one_that_serves() -> None:
    found = settle(
        endpoint(version(1, SERVING, "job-4"), version(2, STARTING, "job-9"), current=1),
        {JobId("job-4"): status("job-4")},
        {JobId("job-4")},
        lambda job_id: job(JobState.FAILED, "its model did not load"),
        0.0,
    )

    assert (found.endpoint.current, states(found.endpoint), found.start, found.stop) == (1, [SERVING, FAILED], (), ())
    assert found.endpoint.versions[1].reason == "its model did not load"


def test_a_job_that_was_stopped_or_deleted_is_started_again() -> None:
    for ended in (None, job(JobState.STOPPED)):
        found = settle(endpoint(version(1, SERVING, "job-4"), current=1), {}, set(), {JobId("job-4"): ended}.get, 0.0)

        assert [one.number for one in found.start] == [1]


def test_a_stopped_endpoint_runs_nothing_and_forgets_nothing() -> None:
    stopped = endpoint(version(1, SERVING, "job-4"), current=1, started=False)

    found = settle(stopped, {JobId("job-4"): status("job-4")}, {JobId("job-4")}, lambda _: None, 0.0)

    assert (found.stop, found.start, found.endpoint.current) == ((JobId("job-4"),), (), 1)


def test_of_two_that_start_the_newer_counts() -> None:
    found = settle(
        endpoint(version(1, STARTING, "job-4"), version(2, STARTING, "job-9")),
        {JobId("job-4"): status("job-4", has_served=False), JobId("job-9"): status("job-9", has_served=False)},
        {JobId("job-4"), JobId("job-9")},
        lambda _: None,
        0.0,
    )

    assert (states(found.endpoint), found.stop) == ([RETIRED, STARTING], (JobId("job-4"),))


def test_a_version_that_served_and_has_failed_serves_no_more() -> None:
    found = settle(
        endpoint(version(1, SERVING, "job-4"), current=1), {}, set(), lambda _: job(JobState.FAILED, "the disk"), 0.0
    )

    assert (found.endpoint.current, states(found.endpoint), found.start) == (None, [FAILED], ())


VERSIONS = st.lists(
    st.tuples(st.sampled_from(VersionState), st.sampled_from([None, "gone", "starting", "ready"])), max_size=6
)


@given(VERSIONS, st.data(), st.booleans())
def test_whatever_there_is_it_comes_to_rest_with_one_version_that_takes_the_traffic(
    kinds: list[tuple[VersionState, str | None]], data: st.DataObject, started: bool
) -> None:
    versions = [
        version(number, state, None if how is None else f"job-{number}")
        for number, (state, how) in enumerate(kinds, start=1)
    ]
    serving = [one.number for one in versions if one.state is SERVING]
    current = data.draw(st.sampled_from(serving)) if serving else None
    versions = [
        replace(one, state=RETIRED) if one.state is SERVING and one.number != current else one for one in versions
    ]
    statuses = {
        JobId(f"job-{number}"): status(f"job-{number}", has_served=how == "ready")
        for number, (_, how) in enumerate(kinds, start=1)
        if how in ("starting", "ready")
    }

    found = settle(endpoint(*versions, current=current, started=started), statuses, set(statuses), lambda _: None, 0.0)
    again = settle(
        found.endpoint,
        {job_id: one for job_id, one in statuses.items() if job_id not in found.stop},
        set(statuses) - set(found.stop),
        lambda _: None,
        0.0,
    )

    runs = running(found.endpoint)
    assert found.endpoint.exchange or len([one for one in found.endpoint.versions if one.state is SERVING]) <= 1
    assert len(runs) <= 2
    assert not {one.job_id for one in runs} & set(found.stop)
    assert (again.endpoint, again.stop) == (found.endpoint, ())
    assert [one.number for one in again.start] == [one.number for one in found.start]
