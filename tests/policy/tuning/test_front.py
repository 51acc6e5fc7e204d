"""Trials of several objectives that no other one beats: the same ones that Optuna names."""

from math import inf, nan

import optuna
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.tuning.stage import trial_of

from pliant.core.job import JobId
from pliant.core.search import Objective, Trial, TrialState
from pliant.policy.tuning.front import find_front

SMALL, LARGE = (Objective(metric="loss", direction="minimize"), Objective(metric="acc", direction="maximize"))


def completed(number: int, *results: float, **changes: object) -> Trial:
    return trial_of(number, state=TrialState.COMPLETED, results=results, **changes)


def front(*trials: Trial) -> list[int]:
    return [one.number for one in find_front((SMALL, LARGE), trials)]


def test_those_that_are_beaten_in_all_objectives_are_left_out() -> None:
    trials = (completed(0, 3.0, 7.0), completed(1, 1.0, 1.0), completed(2, 2.0, 8.0), completed(3, 2.0, 8.0))

    assert front(*trials) == [1, 2, 3]


def test_who_has_no_results_or_violates_a_constraint_beats_nobody() -> None:
    others = (
        trial_of(0, state=TrialState.PRUNED, results=(0.0, 9.0)),
        trial_of(1, state=TrialState.FAILED),
        completed(2, nan, 9.0),
        completed(3, 0.0, 9.0, violations=(1.0,)),
        completed(4, 0.0, 9.0, job_id=JobId("")),
    )

    assert front(*others, completed(5, 5.0, 1.0), completed(6, inf, -inf)) == [5]
    assert front(*others) == []


_NUMBERS = st.sampled_from([0.0, 1.0, 2.0, 3.0, inf])


@given(st.lists(st.tuples(_NUMBERS, _NUMBERS, _NUMBERS), max_size=12))
def test_the_front_is_that_of_optuna(results: list[tuple[float, float, float]]) -> None:
    objectives = (SMALL, LARGE, Objective(metric="size", direction="minimize"))
    study = optuna.create_study(directions=[one.direction for one in objectives])
    study.add_trials([optuna.trial.create_trial(values=values) for values in results])

    found = find_front(objectives, [completed(number, *values) for number, values in enumerate(results)])

    assert sorted(one.number for one in found) == sorted(one.number for one in study.best_trials)
    assert [one.results[0] for one in found if one.results] == sorted(one.results[0] for one in found if one.results)
