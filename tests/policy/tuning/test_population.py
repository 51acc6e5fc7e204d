"""Populations: results alone decide who ends, and who begins from whose state with which values."""

from math import nan
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.tuning.stage import SPACE, Stage, search_of, settings_of

from pliant.core.population import Population
from pliant.core.search import Sampler, SearchState, Trial, TrialState
from pliant.core.space_rules import problems_of_values

POPULATION = Population(size=6, every=2, max=8, fraction=0.4)
ENDS = POPULATION.ends


def play(curves: dict[int, list[float | None]], chance: Random | None, num_places: int, **changes: object) -> Stage:
    """Play a population to its end: all trials an epoch at a time, or some of them, by chance, some epochs."""
    given: dict[str, object] = {"population": POPULATION, "max_trials": None, **changes}
    stage = Stage(
        search_of(settings_of(None, **given)),
        lambda number, epoch: curves[number % len(curves)][epoch - 1],
        num_epochs=8,
        num_places=num_places,
    )
    stage.play(chance)
    return stage


def whole(stage: Stage) -> list[tuple[object, ...]]:
    return [
        (*outcome, one.values, one.parent, one.parent_epoch)
        for outcome, one in zip(stage.outcome(), stage.trials, strict=True)
    ]


def generation_of(trial: Trial) -> int:
    """Return before which decision a trial began."""
    return 0 if trial.parent is None else ENDS.index(trial.parent_epoch) + 1


losses = st.one_of(st.floats(0, 1, width=16), st.just(nan), st.none())
a_curve = st.lists(st.floats(0, 1, width=16), min_size=8, max_size=8)
a_bad_curve = st.lists(losses, min_size=8, max_size=8)


@given(st.lists(st.one_of(a_curve, a_bad_curve), min_size=12, max_size=12), st.integers(0, 2**32), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_the_order_of_arrival_the_places_and_quick_trials_decide_nothing(
    curves: list[list[float | None]], seed: int, num_places: int
) -> None:
    by_number = dict(enumerate(curves))
    calm = play(by_number, None, num_places=6)
    wild = play(by_number, Random(seed), num_places=num_places)

    if "failed alike" not in wild.search.reason + calm.search.reason:
        assert whole(wild) == whole(calm)
        assert wild.search.best == calm.search.best


@given(st.lists(st.one_of(a_curve, a_bad_curve), min_size=12, max_size=12))
@settings(max_examples=40, deadline=None)
def test_it_keeps_its_size_and_the_worse_never_take_the_place_of_the_better(curves: list[list[float | None]]) -> None:
    stage = play(dict(enumerate(curves)), None, num_places=6)

    for generation, epoch in enumerate(ENDS):
        members = [one for one in stage.trials if generation_of(one) <= generation <= one.rung]
        children = [one for one in stage.trials if one.parent is not None and one.parent_epoch == epoch]
        if any(one.rung > generation for one in members):  # it was decided
            assert len(members) == POPULATION.size
            assert sum(one.rung > generation for one in members) + len(children) == POPULATION.size
        losers = [one for one in members if one.rung == generation and one.state is TrialState.PRUNED]
        for child in children:
            assert child.parent is not None
            assert stage.trials[child.parent].rung > generation
            best_lost = min((one.results[0] for one in losers if one.results), default=1.0)
            value = next(value for at, value in parent_reports(stage, child) if at >= epoch)
            assert value <= best_lost or best_lost != best_lost
    assert all(not problems_of_values(SPACE, one.values) for one in stage.trials)


def parent_reports(stage: Stage, child: Trial) -> tuple[tuple[int, float], ...]:
    assert child.parent is not None
    return stage.trials[child.parent].reports


def test_the_worst_are_followed_by_children_of_the_best() -> None:
    stage = play({n: [n / 10 + 1 / epoch for epoch in range(1, 9)] for n in range(12)}, None, num_places=6)

    assert stage.search.state is SearchState.COMPLETED
    assert stage.search.reason == "all 12 trials of its population have ended"
    assert stage.search.best == 0
    assert [one.state.value for one in stage.trials[:6]] == ["completed"] * 4 + ["pruned"] * 2
    first = [one for one in stage.trials if one.parent_epoch == 2]
    assert [(one.number, one.parent in (0, 1), one.rung >= 1) for one in first] == [(6, True, True), (7, True, True)]
    follower = f"trial 7 goes on in its place, from trial {first[1].parent}"
    assert stage.trials[4].reason == f"val_loss 0.9 is number 5 of 6 at epoch 2: {follower}"
    assert stage.trials[4].results == (0.9,)
    assert ("exploit", 7) in stage.said


def test_who_has_no_number_is_followed_whatever_the_fraction_and_never_copied() -> None:
    bad: dict[int, list[float | None]] = {n: [0.5] * 8 for n in range(12)}
    bad |= {0: [nan] * 8, 1: [0.5, *[None] * 7], 2: [0.1, nan, *[0.1] * 6], 3: [nan] * 8}
    stage = play(bad, None, num_places=6)

    born = [one for one in stage.trials if one.parent_epoch == 2]
    assert [one.state.value for one in stage.trials[:4]] == ["pruned", "failed", "pruned", "pruned"]
    assert len(born) == 5
    assert {one.parent for one in born} == {4}
    assert stage.trials[0].reason.startswith("val_loss nan is no number at epoch 2: trial ")


def test_a_population_without_any_number_ends() -> None:
    stage = play({n: [nan] * 8 for n in range(6)}, None, num_places=6)

    assert [one.state for one in stage.trials] == [TrialState.PRUNED] * 6
    assert stage.search.state is SearchState.FAILED


def test_where_no_further_trial_may_begin_all_train_on() -> None:
    curves: dict[int, list[float | None]] = {n: [n / 10] * 8 for n in range(12)}
    stage = play(curves, None, num_places=6, max_trials=7)

    assert len(stage.trials) == 7
    assert [one.state.value for one in stage.trials] == ["completed"] * 5 + ["pruned", "completed"]


@pytest.mark.parametrize("seed", [0, 7])
def test_a_seed_chooses_values_and_parents(seed: int) -> None:
    curves: dict[int, list[float | None]] = {n: [n / 10] * 8 for n in range(12)}
    first, again, other = (
        whole(play(curves, None, 6, sampler=Sampler(name="random", seed=one))) for one in (seed, seed, seed + 1)
    )

    assert first == again
    assert first != other
