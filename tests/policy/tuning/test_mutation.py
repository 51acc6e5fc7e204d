"""The values of a child of a population lie in the space, near to its parent's, and are the same every time."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.core.population import Population
from pliant.core.space import SearchParameter, Value, applies
from pliant.core.space_rules import problems_of_space, problems_of_values
from pliant.policy.tuning.mutation import draw, mutate

SPACE: Mapping[str, SearchParameter] = {
    "lr": SearchParameter(kind="float", low=1e-5, high=0.1, log=True),
    "beta": SearchParameter(kind="float", low=-1, high=1),
    "momentum": SearchParameter(kind="float", low=0, high=0.99, step=0.01),
    "heads": SearchParameter(kind="int", low=1, high=9),
    "warmup": SearchParameter(kind="int", low=0, high=160, step=16),
    "width": SearchParameter(kind="int", low=8, high=1024, log=True),
    "opt": SearchParameter(kind="choice", choices=("sgd", "adam")),
    "tag": SearchParameter(kind="fixed", value="x"),
    "decay": SearchParameter(kind="float", low=0.1, high=0.3, step=0.1, when={"opt": ("adam",)}),
    "nesterov": SearchParameter(kind="choice", choices=(True, False), when={"opt": ("sgd",)}),
}
MOVED = Population(size=4, every=1, max=9, resample=0.0)
DRAWN = Population(size=4, every=1, max=9, resample=1.0)
MIXED = Population(size=4, every=1, max=9, resample=0.5, factor=3.0)
PARENT: dict[str, Value] = {
    "lr": 0.01, "beta": 0.5, "momentum": 0.9, "heads": 2, "warmup": 16, "width": 64, "opt": "sgd", "tag": "x",
    "nesterov": True,
}  # fmt: skip


def test_the_space_of_these_tests_is_sound() -> None:
    assert problems_of_space(SPACE) == ()
    assert problems_of_values(SPACE, PARENT) == ()


@given(st.integers(0, 2**32 - 1), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_children_of_children_stay_in_the_space(seed: int, first: int) -> None:
    values: Mapping[str, Value] = PARENT
    for number in range(first, first + 12):
        values = mutate(SPACE, values, MIXED, seed=seed, number=number)
        assert problems_of_values(SPACE, values) == ()
        assert [*values] == [name for name, one in SPACE.items() if applies(one, values)]
        assert all(isinstance(values[name], float) for name in ("lr", "beta", "momentum"))


@pytest.mark.parametrize("number", range(8))
def test_numbers_move_by_the_factor_and_by_a_step_at_least_and_choices_stay(number: int) -> None:
    child = mutate(SPACE, PARENT, MOVED, seed=1, number=number)

    assert child["lr"] in (pytest.approx(0.012), pytest.approx(0.01 / 1.2))
    assert child["beta"] in (pytest.approx(0.6), pytest.approx(0.5 / 1.2))
    assert child["momentum"] in (0.99, 0.75)
    assert child["heads"] in (1, 3)
    assert child["warmup"] in (0, 32)
    assert child["width"] in (77, 53)
    assert (child["opt"], child["tag"], child["nesterov"]) == ("sgd", "x", True)


def test_who_is_at_an_end_stays_there_or_comes_back() -> None:
    top = {**PARENT, "lr": 0.1, "heads": 9}
    children = [mutate(SPACE, top, MOVED, seed=1, number=number) for number in range(20)]

    assert {child["heads"] for child in children} == {9, 8}
    assert {child["lr"] for child in children} == {0.1, 0.1 * (1 / 1.2)}


def test_drawn_values_reach_every_choice_and_every_condition() -> None:
    children = [mutate(SPACE, PARENT, DRAWN, seed=3, number=number) for number in range(60)]

    assert {child["opt"] for child in children} == {"sgd", "adam"}
    assert {child.get("decay") for child in children} == {None, 0.1, 0.2, 0.3}
    assert {child.get("nesterov") for child in children} == {None, True, False}
    assert {child["heads"] for child in children} == set(range(1, 10))


def test_draws_are_a_function_of_what_they_are_for() -> None:
    assert draw(1, 2, "way", "lr") == draw(1, 2, "way", "lr") == 0.8753299245880708
    draws = {draw(seed, n, what, name) for seed in (0, 1) for n in (0, 1) for what in "ab" for name in "xy"}
    assert len(draws) == 16
    assert all(0 <= one < 1 for one in draws)
