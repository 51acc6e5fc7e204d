"""Whoever guesses has to wait, longer and longer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.people.throttle import MAX_WAIT_S, NUM_FREE, WINDOW_S, Throttle, address_key


def guess(throttle: Throttle, times: int, at: float) -> None:
    for _ in range(times):
        throttle.failed(["ada"], at)


def test_five_failures_are_free_then_the_wait_doubles_up_to_five_minutes() -> None:
    throttle, now, waits = Throttle(), 1000.0, []
    guess(throttle, NUM_FREE - 1, now)
    assert throttle.wait_s(["ada"], now) == 0
    for _ in range(9):
        throttle.failed(["ada"], now)
        waits.append(throttle.wait_s(["ada"], now))
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_the_wait_passes_and_failures_are_forgotten_in_time() -> None:
    throttle = Throttle()
    guess(throttle, NUM_FREE, 1000.0)
    assert throttle.wait_s(["ada"], 1002.0) == 3
    assert throttle.wait_s(["ada"], 1005.0) == 0
    throttle.failed(["ada"], 1005.0)
    assert throttle.wait_s(["ada"], 1005.0) == 10
    assert throttle.wait_s(["ada"], 1005.0 + WINDOW_S) == 0
    throttle.failed(["ada"], 1006.0 + WINDOW_S)
    assert throttle.wait_s(["ada"], 1006.0 + WINDOW_S) == 0


def test_failures_further_apart_than_the_window_cost_nothing() -> None:
    throttle = Throttle()
    for number in range(20):
        throttle.failed(["ada"], number * WINDOW_S / (NUM_FREE - 1))
        assert throttle.wait_s(["ada"], number * WINDOW_S / (NUM_FREE - 1)) == 0


def test_each_key_counts_by_itself_and_the_longest_wait_holds() -> None:
    throttle = Throttle()
    guess(throttle, NUM_FREE + 1, 0.0)
    assert throttle.wait_s(["bob"], 0.0) == 0
    assert throttle.wait_s(["bob", "ada"], 0.0) == 10
    throttle.forget("ada")
    throttle.forget("never seen")
    assert throttle.wait_s(["bob", "ada"], 0.0) == 0


def test_its_memory_is_bounded_and_loses_those_who_failed_longest_ago() -> None:
    throttle = Throttle(max_keys=3)
    guess(throttle, NUM_FREE, 0.0)
    for key in ("b", "c"):
        throttle.failed([key], 0.0)
    throttle.failed(["ada", "d"], 1.0)
    assert len(throttle) == 3
    assert throttle.wait_s(["ada"], 1.0) == 10
    for number in range(3):
        throttle.failed([f"x{number}"], 2.0)
    assert throttle.wait_s(["ada"], 2.0) == 0


@given(st.lists(st.floats(0, 5000), max_size=40), st.floats(-5000, 10_000))
def test_nobody_waits_longer_than_five_minutes_also_if_the_clock_is_set_back(times: list[float], now: float) -> None:
    throttle = Throttle()
    for at in times:
        throttle.failed(["ada"], at)
    assert 0 <= throttle.wait_s(["ada"], now) <= MAX_WAIT_S


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:1:2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "somewhere", False),
    ],
)
def test_addresses_that_one_person_can_have_count_as_one(one: str, other: str, same: bool) -> None:
    assert (address_key(one) == address_key(other)) is same
