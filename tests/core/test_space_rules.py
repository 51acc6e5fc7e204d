"""What is wrong with a space, and with values for it: each fault at its field, with what to do."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.space import (
    SearchParameter,
    applies,
    arguments_of,
    same_as,
    text_of_value,
    variable_of,
)
from pliant.core.space_rules import misfit, problems_of_space, problems_of_values

LR = SearchParameter(kind="float", low=1e-5, high=0.1, log=True)
OPT = SearchParameter(kind="choice", choices=("sgd", "adam"))
MOMENTUM = SearchParameter(kind="float", low=0, high=0.99, step=0.01, when={"opt": ("sgd",)})
LAYERS = SearchParameter(kind="int", low=1, high=9, step=2)
SPACE: Mapping[str, SearchParameter] = {
    "lr": LR,
    "opt": OPT,
    "momentum": MOMENTUM,
    "layers": LAYERS,
    "seed": SearchParameter(kind="fixed", value=7),
    "shape": SearchParameter(kind="choice", choices=((64,), (64, 64), None, True, 1)),
}


def number(kind: Any = "float", **fields: Any) -> SearchParameter:
    given: dict[str, Any] = {"low": 0, "high": 1}
    return SearchParameter(kind=kind, **{**given, **fields})


def choice(*choices: Any) -> SearchParameter:
    return SearchParameter(kind="choice", choices=choices)


def said(space: Mapping[str, SearchParameter]) -> list[str]:
    return [f"{one.field}: {one.message}" for one in problems_of_space(space)]


def test_a_sound_space_has_no_problem() -> None:
    assert problems_of_space(SPACE) == ()


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (number(low=None), "x.low: it is missing; give the lowest value"),
        (number(high=None), "x.high: it is missing; give the highest value"),
        (number(low=2), "x.low: 2 is above high, 1; exchange them"),
        (number(low=1), "x.high: low and high are both 1; a parameter of one value is of the kind fixed"),
        (number(high=math.inf), "x.high: inf is not finite; give a number"),
        (number(low=-math.inf), "x.low: -inf is not finite; give a number"),
        (number(step=math.nan), "x.step: nan is not finite; give a number"),
        (number(log=True), "x.low: 0 has no order of magnitude; give more than 0, or leave log out"),
        (number(low=0.1, log=True, step=0.1), "x.step: log and step exclude each other; leave one of them out"),
        (number(step=0), "x.step: 0 leads nowhere; give more than 0, or leave it out"),
        (
            number(step=0.3),
            "x.high: 1 is no whole number of steps of 0.3 above 0; the nearest high that fits is 0.9",
        ),
        (number(step=5), "x.high: 1 is no whole number of steps of 5 above 0; the nearest high that fits is 5"),
        (number("int", low=0.5), "x.low: 0.5 is not whole; give a whole number, or the kind float"),
        (number("int", high=8, step=1.5), "x.step: 1.5 is not whole; give a whole number, or the kind float"),
        (number("int", high=1e300), "x.high: 1e+300 is too large for a whole number; give 9007199254740992 at most"),
        (number(choices=(1,)), "x.choices: a parameter of the kind float has no choices; leave it out"),
        (number(value=1), "x.value: a parameter of the kind float has no value; leave it out"),
        (SearchParameter(kind="choice", choices=(1,), low=0), "x.low: a parameter of the kind choice has no low"),
        (SearchParameter(kind="fixed", value=1, log=True), "x.log: a parameter of the kind fixed has no log"),
        (choice(), "x.choices: there are none; give at least one value"),
        (choice("a", "b", "a"), 'x.choices: "a" is given twice; give every value once'),
        (choice(1, True, 1.0), "x.choices: 1.0 is given as 1 and as 1.0; give every value once"),
        (choice((1, 2), (1.0, 2)), "x.choices: [1.0, 2] is given as [1, 2] and as [1.0, 2]; give every value once"),
        (choice(1, math.nan), 'x.choices: NaN is not finite; give a number, or the text "nan"'),
        (choice((1, (math.inf,))), "x.choices: [1, [Infinity]] is not finite"),
        (SearchParameter(kind="fixed"), "x.value: it is missing; give the value that all trials get"),
        (SearchParameter(kind="fixed", value=math.inf), "x.value: Infinity is not finite; give a number"),
    ],
)
def test_what_is_wrong_with_a_parameter_is_said(parameter: SearchParameter, expected: str) -> None:
    (problem,) = said({"x": parameter})

    assert problem.startswith(f"parameters.{expected}")


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({"x": (1,)}, "x.when.x: a parameter cannot depend on itself"),
        ({"later": ("a",)}, "x.when.later: 'later' stands after 'x', and is chosen later; let it stand before"),
        ({"op": ("sgd",)}, "x.when.op: there is no parameter 'op'; is 'opt' meant?"),
        ({"zzz": ("sgd",)}, "x.when.zzz: there is no parameter 'zzz'; there are: lr, opt, momentum, layers, seed"),
        ({"opt": ("rms",)}, 'x.when.opt: "rms" is none of its choices: "sgd", "adam"; \'opt\' never has it'),
        ({"opt": ()}, "x.when.opt: there is no value; give one or more that 'opt' can have"),
        ({"layers": (2,)}, "x.when.layers: 2 is no whole number of steps of 2 above 1; 'layers' never has it"),
        ({"layers": (11,)}, "x.when.layers: 11 is not from 1 to 9; 'layers' never has it"),
        ({"momentum": (0.3, 0.305)}, "x.when.momentum: 0.305 is no whole number of steps of 0.01 above 0"),
        ({"seed": (8,)}, "x.when.seed: 8 is not its fixed value 7; 'seed' never has it"),
        ({"shape": (1.5,)}, "x.when.shape: 1.5 is none of its choices: [64], [64, 64], null, true, 1; 'shape' never"),
        ({"lr": (0.1,)}, "x.when.lr: 'lr' can be any number between its ends; name a choice, an int"),
    ],
)
def test_what_is_wrong_with_a_condition_is_said(when: dict[str, Any], expected: str) -> None:
    (problem,) = said({**SPACE, "x": number(when=when), "later": choice("a")})

    assert problem.startswith(f"parameters.{expected}")


def test_a_condition_on_something_wrong_says_only_what_is_wrong_there() -> None:
    assert [one.partition(":")[0] for one in said({"a": choice(1, 1), "b": number(when={"a": (2,)})})] == [
        "parameters.a.choices"
    ]


@pytest.mark.parametrize(("one", "other"), [("lr", "LR"), ("a-b", "a.b"), ("a_b", "A-B")])
def test_names_that_make_the_same_variable_are_refused(one: str, other: str) -> None:
    (problem,) = said({one: LR, other: LR})

    assert f"{one!r} and {other!r} would have the same variable {variable_of(one)}" in problem


@given(st.integers(-1000, 1000), st.integers(1, 50), st.integers(1, 200), st.integers(0, 4))
def test_steps_divide_as_they_are_written(low: int, step: int, num: int, digits: int) -> None:
    first, each, last = (float(f"{value}e-{digits}") for value in (low, step, low + num * step))
    parameter = number(low=first, high=last, step=each)

    assert problems_of_space({"x": parameter}) == ()
    assert misfit(parameter, float(f"{low + (num // 2) * step}e-{digits}")) == ""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"lr": 0.01, "opt": "sgd", "momentum": 0.07, "layers": 3, "shape": (64, 64)}, []),
        ({"momentum": 0.5}, []),
        ({"layer": 1}, ["layer: there is no parameter 'layer'; is 'layers' meant?"]),
        ({"lr": 1, "layers": 2.0}, ["lr: 1 is not from 1e-05 to 0.1", "layers: 2.0 is no whole number"]),
        ({"lr": True, "opt": None}, ["lr: true is no number", 'opt: null is none of its choices: "sgd", "adam"']),
        ({"lr": math.nan}, ["lr: NaN is not from 1e-05 to 0.1"]),
        (
            {"opt": "adam", "momentum": 0.5},
            ['momentum: it is there only if \'opt\' is "sgd", and that is "adam"; leave it out'],
        ),
    ],
)
def test_values_that_somebody_wants_to_be_tried_have_to_fit(values: dict[str, Any], expected: list[str]) -> None:
    assert [f"{one.field}: {one.message}" for one in problems_of_values(SPACE, values)] == expected


def test_a_parameter_is_there_if_all_its_conditions_hold() -> None:
    parameter = number(when={"opt": ("sgd", "adam"), "layers": (1,)})

    assert applies(parameter, {"opt": "adam", "layers": 1.0})
    assert not applies(parameter, {"opt": "adam", "layers": True})
    assert not applies(parameter, {"opt": "adam"})
    assert applies(LR, {})


def test_values_become_arguments() -> None:
    values: dict[str, Any] = {"lr": 1e-05, "n": 8, "act": "re lu", "on": True, "off": None, "layers": (64, (8, "a"))}

    assert arguments_of(values) == (
        "--lr=1e-05",
        "--n=8",
        "--act=re lu",
        "--on=true",
        "--off=null",
        '--layers=[64,[8,"a"]]',
    )
    assert variable_of("weight-decay.x") == "PLIANT_PARAM_WEIGHT_DECAY_X"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_for_its_script(value: float) -> None:
    assert float(text_of_value(value)) == value


def test_values_are_the_same_as_json_sees_them() -> None:
    values: list[Any] = [1, True, "1", None, 1.5, (1,), ("boolean", 1), ()]

    assert len({same_as(value) for value in values}) == len(values)
    assert same_as((1, (2,))) == same_as((1.0, (2.0,)))
