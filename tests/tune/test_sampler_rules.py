"""What a sampler or a pruner cannot do is said before a search begins, with the field and what to do."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.tune.adviser.played import CONDITIONAL, FINITE, KINDS, MIXED, NUMBERS

from pliant.core.search import Halving, Objective, Pruner, PrunerName, Sampler, SamplerName, SearchSettings
from pliant.core.space import Scalar, SearchParameter, Space
from pliant.tune.sampler_options import PRUNER_OPTIONS, SAMPLER_OPTIONS
from pliant.tune.sampler_rules import grid_values, num_grid_values, problems_of_sampler

LOSS = Objective(metric="loss", direction="minimize")
SIZE = Objective(metric="size", direction="maximize")


def search(
    name: SamplerName = "tpe", space: Space = NUMBERS, options: Mapping[str, Scalar] | None = None
) -> SearchSettings:
    return SearchSettings(parameters=space, objectives=(LOSS,), sampler=Sampler(name=name, options=options or {}))


def found(settings: SearchSettings) -> dict[str, str]:
    return {problem.field: problem.message for problem in problems_of_sampler(settings)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_what_the_other_tests_play_is_right(kind: object) -> None:
    assert problems_of_sampler(kind.settings) == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "options", "field", "message"),
    [
        (
            "tpe",
            {"gamma": 3},
            "gamma",
            "the sampler tpe has no option 'gamma'; there is n_startup_trials, n_ei_candidates, multivariate, group, "
            "constant_liar",
        ),
        (
            "random",
            {"n_startup_trials": 3},
            "n_startup_trials",
            "the sampler random has no option 'n_startup_trials'; it has none",
        ),
        ("tpe", {"n_startup_trials": 2.5}, "n_startup_trials", "2.5 is not possible; give a whole number from 0"),
        ("tpe", {"n_ei_candidates": True}, "n_ei_candidates", "True is not possible; give a whole number from 1"),
        ("tpe", {"constant_liar": "no"}, "constant_liar", "'no' is not possible; give true or false"),
        ("tpe", {"constant_liar": None}, "constant_liar", "None is not possible; give true or false"),
        ("nsga2", {"crossover_prob": 1.5}, "crossover_prob", "1.5 is not possible; give a number from 0 to 1"),
        ("qmc", {"qmc_type": "rain"}, "qmc_type", "'rain' is not possible; give sobol or halton"),
        ("cmaes", {"popsize": 1}, "popsize", "1 is not possible; give a whole number from 2"),
        (
            "cmaes",
            {"with_margin": True, "lr_adapt": True},
            "lr_adapt",
            "it cannot be with with_margin; leave one of the two out",
        ),
        (
            "tpe",
            {"group": True, "multivariate": False},
            "group",
            "it cannot be without multivariate; leave one of the two out",
        ),
    ],
)
def test_a_wrong_option_of_a_sampler_is_named(
    name: SamplerName, options: Mapping[str, Scalar], field: str, message: str
) -> None:
    assert found(search(name, options=options)) == {f"sampler.options.{field}": message}


def test_an_option_that_optuna_decides_by_the_search_may_be_none() -> None:
    assert found(search("tpe", options={"multivariate": None, "group": None})) == {}
    assert found(search("cmaes", options={"popsize": None})) == {}


@pytest.mark.parametrize(
    ("name", "options", "field", "message"),
    [
        ("percentile", {}, ".percentile", "the pruner percentile needs it; give a number from 0 to 100"),
        ("patient", {}, ".patience", "the pruner patient needs it; give a whole number from 0"),
        ("threshold", {}, "", "threshold needs one; give lower, upper or both"),
        ("threshold", {"lower": 2, "upper": 1}, ".lower", "2 is more than upper, 1; give a lower that is not above it"),
        ("median", {"interval_steps": 0}, ".interval_steps", "0 is not possible; give a whole number from 1"),
        (
            "wilcoxon",
            {"wrapped": 1},
            ".wrapped",
            "the pruner wilcoxon has no option 'wrapped'; there is p_threshold, n_startup_steps",
        ),
    ],
)
def test_a_wrong_option_of_a_pruner_is_named(
    name: PrunerName, options: Mapping[str, Scalar], field: str, message: str
) -> None:
    settings = replace(search(), pruner=Pruner(name=name, options=options))

    assert found(settings) == {f"pruner.options{field}": message}


@pytest.mark.parametrize("name", ["grid", "gp", "cmaes", "qmc"])
def test_conditions_need_a_sampler_that_can_do_with_them(name: SamplerName) -> None:
    space: Space = {
        "depth": SearchParameter(kind="int", low=1, high=3),
        "width": SearchParameter(kind="int", low=1, high=3, when={"depth": (1,)}),
    }

    message = f"the sampler {name} cannot do with conditions; leave `when` out, or take tpe, random or nsga2"
    assert found(search(name, space)) == {"parameters.width.when": message}
    assert not any(found(search(other, CONDITIONAL)) for other in ("tpe", "random", "nsga2"))


def test_several_objectives_are_not_for_cmaes_nor_for_what_ends_trials() -> None:
    settings = replace(search("cmaes"), objectives=(LOSS, SIZE), halving=Halving(max=9), pruner=Pruner(name="median"))
    compared = "it compares trials by one objective, and there are 2; leave it out, or give one objective"

    assert found(replace(settings, pruner=None)) == {
        "sampler.name": "cmaes takes one objective, and there are 2; give one, or take tpe or nsga2",
        "halving": compared,
    }
    assert found(replace(settings, halving=None))["pruner"] == compared


def test_halving_and_a_pruner_do_not_go_together() -> None:
    settings = replace(search(), halving=Halving(max=9), pruner=Pruner(name="median"))

    assert found(settings) == {"pruner": "halving ends trials already; leave one of the two out"}


def test_a_grid_needs_values_that_can_be_counted() -> None:
    space: Space = {
        **FINITE,
        "a": SearchParameter(kind="float", low=0, high=1),
        "b": SearchParameter(kind="int", low=1, high=9, log=True),
    }

    assert found(search("grid", space)) == {
        "parameters.a": "a grid needs to know which values there are; give a `step`, or `choices`",
        "parameters.b": "a grid has no values by orders of magnitude; give `choices`, or leave `log` out",
    }


@pytest.mark.parametrize(
    ("num", "parameter", "written"),
    [
        (2, SearchParameter(kind="int", low=1, high=10**6), "1000000000000"),
        (4, SearchParameter(kind="int", low=1, high=10**6), "about 10^24"),
        (100, SearchParameter(kind="float", low=0, high=1e300, step=1e-300), "about 10^60000"),
    ],
)
def test_a_grid_is_no_larger_than_a_search(num: int, parameter: SearchParameter, written: str) -> None:
    """Python writes no number of 5,000 digits, and nobody reads one of 30."""
    space: Space = {f"p{number}": parameter for number in range(num)}

    message = f"the grid has {written} points, more than the 100000 trials of a search; take longer steps or random"
    assert found(search("grid", space)) == {"sampler.name": message}


def test_choices_are_not_for_cmaes() -> None:
    message = "cmaes takes numbers only, and choices have no order; make it float, int or fixed, or take tpe"

    assert found(search("cmaes", MIXED)) == {"parameters.act.kind": message}


def test_what_needs_scipy_says_how_to_install_it() -> None:
    message = "it needs SciPy, which is not installed here; install it with: pip install 'pliant[gp]'"

    for name in SAMPLER_OPTIONS:
        there = problems_of_sampler(search(name, FINITE), has_scipy=False)
        assert [problem.message for problem in there if problem.field == "sampler.name"] == (
            [message] if name in ("gp", "qmc") else []
        )
    for pruner in PRUNER_OPTIONS:
        there = problems_of_sampler(replace(search(), pruner=Pruner(name=pruner)), has_scipy=False)
        assert [problem.message for problem in there if problem.field == "pruner.name"] == (
            [message] if pruner == "wilcoxon" else []
        )


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (SearchParameter(kind="float", low=0.1, high=0.3, step=0.1), (0.1, 0.2, 0.3)),
        (SearchParameter(kind="float", low=-1.0, high=1.0, step=1.0), (-1.0, 0.0, 1.0)),
        (SearchParameter(kind="float", low=1e-5, high=3e-5, step=1e-5), (1e-5, 2e-5, 3e-5)),
        (SearchParameter(kind="int", low=16, high=32, step=8), (16, 24, 32)),
        (SearchParameter(kind="int", low=2, high=4), (2, 3, 4)),
        (SearchParameter(kind="choice", choices=("a", (1, 2))), ("a", (1, 2))),
        (SearchParameter(kind="fixed", value=None), (None,)),
    ],
)
def test_the_values_of_a_grid_are_those_that_people_would_write(
    parameter: SearchParameter, values: tuple[object, ...]
) -> None:
    assert grid_values(parameter) == values
    assert num_grid_values(parameter) == len(values)
