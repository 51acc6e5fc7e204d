"""Every value of a space is answered as it is described, and understood as it was meant."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.space import SearchParameter, Value
from pliant.tune.plugins.ibm.parameters import WrongValues, answer_of, described, values_of
from pliant.tune.plugins.ibm.results import ranges_of

STEPS = SearchParameter(kind="float", low=0.1, high=1.0, step=0.1)
LOG = SearchParameter(kind="float", low=1e-5, high=0.3, log=True)


def back(parameter: SearchParameter, value: Value) -> Value:
    """Return a value after a plug-in has answered with it."""
    space = {"x": parameter, "seed": SearchParameter(kind="fixed", value=7)}
    values = values_of(space, answer_of(space, {"x": value, "seed": 7}))
    assert values["seed"] == 7
    return values["x"]


def field(parameter: SearchParameter) -> dict[str, Any]:
    (one,) = described({"x": parameter})
    return one


@given(st.floats(1e-5, 0.3))
def test_orders_of_magnitude_are_exponents(value: float) -> None:
    found = back(LOG, value)

    assert isinstance(found, float)
    assert math.isclose(found, value, rel_tol=1e-12)
    assert 1e-5 <= found <= 0.3


def test_both_ends_of_a_range_of_exponents_are_its_ends() -> None:
    one = field(LOG)

    ends = [values_of({"x": LOG}, {"x": one[end]})["x"] for end in ("minDbVal", "maxDbVal")]
    assert ends == pytest.approx([1e-5, 0.3], rel=1e-12)


@pytest.mark.parametrize("place", range(10))
def test_a_step_is_a_step_though_floats_add_up_otherwise(place: int) -> None:
    assert values_of({"x": STEPS}, {"x": 0.1 + place * 0.1})["x"] == float(f"{0.1 * (place + 1):.1f}")


@pytest.mark.parametrize(
    ("parameter", "answer", "expected"),
    [
        (STEPS, 0.27, 0.3),
        (STEPS, 0.32, 0.3),
        (SearchParameter(kind="int", low=4, high=30, step=4), 25, 24),
        (SearchParameter(kind="int", low=4, high=30, step=4), 30, 28),
        (SearchParameter(kind="int", low=4, high=30, step=4), 4.0, 4),
    ],
)
def test_what_lies_between_two_steps_is_the_nearer_one(
    parameter: SearchParameter, answer: float, expected: float
) -> None:
    value = values_of({"x": parameter}, {"x": answer})["x"]

    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    "choices",
    [(1, 2, 3), (1, 2.5), ("a", "b"), ("1", 1), (True, "true", None), ((64, (32,)), (64,)), (1, True), (0.1, "0.1")],
)
def test_each_choice_comes_back(choices: tuple[Value, ...]) -> None:
    parameter = SearchParameter(kind="choice", choices=choices)

    assert repr(tuple(back(parameter, one) for one in choices)) == repr(choices)


def test_choices_have_ibms_fields_by_what_all_of_them_are() -> None:
    def choice(*choices: Value) -> dict[str, Any]:
        one = field(SearchParameter(kind="choice", choices=choices))
        return {name: value for name, value in one.items() if name not in ("name", "type", "userDefined")}

    assert choice(1, 2) == {"dataType": "INT", "discreteIntVal": [1, 2]}
    assert choice(1, 2.5) == {"dataType": "DOUBLE", "discreteDbVal": [1.0, 2.5]}
    assert choice("a", 2, True) == {"dataType": "STR", "discreateStrVal": ["a", "2", "true"]}
    assert choice("2", 2) == {"dataType": "STR", "discreateStrVal": ['"2"', "2"]}


@pytest.mark.parametrize(
    ("parameter", "answer", "message"),
    [
        (LOG, 0.001, r"0\.001 is not from -5 to -0\.522879; an exponent is due: its power is 10"),
        (STEPS, 1.25, r"1\.25 is not from 0\.1 to 1"),
        (SearchParameter(kind="int", low=4, high=30, step=4), 31, r"31 is not from 4 to 30"),
        (SearchParameter(kind="int", low=1, high=8), 2.5, r"2\.5 is no whole number"),
        (SearchParameter(kind="int", low=1, high=8), 2**70, "a number of 71 bits is too large"),
        (SearchParameter(kind="choice", choices=("a", "b")), "c" * 500, "is none of its choices"),
        (SearchParameter(kind="fixed", value=3), 4, "4 is not its fixed value 3"),
    ],
)
def test_a_value_that_cannot_be_says_why(parameter: SearchParameter, answer: object, message: str) -> None:
    with pytest.raises(WrongValues, match=rf"^'x' cannot be so: .*{message}"):
        values_of({"x": parameter}, {"x": answer})


@given(st.sets(st.integers(0, 60)))
def test_numbers_are_their_ranges(numbers: set[int]) -> None:
    ranges = ranges_of(numbers)

    assert {number for first, last in ranges for number in range(first, last + 1)} == numbers
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(ranges))
