"""Kernels while traffic goes from one version to another: never fewer than before if there are slots, and it ends."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.endpoints.played_pool import PlayedPool, deploy, serving

from pliant.catalog.endpoints.capacity import Standstill, share_kernels, surge_of
from pliant.catalog.endpoints.exchange import statuses_of
from pliant.core.endpoint import VersionState
from pliant.core.job import JobId

ENOUGH = 400
"""Seconds in which every exchange has ended."""


def run_until_over(pool: PlayedPool, most: int = ENOUGH) -> list[tuple[int, int, dict[int, int]]]:
    """Let time pass until no exchange is under way; return ready kernels, held ones and weights of every second."""
    seen = []
    for _ in range(most):
        pool.tick()
        seen.append((pool.ready, pool.held, pool.weights))
        if pool.endpoint.exchange is None:
            return seen
    raise AssertionError(f"the exchange has not ended: {pool.endpoint.exchange}, {pool.jobs}")


def test_with_free_slots_kernels_grow_in_steps_and_never_are_fewer() -> None:
    pool = serving(6, slots=100)
    deploy(pool, 2, {2: 100})

    seen = run_until_over(pool)

    splits = [weights.get(2, 0) for _, _, weights in seen]
    assert min(ready for ready, _, _ in seen) == 6
    assert max(held for _, held, _ in seen) <= 6 + surge_of(6)
    assert splits == sorted(splits)
    assert set(splits) > {0, 100}
    assert (pool.endpoint.current, pool.by_number(2).ready) == (2, 6)


def test_with_free_slots_kernels_never_are_fewer_though_models_load_slowly() -> None:
    pool = serving(6, slots=100)
    pool.load_ticks = 20
    deploy(pool, 2, {2: 100})

    seen = run_until_over(pool)

    assert min(ready for ready, _, _ in seen) == 6
    assert pool.endpoint.current == 2


def test_in_a_full_pool_slots_go_from_one_version_to_the_other() -> None:
    pool = serving(6, slots=6)
    deploy(pool, 2, {2: 100})

    seen = run_until_over(pool)

    assert min(ready for ready, _, _ in seen) >= 6 - surge_of(6) - 1
    assert pool.endpoint.current == 2
    for _ in range(20):
        pool.tick()
    assert pool.by_number(2).ready == 6


def test_it_ends_though_somebody_else_takes_what_the_first_version_gives_back() -> None:
    pool = serving(6, slots=6)
    deploy(pool, 2, {2: 100})
    for _ in range(ENOUGH):
        pool.tick()
        if pool.by_number(2).staying:  # what is promised to its first kernel nobody else takes
            pool.slots = min(pool.slots, pool.held)
        if pool.endpoint.exchange is None:
            break

    assert (pool.endpoint.exchange, pool.endpoint.current) == (None, 2)
    assert pool.by_number(2).ready >= 1


def test_what_is_promised_goes_over_with_the_traffic_and_is_never_promised_twice() -> None:
    pool = serving(0, slots=4, kernel_min=4, kernel_max=4)
    deploy(pool, 2, {2: 100})
    promised = []
    while pool.endpoint.exchange is not None:
        pool.tick()
        promised.append(sum(one.bounds.promised for one in pool.jobs.values()))

    assert max(promised) <= 4
    assert promised[-1] == 4
    assert pool.endpoint.current == 2


def test_a_split_divides_the_bounds_of_the_endpoint() -> None:
    pool = serving(8, slots=100, kernel_min=2, kernel_max=8)
    deploy(pool, 2, {1: 90, 2: 10})
    run_until_over(pool)

    bounds = share_kernels(pool.endpoint, {}, {})

    assert {number: (one.promised, one.at_most) for number, one in bounds.items()} == {1: (2, 7), 2: (0, 1)}
    small = share_kernels(replace(pool.endpoint, kernel_min=0, kernel_max=2), {}, {})
    assert {number: one.at_most for number, one in small.items()} == {1: 1, 2: 1}


def test_where_a_split_was_just_reached_one_version_grows_as_the_other_shrinks() -> None:
    pool = serving(8, slots=100, kernel_max=8)
    deploy(pool, 2, {1: 50, 2: 50})
    run_until_over(pool)
    for number, ready in ((1, 8), (2, 1)):
        version = pool.by_number(number)
        version.ready, version.loading, version.leaving = ready, [], []

    bounds = share_kernels(pool.endpoint, statuses_of(pool.endpoint, pool.statuses()), {})

    assert {number: one.at_most for number, one in bounds.items()} == {1: 4, 2: 2}, "8 and a surge of 2 in all"


def test_an_endpoint_stands_still_since_its_last_kernel_came_or_went() -> None:
    still, pool = Standstill(), serving(4, slots=8)
    job = JobId("job-1")

    def look(now: float) -> float:
        return still.observe("digits", statuses_of(pool.endpoint, pool.statuses()), now)

    assert (look(10.0), look(12.0)) == (0.0, 2.0)
    pool.jobs[job].loading = [2]
    assert (look(13.0), look(14.0)) == (0.0, 1.0)
    still.forget({"other"})
    assert look(20.0) == 0.0


@given(
    need=st.integers(0, 20),
    spare=st.integers(0, 12),
    kernel_min=st.integers(0, 4),
    kernel_max=st.integers(4, 16),
    goals=st.lists(st.sampled_from([100, 100, 10, 50, 1]), min_size=1, max_size=3),
    gaps=st.lists(st.integers(0, 12), min_size=3, max_size=3),
    new_load=st.integers(0, 20),
    load_ticks=st.sampled_from([2, 7]),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_deployed_and_whenever_the_server_dies_requests_have_a_version_and_kernels_stay_within_bounds(
    need: int,
    spare: int,
    kernel_min: int,
    kernel_max: int,
    goals: list[int],
    gaps: list[int],
    new_load: int,
    load_ticks: int,
    data: st.DataObject,
) -> None:
    base = max(kernel_min, min(need, kernel_max))
    pool = serving(need, slots=max(1, base) + spare + len(goals), kernel_min=kernel_min, kernel_max=kernel_max)
    pool.load_ticks = load_ticks
    most = kernel_max + surge_of(kernel_max, 2) + 1  # both of a split may gain; and one was deployed just now

    def watch() -> None:
        pool.look()  # as it does when a kernel says that it is ready
        weights = pool.weights
        assert sum(weights.values()) == 100
        named = {number: pool.endpoint.version(number) for number in weights}
        assert all(one is not None and one.job_id in pool.jobs for one in named.values())
        num_more = max(0, len(weights) - 2)  # every version that has traffic may have a kernel
        assert sum(max(one.staying, one.wanted) for one in pool.jobs.values()) <= most + num_more
        if pool.ready:
            assert any(pool.by_number(number).ready for number in weights)

    for index, (percent, gap) in enumerate(zip(goals, gaps, strict=False)):
        number = pool.endpoint.next_number
        current = pool.endpoint.current
        assert current is not None
        deploy(pool, number, {number: 100} if percent == 100 else {current: 100 - percent, number: percent})
        loads = data.draw(st.booleans(), label=f"version {number} loads")
        for _ in range(gap):
            pool.tick(loads=loads)
            watch()
        if index == 0:
            pool.need = new_load
        if data.draw(st.booleans(), label="the server dies"):
            pool.restart()
            watch()
    for _ in range(ENOUGH):
        pool.tick()
        watch()
        if pool.endpoint.exchange is None:
            break

    assert pool.endpoint.exchange is None, (pool.endpoint, pool.jobs)
    served = [one.number for one in pool.endpoint.versions if one.state is VersionState.SERVING]
    assert set(served) == set(pool.endpoint.traffic_now)
    assert pool.endpoint.current in served


def test_a_version_whose_model_may_not_load_takes_no_share_though_nobody_asks() -> None:
    pool = serving(0, slots=3)
    deploy(pool, 2, {1: 50, 2: 50})
    for _ in range(3):
        pool.tick()
    deploy(pool, 3, {1: 90, 3: 10})
    pool.look()

    assert pool.endpoint.exchange is not None
    assert 3 not in pool.weights


def test_a_version_that_has_less_than_its_goal_is_made_room_for_though_the_budget_gives_it_no_more() -> None:
    pool = serving(0, slots=5, kernel_max=5)
    deploy(pool, 2, {2: 100})
    pool.need = 2
    deploy(pool, 3, {3: 100})
    for _ in range(3):
        pool.tick(loads=True)
    deploy(pool, 4, {1: 90, 4: 10})

    run_until_over(pool, 40)

    assert pool.endpoint.traffic_now == {1: 90, 4: 10}


@pytest.mark.parametrize(("need", "slots"), [(6, 100), (6, 6), (1, 2), (0, 1)])
def test_a_version_that_does_not_load_changes_nothing(need: int, slots: int) -> None:
    pool = serving(need, slots=slots)
    deploy(pool, 2, {2: 100})
    weights = []
    for _ in range(20):
        pool.tick(loads=False)
        weights.append(pool.weights)

    assert all(one == {1: 100} for one in weights)
    assert [one.state for one in pool.endpoint.versions] == [VersionState.SERVING, VersionState.FAILED]
    assert (pool.endpoint.current, pool.by_number(1).ready) == (1, need)
