"""What is wrong with a search as a whole: its objectives, its rungs, its limits."""

from dataclasses import replace
from typing import Any

import pytest

from pliant.core.population import Population
from pliant.core.search import Constraint, Halving, Objective, Pruner, Sampler, SearchSettings
from pliant.core.search_rules import problems_of_settings
from pliant.core.space import SearchParameter

LOSS = Objective(metric="loss", direction="minimize")
SIZE = Objective(metric="size", direction="minimize")

BOUND = Constraint(metric="size", upper=8.0)


def settings(**fields: Any) -> SearchSettings:
    parameters = {"lr": SearchParameter(kind="float", low=0, high=1)}
    given: dict[str, Any] = {"parameters": parameters, "objectives": (LOSS,), "max_trials": 20}
    return SearchSettings(**{**given, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"halving": Halving(min=1, max=3)},
        {"halving": Halving(min=2, max=3, brackets=2)},
        {"halving": Halving(min=1, max=27, brackets=4, size=9)},
        {"max_trials": None, "sampler": Sampler(name="grid")},
        {"max_trials": None, "target": 0.1},
        {"max_trials": None, "max_time_s": 60.0},
        {"objectives": (LOSS, SIZE)},
        {"parallel": 500},
        {"constraints": (BOUND, Constraint(metric="size", lower=8.0), Constraint(metric="loss", upper=1.0))},
        {"constraints": (BOUND, Constraint(metric="size", lower=9.0, reading="max"))},
        {"population": Population(size=8, every=3, max=27), "max_trials": None},
        {"population": Population(size=20, every=26, max=27), "parallel": 2},
    ],
)
def test_sound_searches_have_no_problem(fields: dict[str, Any]) -> None:
    assert problems_of_settings(settings(**fields)) == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"objectives": (LOSS, SIZE, LOSS)}, "objectives.2.metric: 'loss' is an objective already; name every"),
        ({"objectives": (LOSS, SIZE), "target": 1.0}, "target: of 2 objectives no trial is simply the best"),
        ({"halving": Halving(min=9, max=3)}, "halving.min: 9 is above max, 3; exchange them"),
        ({"halving": Halving(min=2, max=2)}, "halving.max: 2 is the first rung, too: it prunes nothing; give more"),
        (
            {"halving": Halving(min=1, max=27, brackets=5)},
            "halving.brackets: epochs 1 to 27 by the factor 3 have no room for 5; give 4 or fewer",
        ),
        ({"halving": Halving(max=9, size=2)}, "halving.size: one in 3 goes on, and of 2 none; give 3 or more"),
        ({"halving": Halving(max=9, size=21)}, "halving.size: 21 is above max_trials, 20; lower the one"),
        ({"constraints": (BOUND, replace(BOUND, upper=9.0))}, "constraints.1: 'size' has such a bound already, upper"),
        ({"constraints": (Constraint(metric="size"),)}, "constraints.0: give it upper or lower"),
        ({"constraints": (replace(BOUND, lower=1.0),)}, "constraints.0: it has two bounds; make one of each"),
        (
            {"constraints": (BOUND, Constraint(metric="size", lower=9.0))},
            "constraints.1.lower: no value of size keeps 9 and its upper, 8",
        ),
        (
            {"population": Population(size=8, every=27, max=27)},
            "population.every: the first decision would be at the end, epoch 27: nobody is replaced; give fewer",
        ),
        (
            {"population": Population(size=8, every=1, max=10_000)},
            "population.every: it would be decided 9,999 times, and 1,000 is the most; give 10 or more",
        ),
        (
            {"population": Population(size=21, every=3, max=27)},
            "population.size: 21 is above max_trials, 20; lower the one, or raise the other",
        ),
        (
            {"population": Population(size=8, every=3, max=27), "halving": Halving(max=27)},
            "population: halving ends trials already; leave one of the two out",
        ),
        (
            {"population": Population(size=8, every=3, max=27), "pruner": Pruner(name="median")},
            "population: a pruner ends trials already; leave one of the two out",
        ),
        (
            {"population": Population(size=8, every=3, max=27), "objectives": (LOSS, SIZE)},
            "population: it compares trials by one objective, and there are 2; leave it out, or give one",
        ),
        (
            {"population": Population(size=8, every=3, max=27), "sampler": Sampler(name="grid")},
            "sampler.name: a grid has no members to choose, it takes all; give random",
        ),
        ({"max_trials": None}, "max_trials: nothing ends the search; give max_trials, max_time_s"),
        ({"pass_as": ("config", "config")}, "pass_as.1: 'config' is named twice; name it once"),
        (
            {"parameters": {"lr": SearchParameter(kind="float", low=2, high=1)}},
            "parameters.lr.low: 2 is above high, 1; exchange them",
        ),
    ],
)
def test_what_is_wrong_is_said(fields: dict[str, Any], expected: str) -> None:
    (problem,) = problems_of_settings(settings(**fields))

    assert f"{problem.field}: {problem.message}".startswith(expected)
