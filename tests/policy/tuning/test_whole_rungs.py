"""Halving by whole rungs: results alone decide who goes on."""

from math import nan
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.tuning.stage import Stage, search_of, settings_of

from pliant.core.search import Halving, SearchState, TrialState

HALVING = Halving(min=1, max=9, factor=3)


def play(curves: dict[int, list[float | None]], chance: Random | None, num_places: int, **changes: object) -> Stage:
    """Play a search to its end: all trials an epoch at a time, or some of them, by chance, some epochs."""
    stage = Stage(
        search_of(settings_of(HALVING, **changes)),
        lambda number, epoch: curves[number % len(curves)][epoch - 1],
        num_epochs=9,
        num_places=num_places,
    )
    stage.play(chance)
    return stage


losses = st.one_of(st.floats(0, 1, width=16), st.just(nan), st.none())
a_curve = st.lists(st.floats(0, 1, width=16), min_size=9, max_size=9)
a_bad_curve = st.lists(losses, min_size=9, max_size=9)


@given(st.lists(st.one_of(a_curve, a_bad_curve), min_size=9, max_size=9), st.integers(0, 2**32), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_the_order_of_arrival_the_places_and_quick_trials_decide_nothing(
    curves: list[list[float | None]], seed: int, num_places: int
) -> None:
    by_number = dict(enumerate(curves))
    calm = play(by_number, None, num_places=9)
    wild = play(by_number, Random(seed), num_places=num_places)

    if "failed alike" not in wild.search.reason + calm.search.reason:
        assert wild.outcome() == calm.outcome()
        assert wild.search.best == calm.search.best


def test_one_in_three_goes_on_from_each_rung_and_the_last_to_its_end() -> None:
    stage = play({n: [n / 10 + 1 / epoch for epoch in range(1, 10)] for n in range(9)}, None, num_places=9)

    assert stage.search.state is SearchState.COMPLETED
    assert stage.search.best == 0
    assert [one.state for one in stage.trials] == [TrialState.COMPLETED] + [TrialState.PRUNED] * 8
    assert [one.rung for one in stage.trials] == [2, 1, 1, 0, 0, 0, 0, 0, 0]
    assert [one.reports[-1][0] for one in stage.trials] == [9, 3, 3, 1, 1, 1, 1, 1, 1]
    assert stage.trials[4].reason == "val_loss 1.4 at epoch 1 is number 5 of 9, and 3 go on"


def test_equal_values_go_on_in_the_order_of_their_numbers() -> None:
    stage = play({n: [0.5] * 9 for n in range(9)}, None, num_places=2)

    assert [one.rung for one in stage.trials] == [2, 1, 1, 0, 0, 0, 0, 0, 0]


def test_a_rung_of_fewer_than_the_factor_lets_one_go_on() -> None:
    stage = play({0: [0.3] * 9, 1: [0.2] * 9}, None, num_places=2, max_trials=2)

    assert [one.state for one in stage.trials] == [TrialState.PRUNED, TrialState.COMPLETED]


def test_nan_never_goes_on() -> None:
    stage = play({0: [nan] * 9, 1: [0.2] * 9, 2: [nan] * 9}, None, num_places=3, max_trials=3)

    assert [one.state for one in stage.trials] == [TrialState.PRUNED, TrialState.COMPLETED, TrialState.PRUNED]
    assert "no number" in stage.trials[0].reason


def test_the_next_bracket_begins_when_the_one_before_is_over() -> None:
    halving = Halving(min=1, max=9, factor=3, size=3)
    stage = Stage(search_of(settings_of(halving, max_trials=6)), lambda number, _: float(number), 9, num_places=6)
    stage.ask()
    assert len(stage.trials) == 3

    while stage.runs:
        for number in range(len(stage.trials)):
            stage.train(number, 1)
        stage.look(range(len(stage.trials)))
        if not all(one.ended for one in stage.trials[:3]):
            assert len(stage.trials) == 3
        stage.ask()

    assert [one.bracket for one in stage.trials] == [0, 0, 0, 1, 1, 1]
