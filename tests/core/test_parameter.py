"""A template's own parameters: declared once, and given values that fit."""

import math

import pytest

from pliant.core.parameter import Parameter, ParameterKind, Value, fill_in, misfit, problems_of, problems_of_values

WIDTH = Parameter(name="width", kind="int", default=8, minimum=1, maximum=64)
RATE = Parameter(name="rate", kind="float", minimum=0)
KIND = Parameter(name="kind", kind="choice", choices=("a", "b"), default="a")


@pytest.mark.parametrize(
    ("kind", "fits", "wrong"),
    [
        ("int", (0, -5, 10**15), (1.0, True, "1")),
        ("float", (0.5, 3, -1e300), (math.nan, math.inf, True, "x")),
        ("bool", (True, False), (0, "true")),
        ("text", ("", "größe\n#"), (1, "a\0b", "x" * 4001)),
    ],
)
def test_a_value_has_the_kind_that_was_declared(
    kind: ParameterKind, fits: tuple[Value, ...], wrong: tuple[Value, ...]
) -> None:
    parameter = Parameter(name="x", kind=kind)
    assert [misfit(parameter, value) for value in fits] == [""] * len(fits)
    assert all(misfit(parameter, value) for value in wrong)


def test_bounds_and_choices_hold() -> None:
    assert misfit(WIDTH, 0) == "0 is below 1"
    assert misfit(WIDTH, 65) == "65 is above 64"
    assert misfit(KIND, "c") == "'c' is none of a, b"
    assert misfit(KIND, "b") == ""


def test_all_values_are_checked_and_the_missing_ones_named() -> None:
    found = problems_of_values((WIDTH, RATE, KIND), {"width": "wide", "kind": "b", "depth": 3})

    assert {problem.field for problem in found} == {"parameters.width", "parameters.depth", "parameters.rate"}
    assert problems_of_values((WIDTH, RATE, KIND), {"rate": 0}) == ()
    assert fill_in((WIDTH, RATE, KIND), {"rate": 0.5}) == {"width": 8, "rate": 0.5, "kind": "a"}


@pytest.mark.parametrize(
    "wrong",
    [
        Parameter(name="1x", kind="int"),
        Parameter(name="x", kind="text", minimum=1),
        Parameter(name="x", kind="int", minimum=3, maximum=2),
        Parameter(name="x", kind="int", maximum=math.nan),
        Parameter(name="x", kind="choice"),
        Parameter(name="x", kind="int", choices=("a",)),
        Parameter(name="x", kind="int", default=0, minimum=1),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(wrong: Parameter) -> None:
    assert len(problems_of((wrong,))) == 1


def test_a_name_is_declared_once() -> None:
    assert problems_of((WIDTH, RATE, KIND)) == ()
    assert "twice" in problems_of((WIDTH, WIDTH))[0].message
