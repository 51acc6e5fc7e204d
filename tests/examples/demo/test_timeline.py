"""Numbers over time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.demo.timeline import Timeline

CHANGES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 8)), max_size=12).map(sorted)


def made(changes: list[tuple[int, int]]) -> Timeline:
    line = Timeline()
    for at, number in changes:
        line.add(at, number)
    return line


@given(CHANGES, st.integers(0, 50))
def test_a_number_is_what_the_last_change_until_then_made_it(changes: list[tuple[int, int]], at: int) -> None:
    assert made(changes).at(at) == ([0] + [number for when, number in changes if when <= at])[-1]


@given(CHANGES)
def test_the_mean_is_that_of_all_seconds(changes: list[tuple[int, int]]) -> None:
    line = made(changes)

    assert line.mean(0, 50) == pytest.approx(sum(line.at(second) for second in range(50)) / 50)


def test_no_time_has_no_mean() -> None:
    assert made([(0, 3)]).mean(5.0, 5.0) == 0.0
