"""An adviser over Optuna goes on exactly after it is made anew, and chooses what plain Optuna does."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tune.adviser.played import (
    CONDITIONAL,
    FINITE,
    KINDS,
    MIXED,
    NUMBERS,
    Kind,
    Played,
    ended,
    play,
    score,
    violations_of,
)

from pliant.core.search import SearchSettings, Trial, TrialState
from pliant.core.search_text import write_constraint
from pliant.core.space import SearchParameter, Space, Value, Values
from pliant.tune.advice import AdviserFailure, Asked, Exhausted
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.adviser.samplers import make_sampler
from pliant.tune.adviser.state import dump_state, load_state

ANY_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@ANY_KIND
def test_an_adviser_that_is_made_anew_before_every_trial_chooses_what_one_that_lives_does(kind: Kind) -> None:
    lives = play(kind, OptunaAdviser)

    assert play(kind, OptunaAdviser, renewed=lambda _number: True) == lives


@ANY_KIND
def test_without_others_in_flight_it_chooses_what_plain_optuna_does(kind: Kind) -> None:
    kind = replace(kind, num_trials=min(kind.num_trials, 30))

    assert play(kind, OptunaAdviser, in_flight=1) == plain(kind)


@pytest.mark.parametrize("name", ["tpe", "nsga2"])
def test_constraints_make_a_difference_to_those_that_learn_from_them(name: str) -> None:
    kind = KINDS[f"{name}-constraints"]
    results = [all(one <= 0 for one in violations_of(values, kind.constraints)) for values in play(kind, OptunaAdviser)]

    assert set(results) == {True, False}
    assert play(kind, OptunaAdviser) != play(replace(kind, constraints=()), OptunaAdviser)


@pytest.mark.parametrize("name", ["tpe", "gp"])
def test_an_infinite_violation_is_one(name: str) -> None:
    kind = KINDS[f"{name}-constraints"]
    played = Played(settings=kind.settings)
    adviser = OptunaAdviser(played.opening)
    changed: list[Trial] = []
    for number in range(5):
        played.ask(adviser, changed)
        played.end(number)
        violations = (inf, inf if number % 2 else -1.0)[: len(kind.constraints)]
        played.trials[number] = replace(played.trials[number], violations=violations)
        changed = [played.trials[number]]

    assert played.ask(OptunaAdviser(played.opening), []) == adviser.ask(5, changed)


def test_what_gp_has_fitted_to_constraints_is_in_its_state() -> None:
    played = Played(settings=KINDS["gp-constraints"].settings)
    adviser = OptunaAdviser(played.opening)
    for number in range(4):
        played.ask(adviser, [played.end(number - 1)] if number else [])
        played.trials[number] = replace(played.trials[number], violations=(number - 1.5,))

    sampler = make_sampler(played.settings)
    attributes = load_state(played.state, sampler)

    assert len(json.loads(played.state)["constraint_fits"]) == 1
    assert dump_state(sampler, attributes) == played.state


def test_violations_of_another_search_are_refused() -> None:
    played = Played(settings=KINDS["tpe-constraints"].settings)
    played.ask(OptunaAdviser(played.opening), [])
    played.end(0)
    played.trials[0] = replace(played.trials[0], violations=(1.0,))

    with pytest.raises(AdviserFailure, match="trial 0 has 1 violations for 2 constraints"):
        OptunaAdviser(played.opening)


def plain(kind: Kind) -> list[Values]:
    """Return what Optuna chooses with the same sampler, asked and told as its documents say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = make_sampler(kind.settings)
        directions = [objective.direction for objective in kind.settings.objectives]
        study = optuna.create_study(sampler=sampler, directions=directions)
        chosen: list[Values] = []
        for number in range(kind.num_trials):
            trial = study.ask()
            values = suggested(trial, kind.space, is_grid=kind.name == "grid")
            chosen.append(values)
            if number % 9 != 4:
                bounds = zip(kind.constraints, violations_of(values, kind.constraints), strict=True)
                for constraint, violation in bounds:
                    trial.set_constraint(write_constraint(constraint), violation)
            tell(study, trial, number, score(values, kind.num_objectives))
        return chosen


def suggested(trial: optuna.Trial, space: Space, *, is_grid: bool) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, one in space.items():
        if any(values.get(other) not in among for other, among in one.when.items()):
            continue
        if one.kind == "fixed":
            values[name] = one.value
        elif one.kind == "choice":
            plain_choices: list[Any] = list(range(len(one.choices))) if is_grid else list(map(repr, one.choices))
            values[name] = one.choices[plain_choices.index(trial.suggest_categorical(name, plain_choices))]
        elif one.kind == "float":
            assert one.low is not None
            assert one.high is not None
            values[name] = trial.suggest_float(name, one.low, one.high, step=one.step, log=one.log)
        else:
            assert one.low is not None
            assert one.high is not None
            values[name] = trial.suggest_int(name, int(one.low), int(one.high), step=int(one.step or 1), log=one.log)
    return values


def tell(study: optuna.Study, trial: optuna.Trial, number: int, results: tuple[float, ...]) -> None:
    if number % 9 == 4:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    elif number % 7 == 3 and len(results) == 1:
        trial.report(results[0] + 1.0, 1)
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        if len(results) == 1:
            trial.report(results[0] + 1.0, 1)
            trial.report(results[0], 2)
        study.tell(trial, list(results))


@pytest.mark.parametrize("name", ["tpe", "tpe-conditions", "random", "grid", "cmaes", "nsga2", "qmc"])
def test_values_are_plain_and_within_the_space(name: str) -> None:
    kind = KINDS[name]

    for values in play(kind, OptunaAdviser):
        for parameter_name, value in values.items():
            one = kind.space[parameter_name]
            if one.kind == "choice":
                assert any(
                    value is choice or (value == choice and type(value) is type(choice)) for choice in one.choices
                )
            elif one.kind != "fixed":
                assert one.low is not None
                assert one.high is not None
                assert type(value) is (int if one.kind == "int" else float)
                assert one.low <= value <= one.high
        assert values.keys() >= {one for one, parameter in kind.space.items() if not parameter.when}


def test_conditions_are_looked_at_in_the_order_of_the_parameters() -> None:
    for values in play(replace(KINDS["random"], num_trials=60), OptunaAdviser):
        assert ("momentum" in values) == (values["opt"] == "sgd")
        assert ("beta" in values) == (values["opt"] in ("adam", "lion"))
        assert ("drop" in values) == (values["opt"] == "adam" and values["layers"] in (3, 4))


def test_a_grid_tries_every_point_once_and_then_has_nothing_more() -> None:
    played = Played(settings=KINDS["grid"].settings)
    adviser = OptunaAdviser(played.opening)

    for _ in range(45):
        played.ask(adviser, [])
    points = {tuple(trial.values.items()) for trial in played.trials.values()}

    assert len(points) == 45
    assert played.ask(adviser, []) == Exhausted(reason="all 45 points of the grid have been tried")
    assert all("search_space" not in trial.attributes for trial in played.trials.values())


def test_a_grid_tries_every_point_also_if_somebody_gave_values_between() -> None:
    played = Played(settings=KINDS["grid"].settings)
    adviser = OptunaAdviser(played.opening)

    for number in range(47):
        played.ask(adviser, [], {"lr": 0.01, "decay": 0.2, "depth": 1} if number in (0, 5) else None)

    assert len({tuple(trial.values.items()) for trial in played.trials.values()}) == 45
    assert isinstance(played.ask(OptunaAdviser(played.opening), []), Exhausted)


def test_a_grid_of_fixed_values_is_one_point() -> None:
    played = Played(settings=Kind(name="grid", space={"seed": SearchParameter(kind="fixed", value=7)}).settings)
    adviser = OptunaAdviser(played.opening)

    first = played.ask(adviser, [])

    assert isinstance(first, Asked)
    assert first.values == {"seed": 7}
    assert isinstance(played.ask(adviser, []), Exhausted)


@pytest.mark.parametrize("name", ["tpe", "random", "gp", "nsga2", "qmc"])
def test_given_values_are_taken_and_the_rest_is_chosen(name: str) -> None:
    played = Played(settings=replace(KINDS[name], space=MIXED).settings)
    adviser = OptunaAdviser(played.opening)
    wanted: Values = {"lr": 0.01, "act": (64, (32, 16))}

    asked = played.ask(adviser, [], wanted)

    assert isinstance(asked, Asked)
    assert {key: asked.values[key] for key in wanted} == wanted
    assert asked.values.keys() == MIXED.keys()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"size": 3}, "'size' is given, but no parameter is called so"),
        ({"lr": 1.0}, "lr cannot be 1.0: it is none of its values"),
        ({"lr": "high"}, "lr cannot be 'high': it is a number"),
        ({"width": 9}, "width cannot be 9: it is none of its values"),
        ({"width": 8.5}, "width cannot be 8.5: it is none of its values"),
        ({"act": 1.5}, "act cannot be 1.5: it is not among its choices"),
        ({"seed": 8}, "seed=8 is given, but it is fixed to 7"),
    ],
)
def test_given_values_that_no_trial_can_have_are_refused(wanted: Values, message: str) -> None:
    with pytest.raises(AdviserFailure, match=message):
        OptunaAdviser(Played(settings=KINDS["tpe"].settings).opening).ask(0, [], wanted)


def test_a_given_value_whose_condition_does_not_hold_is_refused() -> None:
    adviser = OptunaAdviser(Played(settings=KINDS["random"].settings).opening)

    with pytest.raises(AdviserFailure, match="momentum is given, but its condition does not hold"):
        adviser.ask(0, [], {"opt": "adam", "momentum": 0.5})


@pytest.mark.parametrize("name", ["random", "tpe-conditions", "nsga2-conditions"])
def test_a_question_that_failed_leaves_no_trace(name: str) -> None:
    played, other = Played(settings=KINDS[name].settings), Played(settings=KINDS[name].settings)
    adviser, undisturbed = OptunaAdviser(played.opening), OptunaAdviser(other.opening)

    changed: list[Trial] = []
    for number in range(16):
        with pytest.raises(AdviserFailure, match="its condition does not hold"):
            adviser.ask(number, changed, {"opt": "adam", "momentum": 0.5})
        wanted: Values | None = {"opt": "sgd"} if number % 5 == 1 else None
        assert played.ask(adviser, [], wanted) == other.ask(undisturbed, changed, wanted)
        changed = [played.end(number)]


def test_a_grid_takes_all_values_or_none() -> None:
    adviser = OptunaAdviser(Played(settings=KINDS["grid"].settings).opening)

    with pytest.raises(AdviserFailure, match="a grid chooses all values or none; give decay, depth as well"):
        adviser.ask(0, [], {"lr": 0.1})


STATES = st.sampled_from(
    [
        TrialState.RUNNING,
        TrialState.PAUSED,
        TrialState.COMPLETED,
        TrialState.PRUNED,
        TrialState.FAILED,
        TrialState.STOPPED,
    ]
)
RESULTS = st.floats(allow_nan=True, allow_infinity=True)


@settings(max_examples=16, deadline=None)
@given(
    name=st.sampled_from(
        ["tpe", "tpe-conditions", "tpe-objectives", "random", "cmaes", "nsga2", "nsga2-conditions", "qmc"]
    ),
    steps=st.lists(st.lists(st.tuples(st.integers(0, 30), STATES, RESULTS), max_size=4), min_size=14, max_size=20),
)
def test_whatever_becomes_of_trials_in_whatever_order_only_what_they_are_now_counts(
    name: str, steps: list[list[tuple[int, TrialState, float]]]
) -> None:
    """Also a trial that goes on after its end, and results that are no numbers."""
    kind = KINDS[name]
    played = Played(settings=kind.settings)
    adviser = OptunaAdviser(played.opening)
    for step in steps:
        changed = {}
        for place, state, result in step:
            if (number := place % (len(played.trials) + 1)) in played.trials:
                results = None if state in (TrialState.RUNNING, TrialState.PAUSED) else (result,) * kind.num_objectives
                changed[number] = replace(
                    played.trials[number], state=state, results=results, reports=((1, result), (3, 0.5))
                )
        played.trials |= changed
        anew = OptunaAdviser(played.opening).ask(len(played.trials), [])
        assert played.ask(adviser, [changed[number] for number in sorted(changed)]) == anew


def test_parameters_are_grouped_alike_whichever_trials_ended_first() -> None:
    played = Played(settings=replace(KINDS["tpe-conditions"], options={"n_startup_trials": 1}).settings)
    adviser = OptunaAdviser(played.opening)
    for opt in ("sgd", "adam", "lion"):
        played.ask(adviser, [], {"opt": opt})

    for number in (2, 1, 0, 3, 4, 5):
        changed = [played.end(number)]
        anew = OptunaAdviser(played.opening).ask(len(played.trials), [])
        assert played.ask(adviser, changed) == anew


def test_a_completed_trial_without_a_number_counts_as_failed_and_an_infinite_one_counts() -> None:
    def chosen(results: tuple[float, ...], state: TrialState = TrialState.COMPLETED) -> Values:
        played = Played(settings=replace(KINDS["tpe"], options={"n_startup_trials": 2}).settings)
        adviser = OptunaAdviser(played.opening)
        for number in range(6):
            played.ask(adviser, [])
            played.trials[number] = replace(ended(played.trials[number], 1), state=TrialState.COMPLETED, results=(1.0,))
        played.trials[5] = replace(played.trials[5], state=state, results=results)
        asked = played.ask(adviser, list(played.trials.values()))
        assert isinstance(asked, Asked)
        return asked.values

    assert chosen((float("nan"),)) == chosen((1.0,), TrialState.FAILED)
    assert chosen((float("-inf"),)) != chosen((float("inf"),))


def test_a_trial_that_is_asked_for_out_of_order_is_refused() -> None:
    adviser = OptunaAdviser(Played(settings=KINDS["random"].settings).opening)

    with pytest.raises(AdviserFailure, match="values are asked for as trial 3, and there are 0 trials"):
        adviser.ask(3, [])


def corrupted(change: Callable[[str], str]) -> None:
    played = Played(settings=KINDS["tpe"].settings)
    played.ask(OptunaAdviser(played.opening), [])
    played.state = change(played.state)
    OptunaAdviser(played.opening)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-10],
        lambda text: "[]",
        lambda text: "{}",
        lambda text: '{"optuna":"5.0.0","generators":{},"fits":[],"attributes":{}}',
        lambda text: text.replace('"_rng":["', '"_rng":["@'),
        lambda text: text.replace('"_rng":["', '"_rng":["AAAA'),
        lambda text: text.replace('"_rng":["', '"_rng":[null,"'),
        lambda text: text.replace('"fits":[]', '"fits":[1]'),
        lambda text: text.replace('"attributes":{}', '"attributes":7'),
        lambda text: "[" * 100_000,
    ],
)
def test_a_state_that_is_damaged_is_said_to_be(change: Callable[[str], str]) -> None:
    with pytest.raises(AdviserFailure, match="the state of the sampler cannot be read"):
        corrupted(change)


def test_a_state_of_another_sampler_is_refused_with_the_version_that_wrote_it() -> None:
    played = Played(settings=KINDS["cmaes"].settings)
    played.ask(OptunaAdviser(played.opening), [])
    played.trials = {}
    other: SearchSettings = KINDS["gp"].settings

    with pytest.raises(AdviserFailure, match=r"It was written by Optuna 5\.0\.0"):
        OptunaAdviser(replace(played.opening, settings=other))


@pytest.mark.parametrize("attributes", [{"cma:optimizer:0": "zz", "cma:generation": 0}, {"cma:optimizer:1": "00"}])
def test_damaged_attributes_of_trials_are_a_failure_of_the_adviser(attributes: dict[str, object]) -> None:
    played = Played(settings=KINDS["cmaes"].settings)
    played.ask(OptunaAdviser(played.opening), [])
    played.trials[0] = replace(ended(played.trials[0], 1), attributes=attributes)

    with pytest.raises(AdviserFailure, match="Optuna cannot choose values"):
        OptunaAdviser(played.opening).ask(1, [])


def test_the_spaces_of_these_tests_are_what_they_are_called() -> None:
    assert not any(one.when for one in (*NUMBERS.values(), *MIXED.values(), *FINITE.values()))
    assert sum(bool(one.when) for one in CONDITIONAL.values()) == 3
