"""What is decided at single moments, and what is said of it."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.autoscale.reports import NO_LOAD, PROFILE, decide_each_second, steady, take_all, waiting

from pliant.core.serving import VersionLoad
from pliant.core.serving_profile import ServingProfile
from pliant.policy.autoscale.demand import decide
from pliant.policy.autoscale.load import GONE_S, ScaleState, take
from pliant.policy.autoscale.needs import MAX_NEEDS
from pliant.policy.autoscale.window import MAX_SAMPLES

BUSY = steady(rate=100, kernels=15, busy_s=0.1, at_once=10)
"""What 15 kernels report that answer 100 requests per second, in 0.1 s each."""


def known(since: float = 0.0) -> ScaleState:
    """Return the state of ten seconds of a steady load for 15 kernels."""
    state = ScaleState()
    for second in range(10):
        state = decide(take_all([BUSY] * 4, state, since + second), PROFILE, 15, since + second + 1).state
    return state


# -- up ---------------------------------------------------------------------------------------------------------------


def test_one_request_that_waits_has_a_kernel_at_once() -> None:
    demand = decide(take_all([waiting(1)]), PROFILE, 0, 0.25)

    assert demand.num_kernels == 1
    assert demand.reason == "1 request and no kernel: 1 is wanted"


def test_requests_that_kernels_do_not_answer_in_time_want_more_of_them() -> None:
    one = take_all([steady(rate=8, kernels=1, busy_s=0.125, at_once=1)] * 40)
    step = take_all([waiting(4, kernels=1, in_flight=16)] * 4, one, since=10)

    demand = decide(step, PROFILE, 1, 11.0)

    assert demand.num_kernels == 3
    assert demand.reason.startswith("20 requests at once are more than 1 kernel answers within 0.5 s: ")
    assert demand.again_at == 12.0


def test_a_request_that_has_waited_for_too_long_wants_a_kernel_though_all_seemed_well() -> None:
    quick = take_all([steady(rate=100, kernels=1, busy_s=0.001, at_once=1)] * 40)
    stuck = take_all([waiting(2, kernels=1, in_flight=16, oldest_wait_s=3.0)] * 12, quick, since=10)

    demand = decide(stuck, PROFILE, 1, 13.0)

    assert demand.num_kernels == 2
    assert demand.reason == "a request has waited 3 s for one of 1 kernel, more than 0.5 s: 2 are wanted"


def test_kernels_that_are_full_for_long_are_not_enough_though_requests_are_in_time() -> None:
    full = replace(steady(rate=400, kernels=1, busy_s=0.0025, at_once=16), queued=20, mean_load=36, oldest_wait_s=0.05)
    demands = decide_each_second(take_all([full]), full, have=1, since=0.25, seconds=8)

    assert [demand.num_kernels for demand in demands] == [1] * 5 + [2] * 3
    assert demands[5].reason == "1 kernel of 16 is full for 6 s: 2 are wanted"


def test_a_queue_before_kernels_that_rest_does_not_want_more_of_them() -> None:
    rest = replace(steady(rate=40, kernels=4, busy_s=0.01, at_once=2), queued=100, mean_load=102, oldest_wait_s=0.8)

    demands = decide_each_second(ScaleState(), rest, have=4, since=0, seconds=20)

    assert max(demand.num_kernels for demand in demands) == 4


def test_kernels_that_start_are_counted() -> None:
    state = take_all([waiting(30, kernels=1, in_flight=16)] * 4, known(), since=10)

    demand = decide(state, PROFILE, 15, 11.0)

    assert demand.num_kernels == 15


def test_a_kernel_that_waits_for_its_slot_stays_wanted_while_requests_are_late() -> None:
    one = take_all([steady(rate=8, kernels=1, busy_s=0.125, at_once=1)] * 40)
    many = decide(take_all([waiting(14, kernels=1, in_flight=16)] * 4, one, since=10), PROFILE, 1, 11.0)
    fewer = take_all([steady(rate=8, kernels=1, busy_s=0.125, at_once=5)] * 4, many.state, since=11)

    demand = decide(fewer, PROFILE, 1, 12.0)
    later = take_all([steady(rate=8, kernels=1, busy_s=0.125, at_once=1)] * 40, demand.state, since=12)

    assert (many.num_kernels, demand.num_kernels) == (3, 3)
    assert demand.reason.endswith("; 3 stay wanted while requests are late")
    assert decide(later, PROFILE, 1, 22.0).num_kernels == 1


def test_a_burst_that_is_over_wants_nothing() -> None:
    one = take_all([steady(rate=8, kernels=1, busy_s=0.1, at_once=1)] * 40)
    burst = take_all([waiting(40, kernels=1), steady(rate=8, kernels=1, busy_s=0.1, at_once=1)], one, since=10)

    assert decide(burst, PROFILE, 1, 10.5).num_kernels == 1


# -- stay and down ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay_s", [10.0, 60.0, 300.0])
def test_kernels_are_kept_for_the_release_delay_after_the_load_and_gone_soon_after(delay_s: float) -> None:
    profile = replace(PROFILE, release_delay_s=delay_s)

    idle = replace(NO_LOAD, num_ready=15)
    demands = decide_each_second(known(), idle, have=15, since=10, seconds=int(delay_s) + 6, profile=profile)

    numbers = [demand.num_kernels for demand in demands]
    assert numbers[: int(delay_s) - 1] == [15] * (int(delay_s) - 1)
    assert numbers[int(delay_s) - 1 :][:6] == [8, 4, 2, 1, 0, 0]
    assert demands[0].reason == f"nobody has asked for 1 s; 15 kernels are kept for {delay_s:g} s after the load"
    assert demands[0].again_at == 10 + delay_s
    assert demands[-1].again_at is None


def test_no_delay_is_no_delay() -> None:
    profile = replace(PROFILE, release_delay_s=0)

    demands = decide_each_second(known(), NO_LOAD, have=15, since=10, seconds=5, profile=profile)

    assert [demand.num_kernels for demand in demands] == [8, 4, 2, 1, 0]


def test_the_last_kernel_is_kept_for_as_long_as_it_took_to_start() -> None:
    profile = replace(PROFILE, release_delay_s=5)
    state = decide(take_all([waiting(1)] * 4), profile, 1, 1.0).state
    load = steady(rate=4, kernels=1, busy_s=0.1, at_once=1)
    state = decide(take_all([load] * 4, state, since=30), profile, 1, 31.0).state

    numbers = [
        demand.num_kernels
        for demand in decide_each_second(state, NO_LOAD, have=1, since=31, seconds=40, profile=profile)
    ]

    assert numbers == [1] * 29 + [0] * 11


def test_requests_that_come_and_go_between_two_decisions_count() -> None:
    sparse = [steady(rate=4, kernels=1, busy_s=0.01, at_once=0.01), NO_LOAD, NO_LOAD, NO_LOAD]
    state, numbers = ScaleState(), []
    for second in range(200):
        state = take_all(sparse if second % 50 == 0 else [NO_LOAD] * 4, state, second)
        demand = decide(state, PROFILE, 1, second + 1)
        state = demand.state
        numbers.append(demand.num_kernels)

    assert numbers == [1] * 200


# -- silence ----------------------------------------------------------------------------------------------------------


def test_if_nothing_is_reported_the_number_stays_for_the_release_delay_and_then_falls() -> None:
    demands = decide_each_second(known(), None, have=15, since=10, seconds=70)

    numbers = [demand.num_kernels for demand in demands]
    assert numbers[:59] == [15] * 59
    assert numbers[59:65] == [8, 4, 2, 1, 0, 0]
    assert demands[20].reason == "the gateway has reported nothing for 21 s: nothing changes"
    assert demands[20].again_at == 70
    assert demands[-1].again_at is None


def test_a_server_that_is_new_keeps_what_it_finds() -> None:
    unheard = decide(ScaleState(), PROFILE, 5, 1000.0)
    idle = decide_each_second(unheard.state, replace(NO_LOAD, num_ready=5), have=5, since=1000, seconds=70)

    assert unheard.num_kernels == 5
    assert [demand.num_kernels for demand in idle[:59]] == [5] * 59
    assert idle[-1].num_kernels == 0


def test_nothing_can_change_while_nobody_asks_and_nothing_is_there() -> None:
    assert decide(ScaleState(), PROFILE, 0, 0.0).again_at is None
    assert decide(take_all([NO_LOAD]), PROFILE, 0, 0.25).again_at is None


# -- the profile ------------------------------------------------------------------------------------------------------


def test_the_bounds_of_the_profile_act_at_once() -> None:
    state = known()

    low = decide(state, replace(PROFILE, kernel_max=4), 15, 10.0)
    high = decide(state, replace(PROFILE, kernel_min=50), 15, 10.0)
    back = decide(high.state, PROFILE, 50, 10.1)

    assert low.num_kernels == 4
    assert low.reason.endswith("; kernel_max is 4")
    assert high.num_kernels == 50
    assert high.reason.endswith("; kernel_min is 50")
    assert back.num_kernels == 25


def test_the_minimum_is_held_without_load_and_without_reports() -> None:
    profile = replace(PROFILE, kernel_min=3)

    assert decide(ScaleState(), profile, 0, 0.0).num_kernels == 3
    assert {
        d.num_kernels for d in decide_each_second(known(), None, have=15, since=10, seconds=200, profile=profile)[-9:]
    } == {3}
    idle = decide_each_second(
        ScaleState(), replace(NO_LOAD, num_ready=3), have=3, since=0, seconds=200, profile=profile
    )
    assert {demand.num_kernels for demand in idle} == {3}
    assert idle[-1].again_at is None


def test_a_stricter_objective_and_a_shorter_delay_act_at_once() -> None:
    load = steady(rate=20, kernels=3, busy_s=0.1, at_once=6)
    state = decide(take_all([load] * 40), PROFILE, 3, 10.0).state

    assert decide(state, PROFILE, 3, 10.1).num_kernels == 3
    assert decide(state, replace(PROFILE, latency_objective_s=0.1), 3, 10.1).num_kernels > 3

    idle = take(known(), replace(NO_LOAD, num_ready=15), 30.0)
    assert decide(idle, PROFILE, 15, 30.1).num_kernels == 15
    assert decide(idle, replace(PROFILE, release_delay_s=1), 15, 30.1).num_kernels == 8


# -- whatever comes ---------------------------------------------------------------------------------------------------

profiles = st.builds(
    lambda low, more, delay, objective, size, pipe: ServingProfile(
        kernel_min=low,
        kernel_max=max(1, low + more),
        release_delay_s=delay,
        latency_objective_s=objective,
        batch_size=size,
        pipe_size=pipe,
    ),
    st.integers(0, 10),
    st.integers(0, 100),
    st.floats(0, 86_400),
    st.floats(0.001, 600),
    st.integers(1, 4096),
    st.integers(1, 64),
)
any_float = st.one_of(st.floats(0, 100), st.floats(allow_nan=True, allow_infinity=True))
loads = st.builds(
    VersionLoad,
    job_id=st.just(NO_LOAD.job_id),
    seconds=any_float,
    in_flight=st.integers(-1, 10**6),
    queued=st.integers(-1, 10**6),
    mean_load=any_float,
    oldest_wait_s=any_float,
    num_ready=st.integers(-1, 4096),
    completed=st.integers(-1, 10**6),
    refused=st.integers(-1, 10**6),
    num_batches=st.integers(-1, 10**4),
    busy_s=any_float,
)
steps = st.lists(
    st.tuples(st.floats(-10, 100), st.none() | loads, st.integers(0, 200), st.none() | profiles), max_size=25
)


@settings(max_examples=50)
@given(steps)
def test_whatever_is_reported_the_number_is_within_bounds_and_what_is_kept_is_bounded(
    steps: list[tuple[float, VersionLoad | None, int, ServingProfile | None]],
) -> None:
    state, profile, now = ScaleState(), PROFILE, 0.0
    for step, load, have, changed in steps:
        now += step
        profile = changed or profile
        state = state if load is None else take(state, load, now)

        demand = decide(state, profile, have, now)

        assert profile.kernel_min <= demand.num_kernels <= profile.kernel_max
        assert demand.num_kernels <= max(2 * have + 1, profile.kernel_min, state.wanted or 0)
        base = have if state.wanted is None else min(have, state.wanted)
        assert demand.num_kernels >= min(base - max(1, base // 2), profile.kernel_max)
        assert demand.again_at is None or (now < demand.again_at and math.isfinite(demand.again_at))
        assert demand.reason
        assert len(demand.state.needs) <= MAX_NEEDS
        assert len(demand.state.samples) <= MAX_SAMPLES
        assert decide(state, profile, have, now) == demand
        state = demand.state


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 100)), max_size=60))
def test_without_reports_the_number_never_rises(steps: list[tuple[float, int]]) -> None:
    state, now = known(), 10.0 + GONE_S
    last = 15
    for step, have in steps:
        now += step + 0.001
        demand = decide(state, PROFILE, have, now)
        state = demand.state

        assert demand.num_kernels <= last
        assert now >= 70 or demand.num_kernels == 15
        last = demand.num_kernels


@settings(max_examples=40)
@given(st.lists(st.floats(-3, 3), min_size=40, max_size=40))
def test_a_clock_that_trembles_changes_no_decision_of_a_steady_load(shifts: list[float]) -> None:
    state, now = known(), 10.0
    for shift in shifts:
        now += 0.25
        state = take(state, BUSY, now + shift)
        demand = decide(state, PROFILE, 15, now)
        state = demand.state

        assert demand.num_kernels == 15
