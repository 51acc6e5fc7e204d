"""In which order a table shows trials: pages of it fit together, and what has no value is last either way."""

from math import nan

from hypothesis import given
from hypothesis import strategies as st
from tests.policy.tuning.stage import trial_of

from pliant.core.search import Objective, TrialState
from pliant.policy.tuning.trial_order import TrialOrder, order_trials

LOSS = (Objective(metric="loss", direction="minimize"),)
ACC = (Objective(metric="acc", direction="maximize"),)
TRIALS = (
    trial_of(0, state=TrialState.COMPLETED, results=(0.3,), begun_at=0.0, ended_at=9.0),
    trial_of(1, state=TrialState.RUNNING),
    trial_of(2, state=TrialState.COMPLETED, results=(0.1,), begun_at=0.0, ended_at=5.0),
    trial_of(3, state=TrialState.COMPLETED, results=(nan,), begun_at=0.0, ended_at=7.0),
    trial_of(4, state=TrialState.PRUNED, results=(0.01,), violations=(1.0,), begun_at=0.0, ended_at=1.0),
)


def numbers(order: TrialOrder, objectives: tuple[Objective, ...] = LOSS, *states: TrialState) -> list[int]:
    return [trial.number for trial in order_trials(TRIALS, objectives, order, states)]


def test_the_best_come_first_then_those_that_violate_a_bound_then_those_without_a_number() -> None:
    assert numbers("value") == [2, 0, 4, 1, 3]
    assert numbers("value", ACC) == [0, 2, 4, 1, 3]
    assert numbers("-value") == [0, 2, 4, 1, 3]
    assert numbers("-duration") == [0, 3, 2, 4, 1]
    assert numbers("-number", LOSS, TrialState.COMPLETED) == [3, 2, 0]


@given(st.permutations(TRIALS), st.sampled_from(["number", "-number", "value", "-value", "duration", "-duration"]))
def test_the_order_is_always_the_same_whatever_it_began_with(trials: list[object], order: TrialOrder) -> None:
    found = order_trials(trials, LOSS, order)  # type: ignore[arg-type]

    assert [one.number for one in found] == numbers(order)
