"""Halving by arrival: who is among the best so far goes on at once."""

from tests.policy.tuning.stage import Stage, search_of, settings_of

from pliant.core.search import Halving, TrialState

HALVING = Halving(min=1, max=9, factor=3, order="arrival")


def test_the_third_to_come_sends_the_best_on_and_the_rest_is_pruned_at_the_end() -> None:
    stage = Stage(search_of(settings_of(HALVING, max_trials=4)), lambda number, _: float(number), 9, num_places=4)
    stage.ask()

    for number in (2, 1):
        stage.train(number, 1)
        stage.look([number])
    assert [one.state for one in stage.trials[1:3]] == [TrialState.PAUSED] * 2

    stage.train(3, 1)
    stage.look([3])
    assert (stage.trials[1].state, stage.trials[1].rung) == (TrialState.RUNNING, 1)
    assert stage.trials[1].reason == "val_loss 1 at epoch 1 is number 1 of 3: it goes on to the rung after epoch 1"

    while stage.runs:
        for number in range(4):
            stage.train(number, 1)
            stage.look([number])
    assert {one.state for one in stage.trials} == {TrialState.PRUNED, TrialState.COMPLETED}


def test_who_was_promoted_goes_before_a_new_trial() -> None:
    stage = Stage(search_of(settings_of(HALVING, max_trials=9)), lambda number, _: float(number), 9, num_places=1)
    for number in range(3):
        stage.ask()
        assert len(stage.trials) == number + 1
        stage.train(number, 1)
        stage.look([number])

    stage.ask()
    assert len(stage.trials) == 3
    assert [one.state for one in stage.trials] == [TrialState.RUNNING, TrialState.PAUSED, TrialState.PAUSED]
