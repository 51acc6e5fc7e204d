"""The demo's checks can fail: every way in which the books could be wrong is found."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.demo.account import Account, Expected, Resize, checks_of, passes_through, resizes_of
from examples.demo.audit import Ledger
from pliant.core.event import Event, EventKind

EACH_ONCE = "used each of the 10 samples exactly once in every epoch"
EXPECTED = Expected(num_epochs=2, num_samples=10, steps_per_epoch=3, max_redone_steps=1, sizes=(1, 8, 4, 3))
BALANCED = Ledger(num_steps=6, redone=(), lost_commits=(), samples_per_epoch={0: 10, 1: 10}, faults=())


def resize(from_size: int, to_size: int, redone_steps: int = 0) -> Resize:
    return Resize(at=0.0, from_size=from_size, to_size=to_size, step=0, pause_ms=12.0, redone_steps=redone_steps)


GOOD = Account(
    label="A",
    job_id="job-1",
    state="completed",
    ledger=BALANCED,
    resizes=(resize(0, 1), resize(1, 8), resize(8, 4), resize(4, 3)),
    accuracy=0.98,
)


def broken(account: Account) -> list[str]:
    return [check.claim for check in checks_of(account, EXPECTED) if not check.holds]


def test_a_job_that_went_as_it_should_passes_every_check() -> None:
    assert broken(GOOD) == []


@pytest.mark.parametrize(
    ("account", "claim"),
    [
        (replace(GOOD, state="failed"), "ended as completed"),
        (replace(GOOD, ledger=replace(BALANCED, num_steps=5)), "did 2 epochs of 3 optimizer steps"),
        (
            replace(GOOD, ledger=replace(BALANCED, faults=("x",))),
            "used each of the 10 samples exactly once in every epoch",
        ),
        (replace(GOOD, ledger=replace(BALANCED, samples_per_epoch={0: 10})), EACH_ONCE),
        (replace(GOOD, resizes=(*GOOD.resizes, resize(3, 3, redone_steps=2))), "did at most 1 step again"),
        (replace(GOOD, resizes=GOOD.resizes[:-1]), "went through the sizes 1 → 8 → 4 → 3"),
        (replace(GOOD, accuracy=0.9699), "reached a test accuracy of 0.97"),
        (replace(GOOD, accuracy=float("nan")), "reached a test accuracy of 0.97"),
    ],
)
def test_each_check_can_fail(account: Account, claim: str) -> None:
    assert broken(account) == [claim]


@pytest.mark.parametrize(
    ("sizes", "stops", "passes"),
    [
        ([1, 8, 4, 3], [1, 8, 4, 3], True),
        ([1, 2, 6, 8, 4, 3], [1, 8, 4, 3], True),
        ([1, 8, 8, 4, 3, 3], [1, 8, 4, 3], True),
        ([2, 4, 5, 4, 5, 8], [4, 5, 4, 5, 8], True),
        ([5, 8, 4, 3], [1, 8, 4, 3], False),
        ([1, 8, 3], [1, 8, 4, 3], False),
        ([1, 6, 5, 8, 4, 3], [1, 8, 4, 3], False),
        ([1, 8, 4, 3, 4], [1, 8, 4, 3], False),
        ([1, 8, 4], [1, 8, 4, 3], False),
        ([], [1], False),
    ],
)
def test_a_job_passes_through_its_stops_only_on_straight_ways(sizes: list[int], stops: list[int], passes: bool) -> None:
    assert passes_through(sizes, stops) is passes


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6))
def test_the_stops_themselves_are_a_straight_way(stops: list[int]) -> None:
    apart = [stop for i, stop in enumerate(stops) if i == 0 or stop != stops[i - 1]]

    assert passes_through(apart, apart)


def test_resizes_are_read_from_the_switch_events() -> None:
    data = {"generation": 2, "size": 4, "from_size": 8, "step": 40, "pause_ms": 31.5, "redone_steps": 1}
    event = Event(at=7.0, kind=EventKind.GENERATION_SWITCHED, message="", data=data)

    assert resizes_of([event]) == (Resize(at=7.0, from_size=8, to_size=4, step=40, pause_ms=31.5, redone_steps=1),)
