"""Scripts that do not use their values."""

from math import nan

import pytest
from tests.policy.tuning.stage import search_of, settings_of, trial_of

from pliant.core.search import Trial
from pliant.policy.tuning.advance import SearchStep, advance
from pliant.policy.tuning.deaf import find_deaf


def trials(*reports: float, same_values: bool = False) -> list[Trial]:
    """Return trials that have reported one value each."""
    return [
        trial_of(number, values={"lr": 0.1 if same_values else number / 10}, reports=((1, value),))
        for number, value in enumerate(reports)
    ]


def test_three_that_report_the_very_same_are_remarked() -> None:
    assert find_deaf(search_of(settings_of()), trials(0.5, 0.5, 0.5)) == (
        "trials 0, 1, 2 have other values and report the very same val_loss, 0.5 at 1: does the script read its "
        "values? They are given as --NAME=VALUE or PLIANT_PARAM_NAME"
    )


@pytest.mark.parametrize(
    "found",
    [trials(0.5, 0.5), trials(0.5, 0.5, 0.25), trials(nan, nan, nan), trials(0.5, 0.5, 0.5, same_values=True), []],
)
def test_what_may_be_chance_is_not(found: list[Trial]) -> None:
    assert find_deaf(search_of(settings_of()), found) == ""


def test_it_is_remarked_once() -> None:
    step = SearchStep(search=search_of(settings_of()), trials=trials(0.5, 0.5, 0.5), now=1.0)
    for _ in range(3):
        step.put(trial_of(0, values={"lr": 0.0}, reports=((1, 0.5),)))
        advance(step, {}, num_places=4, job_ids=iter(()))

    assert [one.kind for one in step.decisions] == ["warn"]
    assert step.search.remark == step.decisions[0].reason
