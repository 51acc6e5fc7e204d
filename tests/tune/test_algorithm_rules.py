"""Which algorithm is meant, and what an algorithm of somebody's own can do."""

import pytest

from pliant.core.algorithm import AlgorithmCode
from pliant.core.search import Halving, Objective, Pruner, Sampler, SearchSettings
from pliant.core.search_rules import problems_of_settings
from pliant.core.space import SearchParameter, Values
from pliant.tune.algorithm_rules import problem_of_name, problems_of_algorithm, problems_of_given
from pliant.tune.sampler_rules import problems_of_sampler

IBM = AlgorithmCode(owner="anna", kind="ibm", checksum="0" * 64)
OPTUNA = AlgorithmCode(owner="anna", kind="optuna", checksum="0" * 64)
SPACE = {
    "opt": SearchParameter(kind="choice", choices=("sgd", "adam")),
    "momentum": SearchParameter(kind="float", low=0.0, high=0.9, when={"opt": ("sgd",)}),
    "layers": SearchParameter(kind="fixed", value=3),
}
OBJECTIVES = (Objective(metric="loss", direction="minimize"), Objective(metric="time", direction="minimize"))


def settings(**changes: object) -> SearchSettings:
    given: dict[str, object] = {
        "parameters": SPACE,
        "objectives": OBJECTIVES[:1],
        "sampler": Sampler(name="mine", options={"any": True, "thing": "x"}),
    }
    return SearchSettings(**(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("tpee", "is 'tpe' meant?"),
        ("TPE", "is 'tpe' meant?"),
        ("my-serch", "is 'my-search' meant?"),
        ("zzz", "give tpe, random, grid, gp, cmaes, nsga2, qmc, or an algorithm that you may use"),
    ],
)
def test_an_unknown_name_is_told_which_one_may_be_meant(name: str, advice: str) -> None:
    problem = problem_of_name(name, ["my-search"])

    assert (problem.field, problem.message) == (
        "sampler.name",
        f"there is no sampler or algorithm {name!r}; {advice}",
    )


def test_an_algorithm_of_ibms_form_does_no_conditions_several_objectives_or_pruners_all_said_at_once() -> None:
    asked = settings(objectives=OBJECTIVES, pruner=Pruner(name="median"))

    assert [problem.field for problem in problems_of_algorithm(asked, IBM)] == [
        "parameters.momentum.when",
        "sampler.name",
        "pruner",
    ]
    assert list(problems_of_algorithm(asked, OPTUNA)) == []
    plain = {"lr": SearchParameter(kind="float", low=0.0, high=1.0)}
    assert list(problems_of_algorithm(settings(parameters=plain, halving=Halving(max=9)), IBM)) == []


def test_rules_of_samplers_that_are_built_in_are_none_of_an_algorithms() -> None:
    assert problems_of_sampler(settings()) == ()
    assert problems_of_settings(settings()) == ()  # it may end by itself
    (problem,) = problems_of_settings(settings(sampler=Sampler(name="tpe")))
    assert problem.field == "max_trials"


def test_trials_for_an_algorithm_of_ibms_form_are_given_whole() -> None:
    trials: list[Values] = [{"opt": "sgd"}, {"opt": "sgd", "momentum": 0.5}]

    (problem,) = problems_of_given(settings(), IBM, trials)
    message = "an algorithm of IBM's form chooses all values or none; give momentum as well"
    assert (problem.field, problem.message) == ("trials.0", message)
    assert list(problems_of_given(settings(), OPTUNA, trials)) == []
