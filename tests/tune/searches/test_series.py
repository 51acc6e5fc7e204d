"""Series stay bounded, and keep what decisions need."""

from collections.abc import Iterator
from math import nan

from pliant.policy.tuning.intake import SeriesPoint
from pliant.tune.searches.series import MAX_POINTS, thin


def points(number: int, steps_per_epoch: int = 1000) -> Iterator[SeriesPoint]:
    """Yield a series whose lowest value is in the middle, and whose highest is soon after."""
    for step in range(number):
        value = {number // 2: -5.0, number // 2 + 7: 9.0, number // 2 + 9: nan}.get(step, 1.0)
        yield SeriesPoint(epoch=step // steps_per_epoch, step=step, value=value)


def test_few_points_stay_as_they_are() -> None:
    assert thin(points(500)) == [*points(500)]


def test_of_very_many_the_extremes_the_last_and_the_first_of_each_epoch_stay() -> None:
    whole = [*points(150_000)]

    kept = thin(iter(whole))

    assert len(kept) <= MAX_POINTS
    assert kept == sorted(kept, key=lambda one: one.step)
    values = [one.value for one in kept if one.value == one.value]
    assert (min(values), max(values), kept[-1]) == (-5.0, 9.0, whole[-1])
    firsts = {one.epoch: one.step for one in reversed(kept)}
    assert firsts == {epoch: epoch * 1000 for epoch in range(150)}


def test_epochs_without_end_are_bounded_too() -> None:
    assert len(thin(points(100_000, steps_per_epoch=1))) <= MAX_POINTS
