"""Objectives, constraints and rungs as texts: what is written is read again, and what says none is refused."""

from typing import cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.core.population import Population
from pliant.core.search import Constraint, Direction, Halving, Objective, Reading, Resource
from pliant.core.search_text import (
    read_constraint,
    read_halving,
    read_metric,
    read_objective,
    read_population,
    write_constraint,
    write_halving,
    write_objective,
    write_population,
)

METRICS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1)


@given(METRICS, st.sampled_from(get_args(Direction)), st.sampled_from(get_args(Reading)))
def test_an_objective_is_read_as_it_was_written(metric: str, direction: str, reading: str) -> None:
    objective = Objective(metric=metric, direction=cast(Direction, direction), reading=cast(Reading, reading))

    assert read_objective(write_objective(objective)) == objective


@given(st.sampled_from(get_args(Resource)), st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.integers(0, 100))
def test_rungs_are_read_as_they_were_written(resource: str, first: int, last: int, factor: int) -> None:
    halving = Halving(resource=cast(Resource, resource), min=first, max=last, factor=factor)

    assert read_halving(write_halving(halving)) == halving


BOUNDS = st.floats(allow_nan=False, allow_infinity=False)


@given(METRICS.filter(lambda text: text == text.strip()), st.sampled_from(get_args(Reading)), BOUNDS, st.booleans())
def test_a_constraint_is_read_as_it_was_written(metric: str, reading: str, bound: float, is_upper: bool) -> None:
    side = {"upper" if is_upper else "lower": bound}
    constraint = Constraint(metric=metric, reading=cast(Reading, reading), **side)

    assert read_constraint(write_constraint(constraint)) == constraint


def test_a_constraint_is_short() -> None:
    assert read_constraint(" memory_gb <= 8 ") == Constraint(metric="memory_gb", upper=8.0)
    assert read_constraint("acc:max>=0.9") == Constraint(metric="acc", lower=0.9, reading="max")
    assert write_constraint(Constraint(metric="memory_gb", upper=8.0)) == "memory_gb<=8"


@pytest.mark.parametrize("text", ["memory_gb", "m<8", "m<=", "m<=1e999", "m<=nan", "m<=8GB", "8>=m", ""])
def test_what_says_no_bound_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="says no bound; give it as 'memory_gb<=8' or"):
        read_constraint(text)
    with pytest.raises(InvalidInput, match="'<=8' names no metric"):
        read_constraint("<=8")


def test_a_metric_may_say_which_of_its_values_counts() -> None:
    assert read_metric("val_loss") == ("val_loss", "last")
    assert read_metric("val:loss:min") == ("val:loss", "min")
    assert read_metric("val:loss") == ("val:loss", "last")
    assert read_halving("1 .. 9") == Halving(min=1, max=9, factor=3)


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_a_population_is_read_as_it_was_written(size: int, every: int, last: int) -> None:
    population = Population(size=size, every=every, max=last)

    assert read_population(write_population(population)) == population


@pytest.mark.parametrize("text", ["8", "8:3", "8:3..", "8:3..27:2", "a:3..27", ""])
def test_what_says_no_population_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="says no population; give its members"):
        read_population(text)


@pytest.mark.parametrize("text", ["27", "1..", "1..27:", "epoch:1.5..3", "1..27:3:1", ""])
def test_what_says_no_rungs_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="says no rungs; give the first"):
        read_halving(text)
    with pytest.raises(InvalidInput, match="'hour' is not counted; give epoch or step"):
        read_halving("hour:1..3")


@pytest.mark.parametrize("text", ["val_loss", "val_loss:min", ":minimize", "val_loss:up"])
def test_what_says_no_direction_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="says no direction; give it as val_loss:minimize"):
        read_objective(text)
