"""The limits of a token or an endpoint: a rate that no window of time exceeds, that can be used up; so many at once."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.serving import RequestLimits
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.request_limiter import RequestLimiter, enter

RATES = st.floats(0.1, 1e6) | st.sampled_from([0.1, 0.3, 1.0, 3.0, 50.0])


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def passes(limiter: RequestLimiter) -> bool:
    try:
        enter(limiter)
    except Refused:
        return False
    limiter.leave()
    return True


def passed_at(rate: float, gaps: Sequence[float]) -> list[float]:
    """Return when requests passed that come with these gaps, in seconds."""
    clock = Clock()
    limiter = RequestLimiter(RequestLimits(max_rate=rate), clock)
    passed = []
    for gap in gaps:
        clock.now += gap
        if passes(limiter):
            passed.append(clock.now)
    return passed


@given(RATES, st.lists(st.floats(0, 20) | st.floats(0, 0.01) | st.just(0.0), max_size=200))
def test_no_window_of_time_has_more_than_its_length_at_this_rate_and_what_comes_in_a_second(
    rate: float, gaps: list[float]
) -> None:
    passed = passed_at(rate, gaps)
    for first, begun_at in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= rate * (passed[last] - begun_at) + max(1.0, rate) + 1e-6 * (1 + rate)


@given(RATES, st.integers(1, 300))
def test_whoever_keeps_to_the_rate_is_never_refused(rate: float, number: int) -> None:
    gap = 1 / rate * (1 + 1e-9)
    assert len(passed_at(rate, [gap] * number)) == number


@given(RATES)
def test_what_comes_in_a_second_may_come_at_once_and_who_waits_as_told_passes(rate: float) -> None:
    clock = Clock()
    limiter = RequestLimiter(RequestLimits(max_rate=min(rate, 300.0)), clock)
    burst = math.floor(max(1.0, min(rate, 300.0)) + 1e-6)
    assert [passes(limiter) for _ in range(burst)] == [True] * burst
    with pytest.raises(Refused) as refused:
        enter(limiter)
    assert refused.value.status == 429
    assert refused.value.retry_after_s is not None
    told_s = float(refused.value.message.rpartition(" in ")[2].removesuffix(" s"))
    assert told_s <= refused.value.retry_after_s <= told_s + 1.001
    clock.now += max(0.0, told_s - 0.002)
    assert not passes(limiter) or told_s <= 0.002
    clock.now += 0.004
    assert passes(limiter)


def test_a_limiter_is_idle_when_a_new_one_would_do_the_same() -> None:
    clock = Clock()
    limiter = RequestLimiter(RequestLimits(max_rate=2.0, max_concurrent=1), clock)
    assert limiter.is_idle()
    enter(limiter)
    with pytest.raises(Refused, match="1 requests with this token are under way"):
        enter(limiter)
    clock.now += 10
    assert not limiter.is_idle()
    limiter.leave()
    assert limiter.is_idle()
    assert passes(limiter)
    assert not limiter.is_idle()
    clock.now += 0.5
    assert limiter.is_idle()


@given(st.lists(st.tuples(RATES, st.lists(st.floats(0, 2) | st.just(0.0), max_size=30)), min_size=1, max_size=5))
def test_after_a_change_of_the_rate_no_window_has_more_than_the_new_one_allows(
    changes: list[tuple[float, list[float]]],
) -> None:
    clock = Clock()
    limiter = RequestLimiter(RequestLimits(), clock)
    for rate, gaps in changes:
        limiter.change(RequestLimits(max_rate=rate))
        changed_at, passed = clock.now, []
        for gap in gaps:
            clock.now += gap
            passed += [clock.now] * passes(limiter)
        for number, at in enumerate(passed, 1):
            assert number <= rate * (at - changed_at) + max(1.0, rate) + 1e-6 * (1 + rate)
        if not passed:
            clock.now += 1 / rate
            assert passes(limiter), "whatever was used under the rate before, the next one waits no longer than this"


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=60))
def test_what_one_limit_refuses_counts_for_none(steps: list[tuple[int, bool]]) -> None:
    clock = Clock()
    endpoint = RequestLimiter(RequestLimits(max_concurrent=4), clock, "to 'digits'")
    tokens = [RequestLimiter(RequestLimits(max_concurrent=2), clock) for _ in range(3)]
    under_way = [0, 0, 0]
    for token, leaves in steps:
        if leaves and under_way[token]:
            for limiter in (tokens[token], endpoint):
                limiter.leave()
            under_way[token] -= 1
        elif under_way[token] < 2 and sum(under_way) < 4:
            enter(tokens[token], endpoint)
            under_way[token] += 1
        else:
            with pytest.raises(Refused, match="2 requests with this token" if under_way[token] == 2 else "to 'digits'"):
                enter(tokens[token], endpoint)
