"""The combinations of an array: all of them, each once, in the order of nested loops; what is none is said."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.array import MAX_ARRAY_JOBS, arguments_of, combinations, faults_of, variable_of
from pliant.core.errors import InvalidInput

NAMES = st.text(st.sampled_from("abcdef"), min_size=1, max_size=3)


@given(
    st.dictionaries(NAMES, st.lists(st.integers(-5, 5), min_size=1, max_size=5, unique=True), min_size=1, max_size=4)
)
def test_every_combination_is_there_once(array: dict[str, list[int]]) -> None:
    found = combinations(array)

    assert len(found) == math.prod(map(len, array.values()))
    assert len({tuple(values.items()) for values in found}) == len(found)
    assert all(list(values) == list(array) for values in found)
    assert all(values[name] in map(str, array[name]) for values in found for name in array)


def test_the_last_value_changes_fastest() -> None:
    assert combinations({"lr": [0.1, 1e-5], "batch": ["32", 64]}) == (
        {"lr": "0.1", "batch": "32"},
        {"lr": "0.1", "batch": "64"},
        {"lr": "1e-05", "batch": "32"},
        {"lr": "1e-05", "batch": "64"},
    )


def test_a_thousand_jobs_are_taken_and_one_more_is_not() -> None:
    assert len(combinations({"a": range(MAX_ARRAY_JOBS)})) == MAX_ARRAY_JOBS
    with pytest.raises(InvalidInput, match=r"7 × 143 combinations are 1,001 jobs; an array has 1,000 at most"):
        combinations({"a": range(7), "b": range(143)})


@pytest.mark.parametrize(
    ("array", "said"),
    [
        ({"lr": []}, "'lr' has no value"),
        ({"lr": ["1", 1]}, "'lr' has the value '1' twice"),
        ({"lr": [1], "LR": [1]}, "'lr' and 'LR' would have the same variable PLIANT_ARRAY_LR"),
        ({"a-b": [1], "a.b": [1]}, "same variable PLIANT_ARRAY_A_B"),
    ],
)
def test_what_is_wrong_with_the_values_is_said(array: dict[str, list[object]], said: str) -> None:
    assert said in "; ".join(faults_of(array))


def test_a_script_gets_each_value_as_one_argument() -> None:
    assert arguments_of({"lr": "-0.1", "name": "a b"}) == ("--lr=-0.1", "--name=a b")
    assert variable_of("weight-decay") == "PLIANT_ARRAY_WEIGHT_DECAY"
