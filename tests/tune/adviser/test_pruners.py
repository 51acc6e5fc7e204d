"""A pruner of Optuna's ends a trial, and says why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tune.adviser.played import NUMBERS, Kind, Played, trial_of

from pliant.core.search import Objective, Pruner, PrunerName, Trial, TrialState
from pliant.core.space import Scalar
from pliant.tune.advice import AdviserFailure, Asked, Judgement
from pliant.tune.adviser.optuna_adviser import OptunaAdviser

NAN = float("nan")
ASKED = Asked(values={"lr": 0.01, "width": 8, "decay": 0.5, "seed": 7}, state="")


def trial(number: int, reports: Sequence[float], state: TrialState = TrialState.COMPLETED) -> Trial:
    results = (reports[-1],) if state is TrialState.COMPLETED else None
    begun = trial_of(number, ASKED)
    return replace(begun, state=state, reports=tuple(enumerate(reports, 1)), results=results)


def judged(
    name: PrunerName, options: Mapping[str, Scalar], reports: Sequence[Sequence[float]], *, maximize: bool = False
) -> Judgement:
    """Return what a pruner says of the last of these trials; the others have completed."""
    kind = Kind(name="random", space=NUMBERS, pruner=Pruner(name=name, options=options))
    objective = Objective(metric="val_loss", direction="maximize" if maximize else "minimize")
    trials = [trial(number, each) for number, each in enumerate(reports[:-1])]
    trials.append(trial(len(trials), reports[-1], TrialState.RUNNING))
    opening = Played(settings=replace(kind.settings, objectives=(objective,))).opening
    anew = OptunaAdviser(replace(opening, trials=tuple(trials))).judge(len(trials) - 1, [])
    adviser = OptunaAdviser(opening)
    for one in trials:
        judgement = adviser.judge(one.number, [one])
    assert judgement == anew
    return anew


SEVEN = [[1.0, 0.1 * number] for number in range(1, 8)]


@pytest.mark.parametrize(
    ("name", "options", "reports", "reason"),
    [
        (
            "median",
            {},
            [*SEVEN, [0.9, 0.5]],
            "its best val_loss up to step 2, 0.5, is worse than the median 0.4 of 7 trials",
        ),
        ("median", {}, [*SEVEN, [0.9, 0.3]], None),
        ("median", {"n_startup_trials": 8}, [*SEVEN, [0.9, 0.5]], None),
        ("median", {"n_warmup_steps": 3}, [*SEVEN, [0.9, 0.5]], None),
        ("median", {}, [*SEVEN, [NAN, NAN]], "all its values of val_loss up to step 2 are NaN"),
        (
            "percentile",
            {"percentile": 25.0},
            [*SEVEN, [0.9, 0.3]],
            "its best val_loss up to step 2, 0.3, is worse than what the best 25 % reached, 0.25 of 7 trials",
        ),
        ("threshold", {"upper": 2.0}, [[1.0, 3.5]], "its val_loss 3.5 at step 2 is outside -∞ to 2.0"),
        ("threshold", {"lower": 0, "upper": 2.0}, [[1.0, NAN]], "its val_loss nan at step 2 is outside 0 to 2.0"),
        ("threshold", {"lower": 0.5}, [[1.0]], None),
        (
            "patient",
            {"patience": 1},
            [[1.0, 2.0, 3.0]],
            "its val_loss has not become better over 1 reports, the last at step 3",
        ),
        ("patient", {"patience": 5}, [[1.0, 2.0, 3.0]], None),
        (
            "wilcoxon",
            {},
            [[0.1] * 9, [0.5 + 0.01 * i for i in range(9)]],
            "its val_loss up to step 9 is worse than the best trial's, by the Wilcoxon test",
        ),
        ("wilcoxon", {}, [[0.1] * 9, [0.1] * 9], None),
        ("median", {}, [[]], None),
    ],
)
def test_a_trial_is_ended_for_a_reason(
    name: PrunerName, options: Mapping[str, Scalar], reports: list[list[float]], reason: str | None
) -> None:
    assert judged(name, options, reports) == Judgement(prune=reason is not None, reason=reason or "")


def test_what_is_made_large_is_compared_the_other_way() -> None:
    assert not judged("median", {}, [*SEVEN, [0.2, 0.5]], maximize=True).prune
    low = judged("median", {}, [*SEVEN, [0.2, 0.1]], maximize=True)
    assert low.reason == "its best val_loss up to step 2, 0.2, is worse than the median 0.4 of 7 trials"


VALUES = st.lists(st.floats(width=16), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    pruner=st.sampled_from(
        [
            Pruner(name="median", options={"n_startup_trials": 1}),
            Pruner(name="percentile", options={"percentile": 30, "n_startup_trials": 1}),
            Pruner(name="wilcoxon"),
            Pruner(name="patient", options={"patience": 0}),
            Pruner(name="threshold", options={"lower": 0.0}),
        ]
    ),
    reports=st.lists(VALUES, min_size=1, max_size=6),
    maximize=st.booleans(),
)
def test_any_numbers_and_any_order_of_arrival_are_judged_alike(
    pruner: Pruner, reports: list[list[float]], maximize: bool
) -> None:
    judgement = judged(pruner.name, pruner.options, reports, maximize=maximize)

    assert bool(judgement.reason) == judgement.prune


def test_of_equals_the_first_trial_is_the_best_whichever_came_first() -> None:
    kind = Kind(name="random", space=NUMBERS, pruner=Pruner(name="wilcoxon"))
    trials = [trial(0, [9.0, 9.0, 9.0, 1.0]), trial(1, [0.0, 0.0, 0.0, 1.0]), trial(2, [5.0, 5.0, 5.0, 5.0])]
    running = [replace(one, state=TrialState.RUNNING, results=None) for one in trials]
    opening = Played(settings=kind.settings).opening
    adviser = OptunaAdviser(replace(opening, trials=tuple(running)))

    adviser.judge(2, [trials[1]])
    adviser.judge(2, [trials[0]])

    assert adviser._storage.get_best_trial(0).number == 0
    assert adviser.judge(2, []) == OptunaAdviser(replace(opening, trials=(*trials[:2], running[2]))).judge(2, [])


def test_who_has_no_pruner_is_not_judged() -> None:
    adviser = OptunaAdviser(Played(settings=Kind(name="random", space=NUMBERS).settings).opening)

    with pytest.raises(AdviserFailure, match="trial 0 of 0 is to be judged, by the pruner None"):
        adviser.judge(0, [])
