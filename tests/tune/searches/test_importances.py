"""How important parameters are, and what may keep that from being known."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from tests.tune.searches.world import ANNA, BEN, World, settings_of

from pliant.core.errors import NotFound, Unavailable
from pliant.core.search import Sampler, Trial, TrialState
from pliant.tune.advice import Adviser, AdviserInput, AdviserLost
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.searches.importances import ImportanceCalculator


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create(settings_of(sampler=Sampler(name="random", seed=1), max_trials=40))
    return world


def test_what_results_depend_on_is_more_important(world: World) -> None:
    world.jobs.curve = lambda values, _epoch: abs(float(values["width"]) - 16)  # type: ignore[arg-type]
    world.play(9)

    found = world.requests.importances(ANNA, "s")

    assert (found.reason, list(found.values)) == ("", ["width", "lr"])
    assert sum(found.values.values()) == pytest.approx(1)
    assert found.values["width"] > 0.9
    with pytest.raises(NotFound):
        world.requests.importances(BEN, "s")


def test_of_too_few_results_and_of_equal_ones_it_says_why_nobody_can_tell(world: World) -> None:
    assert world.requests.importances(ANNA, "s").reason == "0 trials have completed; 5 are needed at least"

    world.jobs.curve = lambda _values, _epoch: 0.5
    world.play(9)

    assert world.requests.importances(ANNA, "s").reason == "all 40 results are 0.5"


def test_infinite_results_count_for_nothing(world: World) -> None:
    world.play(9)
    trials = [replace(one, results=(inf,)) if one.number < 3 else one for one in world.trials]

    found = ImportanceCalculator(OptunaAdviser).of(world.search, trials)

    assert sorted(found.values) == ["lr", "width"]


def test_a_process_that_is_lost_is_no_fault_of_who_asks(world: World) -> None:
    world.play(9)

    def lost(opening: AdviserInput) -> Adviser:
        raise AdviserLost("it is gone")

    calculator = ImportanceCalculator(lost)
    with pytest.raises(Unavailable, match="it is gone"):
        calculator.of(world.search, world.trials)
    with pytest.raises(Unavailable, match="it is gone"):
        calculator.of(world.search, world.trials)


def test_trials_that_have_not_ended_count_for_nothing(world: World) -> None:
    world.play(9)
    more: list[Trial] = [*world.trials]
    for state in (TrialState.RUNNING, TrialState.PAUSED):
        more.append(replace(more[0], number=len(more), state=state, results=None))

    calculator = ImportanceCalculator(OptunaAdviser)

    assert calculator.of(world.search, more) == calculator.of(world.search, world.trials)
