"""Requests are due when the rate says so, whatever became of those before and however late anybody looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.serve_demo.arrivals import Arrivals, Slope


def test_a_slope_goes_straight_from_one_rate_to_another_and_stays() -> None:
    slope = Slope(from_rate=2.0, to_rate=10.0, began_at=100.0, within_s=4.0)

    assert [slope.at(now) for now in (99.0, 100.0, 102.0, 104.0, 200.0)] == [2.0, 2.0, 6.0, 10.0, 10.0]


def test_a_turn_begins_at_the_present_rate() -> None:
    slope = Slope(from_rate=0.0, to_rate=10.0, began_at=0.0, within_s=10.0).turn(0.0, within_s=2.0, now=5.0)

    assert [slope.at(now) for now in (5.0, 6.0, 7.0)] == [5.0, 2.5, 0.0]


def test_a_turn_at_once_is_a_step_also_before_it_began() -> None:
    slope = Slope(from_rate=0.0, to_rate=0.0, began_at=0.0, within_s=0.0).turn(3.0, within_s=0.0, now=5.0)

    assert [slope.at(now) for now in (4.9, 5.0, 6.0)] == [0.0, 3.0, 3.0]


def test_as_many_are_due_as_the_rate_adds_up_to() -> None:
    arrivals = Arrivals(seed=1, now=0.0)
    arrivals.turn(200.0, within_s=0.0, now=0.0)

    due = arrivals.until(50.0)

    assert len(due) == pytest.approx(10_000, rel=0.05)
    assert due == sorted(due)


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=20))
def test_who_looks_late_or_often_finds_the_same_instants(looks: list[float]) -> None:
    once, often = Arrivals(seed=7, now=0.0), Arrivals(seed=7, now=0.0)
    for arrivals in (once, often):
        arrivals.turn(50.0, within_s=2.0, now=0.0)

    found = [at for now in sorted(looks) for at in often.until(now)]

    assert found == once.until(max(looks))


def test_nothing_is_due_at_rate_zero() -> None:
    arrivals = Arrivals(seed=1, now=0.0)

    assert arrivals.until(100.0) == []
