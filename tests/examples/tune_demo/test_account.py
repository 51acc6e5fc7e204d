"""The account of both searches: what is told is what was seen, and every check can fail."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.examples.tune_demo.conftest import GOOD

from examples.demo.recording import Seen
from examples.tune_demo.account import SearchAccount, TuneAccount, account_of, checks_of, describe_handovers, steps_of
from examples.tune_demo.scenario import TuneOutcome
from pliant.core.search import TrialState

COMPLETED = "completed, and no trial failed"
SAME = "chose the same trials, which came to the same values and decisions, bit for bit"
BEST = "found the same best trial, with the same parameters, bit for bit"
REPEATED = "is, repeated alone on one slot, the same, bit for bit"
UNDISTURBED = "came to the same beside both searches as undisturbed on one slot, bit for bit"
HANDED_OVER = "left slots to others, who held them sooner than a resize takes"


def broken(account: TuneAccount) -> list[str]:
    return [check.claim for check in checks_of(account) if not check.holds]


def with_trial(one: SearchAccount, **fields: object) -> SearchAccount:
    changed = replace(one.trials[1], **fields)  # type: ignore[arg-type]
    return replace(one, trials=(one.trials[0], changed))


@pytest.fixture
def account(seen: Seen, outcome: TuneOutcome) -> TuneAccount:
    return account_of(seen, outcome)


def test_the_account_tells_what_both_searches_took(account: TuneAccount) -> None:
    one = account.elastic

    assert (one.took_s, one.trials_per_min, account.speedup) == pytest.approx((18.0, 60 / 9, 1.0))
    assert one.slots == pytest.approx((18.0 + 17.9 + 11.4 + 5.9) / 18.0)
    assert one.step_s == pytest.approx(0.1)
    assert one.starts_s == pytest.approx((0.9, 2.0, 2.2))
    assert one.digests == {0: "b" * 64}


def test_a_step_is_timed_by_epochs_and_from_where_a_training_went_on(seen: Seen) -> None:
    assert steps_of(seen, [GOOD]) == pytest.approx([0.1, 0.1])


def test_what_went_well_passes_every_check(account: TuneAccount) -> None:
    assert broken(account) == []


@pytest.mark.parametrize(
    ("change", "claims"),
    [
        (lambda one: replace(one, state="failed"), [COMPLETED]),
        (lambda one: replace(one, trials=()), [COMPLETED, SAME]),
        (lambda one: with_trial(one, state=TrialState.FAILED), [COMPLETED, SAME]),
        (lambda one: with_trial(one, results=(0.7500000000000001,)), [SAME]),
        (lambda one: with_trial(one, reports=((1, 0.5),)), [SAME]),
        (lambda one: with_trial(one, values={"lr": 0.03}), [SAME]),
        (lambda one: replace(one, best=1), [BEST]),
        (lambda one: replace(one, best=None), [BEST]),
        (lambda one: replace(one, digests={0: "c" * 64}), [BEST]),
    ],
)
def test_one_difference_between_the_searches_is_found(
    account: TuneAccount, change: Callable[[SearchAccount], SearchAccount], claims: list[str]
) -> None:
    assert broken(replace(account, rigid=change(account.rigid))) == claims


def test_other_results_of_what_was_repeated_are_found(account: TuneAccount) -> None:
    assert broken(replace(account, best_alone="c" * 64)) == [REPEATED]
    assert broken(replace(account, training_alone="c" * 64)) == [UNDISTURBED]
    assert broken(replace(account, training=("a" * 64, ""))) == [UNDISTURBED]


def test_slots_that_stay_free_for_longer_than_a_start_takes_are_found(account: TuneAccount) -> None:
    one = account.elastic
    slow = replace(one.handovers[0], took_s=2.3)

    assert broken(replace(account, elastic=replace(one, handovers=(slow,)))) == [HANDED_OVER]
    assert broken(replace(account, elastic=replace(one, handovers=()))) == [HANDED_OVER]
    assert describe_handovers(one) == "once, free for 400 ms (4.0 steps) by the median, 400 ms at most"
