"""Whoever guesses has to wait, longer and longer."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.people.throttle import Throttle, ThrottleRule

RULE = ThrottleRule(num_free=5, first_wait_s=5.0, max_wait_s=300.0, forgotten_s=300.0)


def guess(throttle: Throttle, times: int, at: float, key: str = "ada") -> None:
    for _ in range(times):
        throttle.failed(key, at)


def test_five_failures_are_free_then_the_wait_doubles_up_to_five_minutes() -> None:
    throttle, now, waits = Throttle(RULE), 1000.0, []
    guess(throttle, RULE.num_free - 1, now)
    assert throttle.wait_s("ada", now) == 0
    for _ in range(9):
        throttle.failed("ada", now)
        waits.append(throttle.wait_s("ada", now))
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_the_wait_passes_and_failures_are_forgotten_in_time() -> None:
    throttle = Throttle(RULE)
    guess(throttle, RULE.num_free, 1000.0)
    assert throttle.wait_s("ada", 1002.0) == 3
    assert throttle.wait_s("ada", 1005.0) == 0
    throttle.failed("ada", 1000.0 + RULE.forgotten_s)
    assert throttle.wait_s("ada", 1000.0 + RULE.forgotten_s) == 5, "one was forgotten, one was added"
    throttle.failed("ada", 1000.0 + 9 * RULE.forgotten_s)
    assert throttle.wait_s("ada", 1000.0 + 9 * RULE.forgotten_s) == 0


def test_failures_further_apart_than_they_are_forgotten_cost_nothing() -> None:
    throttle = Throttle(RULE)
    for number in range(50):
        throttle.failed("ada", number * RULE.forgotten_s)
        assert throttle.wait_s("ada", number * RULE.forgotten_s) == 0


def test_each_key_counts_by_itself_and_can_be_forgotten() -> None:
    throttle = Throttle(RULE)
    guess(throttle, RULE.num_free, 0.0, "ada here")
    guess(throttle, RULE.num_free, 0.0, "ada there")
    guess(throttle, RULE.num_free, 0.0, "adam here")
    assert throttle.wait_s("bob here", 0.0) == 0
    throttle.forget("never seen")
    throttle.forget_all("ada ")
    assert [throttle.wait_s(key, 0.0) for key in ("ada here", "ada there", "adam here")] == [0, 0, 5]
    throttle.forget("adam here")
    assert throttle.wait_s("adam here", 0.0) == 0


def test_its_memory_is_bounded_and_loses_those_who_failed_longest_ago() -> None:
    throttle = Throttle(RULE, max_keys=3)
    guess(throttle, RULE.num_free, 0.0)
    for key in ("b", "c"):
        throttle.failed(key, 0.0)
    throttle.failed("ada", 1.0)
    throttle.failed("d", 1.0)
    assert len(throttle) == 3
    assert throttle.wait_s("ada", 1.0) > 0
    for number in range(3):
        throttle.failed(f"x{number}", 2.0)
    assert throttle.wait_s("ada", 2.0) == 0


@given(st.lists(st.floats(0, 5000), max_size=40), st.floats(-5000, 10_000))
def test_nobody_waits_longer_than_five_minutes_also_if_the_clock_is_set_back(times: list[float], now: float) -> None:
    throttle = Throttle(RULE)
    for at in times:
        throttle.failed("ada", at)
    assert 0 <= throttle.wait_s("ada", now) <= RULE.max_wait_s


@given(st.lists(st.floats(0, 2000), max_size=200))
def test_however_an_attacker_paces_attempts_no_more_fail_than_the_bound(pauses: list[float]) -> None:
    throttle, now, num_failed = Throttle(RULE), 0.0, 0
    for pause in pauses:
        now += pause
        if throttle.wait_s("ada", now) == 0:
            throttle.failed("ada", now)
            num_failed += 1
        assert num_failed <= RULE.num_free + math.log2(RULE.max_wait_s / RULE.first_wait_s) + 2 + now / RULE.forgotten_s


@pytest.mark.parametrize("hours", [1, 24])
def test_who_tries_as_soon_as_they_may_gets_no_further_than_the_bound(hours: int) -> None:
    throttle, now, num_failed = Throttle(RULE), 0.0, 0
    while now < hours * 3600.0:
        now += throttle.wait_s("ada", now)
        throttle.failed("ada", now)
        num_failed += 1
    assert num_failed <= 13 + hours * 12
