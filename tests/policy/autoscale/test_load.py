"""A report counts for the time that no report before it has covered, and what makes no sense counts for nothing."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.autoscale.reports import NO_LOAD, PROFILE, steady, take_all, waiting

from pliant.core.serving import VersionLoad
from pliant.policy.autoscale.load import ScaleState, take
from pliant.policy.autoscale.window import WINDOW_S, total


def test_a_report_that_comes_twice_changes_nothing() -> None:
    load = steady(rate=40, kernels=1, busy_s=0.01, at_once=1)
    once = take_all([load] * 8)

    assert take(once, load, 2.0) == once


def test_requests_that_arrive_are_those_answered_and_those_that_are_more() -> None:
    state = take_all([NO_LOAD, waiting(10), waiting(30)])

    assert total(state.samples, 0.75, WINDOW_S).arrived == 30

    answered = take(state, replace(NO_LOAD, completed=25, queued=5, num_batches=25, num_ready=1), 1.0)
    assert total(answered.samples, 1.0, WINDOW_S).arrived == 30


def test_requests_that_a_full_queue_refuses_have_arrived() -> None:
    state = take_all([waiting(1000), replace(waiting(1000), refused=50)])

    assert total(state.samples, 0.5, WINDOW_S).arrived == 1050


def test_a_report_after_a_long_silence_weighs_no_more_than_a_window() -> None:
    state = take(take_all([NO_LOAD]), replace(NO_LOAD, seconds=600, completed=6000, num_ready=1), 600.25)

    assert total(state.samples, 600.25, WINDOW_S).rate == pytest.approx(10)
    assert total(state.samples, 600.25, WINDOW_S).seconds == pytest.approx(WINDOW_S)


def test_a_clock_that_goes_back_a_little_does_no_harm() -> None:
    load = steady(rate=40, kernels=1, busy_s=0.01, at_once=1)
    state = take_all([load] * 8)

    back = take(state, load, 1.9)

    assert back.present is not None
    assert back.present.at == 2.0
    assert total(back.samples, 2.0, WINDOW_S) == total(state.samples, 2.0, WINDOW_S)


def test_a_clock_that_is_put_back_by_an_hour_goes_on_from_there() -> None:
    load = steady(rate=40, kernels=1, busy_s=0.01, at_once=1)

    state = take_all([load] * 40, take_all([load] * 40, since=3600), since=0)

    assert total(state.samples, 10.0, WINDOW_S).rate == pytest.approx(40)


def test_numbers_that_cannot_be_count_as_none() -> None:
    mad = replace(NO_LOAD, mean_load=math.nan, busy_s=-1.0, seconds=math.inf, queued=-5, oldest_wait_s=math.nan)

    state = take(ScaleState(), mad, 1.0)

    assert state.present is not None
    assert state.present.num_requests == 0
    assert total(state.samples, 1.0, WINDOW_S).is_idle


any_float = st.floats(allow_nan=True, allow_infinity=True)
any_load = st.builds(
    VersionLoad,
    job_id=st.just(NO_LOAD.job_id),
    seconds=any_float,
    in_flight=st.integers(),
    queued=st.integers(),
    mean_load=any_float,
    oldest_wait_s=any_float,
    num_ready=st.integers(),
    completed=st.integers(),
    refused=st.integers(),
    num_batches=st.integers(),
    busy_s=any_float,
)


@settings(max_examples=40)
@given(st.lists(st.tuples(any_load, st.floats(-100, 1000)), max_size=30))
def test_nothing_that_is_reported_makes_numbers_that_cannot_be(steps: list[tuple[VersionLoad, float]]) -> None:
    state, now = ScaleState(), 0.0
    for load, step in steps:
        now += step
        state = take(state, load, now)

        window = total(state.samples, now, WINDOW_S)
        assert math.isfinite(window.rate)
        assert math.isfinite(window.mean_load)
        pace = state.speed.pace(PROFILE)
        assert pace is None or math.isfinite(pace.answer_s)
