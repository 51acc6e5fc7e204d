"""How long a search will go on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.tuning.stage import search_of, settings_of, trial_of

from pliant.core.job import JobId
from pliant.core.population import Population
from pliant.core.search import Halving, Search, SearchState, Trial, TrialState
from pliant.policy.tuning.time_left import seconds_left

HALVING = Halving(min=1, max=9, factor=3)


def ended(number: int, begun_at: float, ended_at: float) -> Trial:
    return trial_of(number, state=TrialState.COMPLETED, begun_at=begun_at, ended_at=ended_at, results=(0.5,))


def search(num_trials: int, halving: Halving | None = None, **changes: object) -> Search:
    return replace(search_of(settings_of(halving, **changes)), num_trials=num_trials)


def test_trials_to_come_take_as_long_as_those_before_as_many_at_once() -> None:
    done = [ended(number, 60.0 * (number // 2), 60.0 * (number // 2) + 60.0) for number in range(10)]
    training = [trial_of(number, begun_at=300.0) for number in (10, 11)]
    assert seconds_left(search(12, max_trials=40), [*done, *training], 320.0) == pytest.approx(880.0)


def test_with_rungs_epochs_are_counted() -> None:
    # nine trials came to epoch 1 in 90 s; three go on to epoch 3 and one to 9: 6 + 6 epochs
    waiting = [trial_of(number, state=TrialState.PAUSED, reports=((1, 0.1),)) for number in range(9)]
    assert seconds_left(search(9, HALVING), waiting, 90.0) == pytest.approx(120.0)
    # nine more are to come: 9 + 6 + 6 epochs
    assert seconds_left(search(9, HALVING, max_trials=18), waiting, 90.0) == pytest.approx(330.0)
    best = [trial_of(4, rung=2, reports=((1, 0.1), (6, 0.1)))]
    assert seconds_left(search(9, HALVING), best, 90.0) == pytest.approx(45.0)


def test_of_a_population_all_members_train_to_the_end() -> None:
    # four members came to epoch 2 in 80 s, one was replaced and its child is at epoch 4: 3 · 6 + 4 epochs are left
    population = replace(
        search(5), settings=settings_of(population=Population(size=4, every=2, max=8), max_trials=None)
    )
    first = [trial_of(number, reports=((1, 0.1), (2, 0.1))) for number in range(3)]
    lost = trial_of(3, state=TrialState.PRUNED, reports=((1, 0.1), (2, 0.1)), ended_at=80.0)
    child = trial_of(4, parent=0, parent_epoch=2, reports=((3, 0.1), (4, 0.1)))
    assert seconds_left(population, [*first, lost, child], 100.0) == pytest.approx((3 * 6 + 4) * 100.0 / 10)


def test_a_limit_of_time_is_kept_to() -> None:
    trials = [ended(0, 0.0, 100.0)]
    assert seconds_left(search(1, max_trials=None, max_time_s=400.0), trials, 100.0) == 300.0
    assert seconds_left(search(1, max_trials=100, max_time_s=400.0), trials, 100.0) == 300.0
    assert seconds_left(search(1, max_trials=2, max_time_s=400.0), trials, 100.0) == 100.0
    assert seconds_left(search(1, max_time_s=50.0), trials, 100.0) == 0.0


def test_where_nobody_can_tell_nothing_is_said() -> None:
    going = search(2)
    assert seconds_left(going, [], 100.0) is None
    assert seconds_left(going, [trial_of(0)], 100.0) is None
    assert seconds_left(search(1, max_trials=None, target=0.1), [ended(0, 0.0, 10.0)], 100.0) is None
    assert seconds_left(search(2, HALVING), [trial_of(0)], 100.0) is None
    stopped = replace(going, state=SearchState.STOPPED, running_since=None, ran_s=50.0)
    assert seconds_left(stopped, [ended(0, 0.0, 10.0)], 100.0) is None
    overdue = [ended(0, 0.0, 10.0), trial_of(1, begun_at=10.0)]
    assert seconds_left(search(2, max_trials=2), overdue, 100.0) is None
    known = [replace(ended(0, 0.0, 10.0), job_id=JobId(""))]
    assert seconds_left(replace(search(1), num_known=1), known, 100.0) is None


def test_no_trial_begins_any_more_where_the_space_has_ended() -> None:
    grid = replace(search(2, max_trials=None), exhausted="all combinations were tried")
    assert seconds_left(grid, [ended(0, 0.0, 60.0), trial_of(1, begun_at=60.0)], 80.0) == pytest.approx(40.0)


@given(
    begun=st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(0, 40), st.booleans()), max_size=12),
    is_halved=st.booleans(),
    ran=st.floats(0, 1e5),
    limit=st.none() | st.integers(1, 50),
)
def test_it_is_never_below_nothing(
    begun: list[tuple[float, float, int, bool]], is_halved: bool, ran: float, limit: int | None
) -> None:
    trials = [
        trial_of(
            number,
            begun_at=at,
            ended_at=at + took if is_over else None,
            state=TrialState.PRUNED if is_over else TrialState.RUNNING,
            reports=((epoch, 0.1),) if epoch else (),
            rung=min(2, epoch // 3),
        )
        for number, (at, took, epoch, is_over) in enumerate(begun)
    ]
    left = seconds_left(search(len(trials), HALVING if is_halved else None, max_trials=limit), trials, ran)
    assert left is None or 0 <= left < float("inf")
