"""What is said of why a search has as many trials as it has."""

from dataclasses import replace

import pytest
from tests.policy.tuning.stage import Stage, search_of, settings_of

from pliant.core.population import Population
from pliant.core.search import Halving, Sampler, SearchState
from pliant.policy.tuning.places import Places
from pliant.policy.tuning.standing import explain_search

REASON = "as was said"


def stage_of(order: str = "rungs", **changes: object) -> Stage:
    halving = Halving(min=1, max=9, factor=3, order=order)  # type: ignore[arg-type]
    return Stage(search_of(settings_of(halving, **changes)), lambda number, _: float(number), 9, num_places=4)


def said(stage: Stage) -> tuple[str, ...]:
    return explain_search(stage.search, stage.trials, Places(num=stage.num_places, reason=REASON))


def train(stage: Stage, *numbers: int) -> None:
    for number in numbers:
        stage.train(number, 1)
    stage.look(numbers)
    stage.ask()


def test_who_waits_at_a_rung_is_told_with_whom_it_waits_for() -> None:
    stage = stage_of(parallel=4)
    stage.ask()
    first = "4 trials train or wait for slots, of 4 that may at once: as was said."
    assert said(stage) == (first, "The next trial begins as soon as another one leaves its place.")

    train(stage, 0, 1)
    waiting = "2 trials wait at epoch 1: 7 of 9 are to come, then the best one in 3 goes on."
    assert said(stage) == (first, waiting, "The next trial begins as soon as another one leaves its place.")

    for number in range(2, 8):
        train(stage, number)
    assert said(stage) == (
        "1 trial trains or waits for slots, of 4 that may at once: as was said.",
        "8 trials wait at epoch 1: 1 of 9 is to come, then the best one in 3 goes on.",
        "No trial begins any more: all 9 have.",
    )
    train(stage, 8)
    for _ in range(2):
        train(stage, 0)
    assert said(stage)[1] == "1 trial waits at epoch 3: 2 of 3 are to come, then the best one in 3 goes on."


def test_who_passed_a_rung_waits_for_a_place() -> None:
    stage = stage_of()
    stage.num_places = 9
    stage.ask()
    stage.num_places = 2
    train(stage, *range(9))
    assert said(stage) == (
        "2 trials train or wait for slots, of 2 that may at once: as was said.",
        "1 trial that passed a rung goes on as soon as another one leaves its place.",
        "No trial begins any more: all 9 have.",
    )


def test_by_arrival_nobody_waits_for_all() -> None:
    stage = stage_of("arrival")
    stage.ask()
    train(stage, 3)
    assert (
        said(stage)[1]
        == "1 trial waits at epoch 1: the best one in 3 of those that have come there goes on at any time."
    )


def test_the_next_bracket_waits_for_the_one_before() -> None:
    stage = stage_of(max_trials=20, sampler=Sampler(name="tpe"))
    for number in range(9):
        stage.ask()
        train(stage, number)
    assert len(stage.trials) == 9
    assert said(stage)[-1] == "The next trials begin once all that began together have ended."


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({"exhausted": "all 4 combinations were tried"}, "No trial begins any more: all 4 combinations were tried."),
        ({"num_trials": 0}, "The values of the next trial are being chosen."),
    ],
)
def test_what_begins_next(changes: dict[str, object], last: str) -> None:
    search = replace(search_of(settings_of()), **changes)  # type: ignore[arg-type]
    assert explain_search(search, (), Places(num=4, reason=REASON))[-1] == last


def test_without_rungs_nobody_waits_for_others() -> None:
    stage = Stage(search_of(settings_of(max_trials=2)), lambda number, _: float(number), 9)
    stage.ask()
    assert said(stage) == (
        "2 trials train or wait for slots, of 4 that may at once: as was said.",
        "No trial begins any more: all 2 have.",
    )


def test_at_rest_it_says_why_and_what_stays() -> None:
    stage = stage_of()
    stage.ask()
    stopped = replace(stage.search, state=SearchState.STOPPED, reason="ada stopped it")
    assert explain_search(stopped, stage.trials, None) == (
        "It is stopped: ada stopped it.",
        "4 trials stay paused until it is resumed.",
    )
    over = replace(stopped, state=SearchState.COMPLETED, reason="all of its 9 trials have ended")
    assert explain_search(over, (), None) == ("It is completed: all of its 9 trials have ended.",)


def test_members_of_a_population_wait_for_one_another() -> None:
    population = Population(size=3, every=2, max=4)
    stage = Stage(
        search_of(settings_of(population=population, max_trials=None)), lambda number, _: float(number), 4, num_places=3
    )
    stage.ask()
    for _ in range(2):
        train(stage, 0)
    assert said(stage)[1] == "1 trial waits at epoch 2: 2 of 3 are to come, then the worst are replaced."
    for _ in range(2):
        train(stage, 1, 2)
    assert len(stage.trials) == 4
    assert "wait at" not in " ".join(said(stage))
