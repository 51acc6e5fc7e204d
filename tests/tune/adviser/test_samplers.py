"""What Pliant knows of Optuna's insides still holds: another version of Optuna fails here first."""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from tests.tune.adviser.played import CONDITIONAL, KINDS, NUMBERS, Kind, Played

from pliant.core.search import Pruner, Sampler, SearchSettings
from pliant.tune.adviser import pruners
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.adviser.samplers import MAKERS, arguments_of, make_sampler
from pliant.tune.adviser.state import generators_of
from pliant.tune.sampler_options import PRUNER_OPTIONS, SAMPLER_OPTIONS

GENERATORS = {
    "tpe": {"_rng", "_random_sampler._rng"},
    "random": {"_rng"},
    "grid": {"_rng"},
    "gp": {"_rng", "_independent_sampler._rng"},
    "cmaes": {"_cma_rng", "_independent_sampler._rng"},
    "nsga2": {"_rng", "_random_sampler._rng"},
    "qmc": {"_independent_sampler._rng"},
}
LEFT_OUT = {
    "tpe": {
        *("consider_prior", "prior_weight", "consider_magic_clip", "consider_endpoints"),  # Optuna is giving them up
        *("gamma", "weights", "constraints_func", "warn_independent_sampling"),
    },
    "random": set(),
    "grid": {"search_space"},
    "gp": {"independent_sampler", "constraints_func", "warn_independent_sampling"},
    "cmaes": {
        *("x0", "sigma0", "restart_strategy", "inc_popsize", "source_trials"),
        *("independent_sampler", "warn_independent_sampling"),
    },
    "nsga2": {
        *("mutation", "crossover", "constraints_func", "elite_population_selection_strategy"),
        *("child_generation_strategy", "after_trial_strategy"),
    },
    "qmc": {"independent_sampler", "warn_asynchronous_seeding", "warn_independent_sampling"},
    "median": set(),
    "percentile": set(),
    "wilcoxon": set(),
    "patient": {"wrapped_pruner"},
    "threshold": set(),
}
"""Arguments that take objects or functions, or only say what is warned of, or that Optuna is giving up."""
ATTRIBUTES = {
    "tpe": {
        *("_parzen_estimator_parameters", "_n_startup_trials", "_n_ei_candidates", "_gamma", "_rng", "_random_sampler"),
        *("_warn_independent_sampling", "_multivariate", "_group", "_group_decomposed_search_space"),
        *("_search_space_group", "_search_space", "_constant_liar", "_constraints_func", "_parzen_estimator_cls"),
    },
    "random": {"_rng"},
    "grid": {"_search_space", "_all_grids", "_param_names", "_n_min_trials", "_rng"},
    "gp": {
        *("_rng", "_independent_sampler", "_intersection_search_space", "_n_startup_trials", "_log_prior"),
        *("_minimum_noise", "_gprs_cache_list", "_constraints_gprs_cache_list", "_deterministic", "_constraints_func"),
        *("_warn_independent_sampling", "_n_preliminary_samples", "_n_local_search", "_tol", "_n_qmc_samples_qei"),
        "_n_qmc_samples_ehvi",
    },
    "cmaes": {
        *("_x0", "_sigma0", "_independent_sampler", "_n_startup_trials", "_warn_independent_sampling", "_cma_rng"),
        *("_search_space", "_consider_pruned_trials", "_popsize", "_use_separable_cma", "_with_margin", "_lr_adapt"),
        *("_source_trials", "_attr_prefix"),
    },
    "nsga2": {
        *("_population_size", "_random_sampler", "_rng", "_constraints_func", "_search_space"),
        *("_elite_population_selection_strategy", "_child_generation_strategy", "_after_trial_strategy"),
    },
    "qmc": {"_scramble", "_seed", "_independent_sampler", "_warn_independent_sampling", "_qmc_type"},
}
"""Where a sampler could keep something that an adviser has to restore."""


def made(name: str) -> optuna.samplers.BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_sampler(KINDS[name].settings)


def constructor_defaults(maker: Callable[..., Any]) -> dict[str, object]:
    parameters = inspect.signature(maker).parameters.values()
    return {one.name: None if one.default is one.empty else one.default for one in parameters}


@pytest.mark.parametrize("name", GENERATORS)
def test_the_generators_of_a_sampler_are_those_that_are_known(name: str) -> None:
    assert generators_of(made(name)).keys() == GENERATORS[name]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_sampler_keeps_nothing_that_is_not_known(name: str) -> None:
    assert vars(made(name)).keys() == ATTRIBUTES[name]


@pytest.mark.parametrize("name", SAMPLER_OPTIONS)
def test_the_defaults_of_samplers_are_those_of_optuna_and_no_argument_is_overlooked(name: str) -> None:
    table = SAMPLER_OPTIONS[name]  # type: ignore[index]
    theirs = constructor_defaults(MAKERS[name])  # type: ignore[index]

    ours = {option: one.default for option, one in table.items()}
    if name == "tpe":
        assert ours.pop("group") is None  # it follows from conditions; Optuna's is False
        assert theirs.pop("group") is False
    assert {**ours, "seed": None} == {key: value for key, value in theirs.items() if key not in LEFT_OUT[name]}


@pytest.mark.parametrize("name", PRUNER_OPTIONS)
def test_the_defaults_of_pruners_are_those_of_optuna_and_no_argument_is_overlooked(name: str) -> None:
    table = PRUNER_OPTIONS[name]  # type: ignore[index]
    theirs = constructor_defaults(pruners.MAKERS[name])  # type: ignore[index]

    ours = {option: one.default for option, one in table.items()}
    assert ours == {key: value for key, value in theirs.items() if key not in LEFT_OUT[name]}


@pytest.mark.parametrize(
    ("kind", "multivariate", "group"),
    [
        (Kind(name="tpe", space=NUMBERS), True, False),
        (Kind(name="tpe", space=CONDITIONAL), True, True),
        (Kind(name="tpe", space=CONDITIONAL, options={"multivariate": False}), False, False),
        (Kind(name="tpe", space=CONDITIONAL, options={"group": False}), True, False),
        (Kind(name="tpe", space=NUMBERS, num_objectives=2), False, False),
        (Kind(name="tpe", space=CONDITIONAL, num_objectives=2), False, False),
        (Kind(name="tpe", space=CONDITIONAL, num_objectives=2, options={"group": True}), True, True),
    ],
)
def test_tpe_models_one_objective_jointly_and_with_conditions_in_groups(
    kind: Kind, multivariate: bool, group: bool
) -> None:
    arguments = arguments_of(kind.settings)

    assert (arguments["multivariate"], arguments["group"]) == (multivariate, group)


def test_a_pruner_is_made_with_all_that_it_is_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pruner = pruners.make_pruner(Pruner(name="patient", options={"patience": 3, "min_delta": 0.5}))

    assert vars(pruner) == {"_wrapped_pruner": None, "_patience": 3, "_min_delta": 0.5}


def test_the_parents_of_old_generations_are_not_kept() -> None:
    kind = Kind(name="nsga2", space=NUMBERS, options={"population_size": 2}, num_trials=30)
    played = Played(settings=kind.settings)
    adviser = OptunaAdviser(played.opening)
    for number in range(30):
        changed = [played.end(number - 1)] if number else []
        played.ask(adviser, changed)

    assert 1 <= played.state.count("NSGAIISampler:parent:") <= 3
    assert played.trials[29].attributes["NSGAIISampler:generation"] > 5


def test_a_seed_is_given_to_every_sampler() -> None:
    for kind in KINDS.values():
        settings = SearchSettings(
            parameters=kind.space, objectives=kind.settings.objectives, sampler=Sampler(name=kind.name, seed=2**32 - 1)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make_sampler(settings)
