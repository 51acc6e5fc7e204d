"""Rungs, and the sizes of brackets."""

import pytest
from tests.policy.tuning.stage import settings_of

from pliant.core.search import Halving, Sampler
from pliant.policy.tuning.rungs import rungs_of, size_of


def test_rungs_are_below_the_end_by_powers_of_the_factor() -> None:
    assert rungs_of(settings_of(Halving(min=1, max=27, factor=3)), 0) == (1, 3, 9)
    assert rungs_of(settings_of(Halving(min=2, max=9, factor=2)), 0) == (2, 4, 8)
    assert rungs_of(settings_of(None), 0) == ()


def test_hyperband_begins_later_with_fewer_trials() -> None:
    """The numbers of the paper for R = 81 and η = 3: 81, 34, 15, 8 and 5 trials that begin with 1, 3, 9, 27, 81."""
    settings = settings_of(Halving(min=1, max=81, factor=3, brackets=5), max_trials=1000)

    assert [rungs_of(settings, bracket)[:1] for bracket in range(6)] == [(1,), (3,), (9,), (27,), (), (1,)]
    assert [size_of(settings, bracket) for bracket in range(6)] == [81, 34, 15, 8, 5, 81]


@pytest.mark.parametrize(
    ("sampler", "size", "begin"),
    [("random", None, 40), ("tpe", None, 27), ("grid", None, 40), ("random", 12, 12), ("tpe", 12, 12)],
)
def test_all_begin_together_unless_the_sampler_learns_from_results(sampler: str, size: int | None, begin: int) -> None:
    halving = Halving(min=1, max=27, factor=3, size=size)
    settings = settings_of(halving, max_trials=40, sampler=Sampler(name=sampler))

    assert size_of(settings, 0) == begin
