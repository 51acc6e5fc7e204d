"""Reports are added up over the last seconds, and no more of them are kept than fit."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.policy.autoscale.window import MAX_SAMPLES, WINDOW_S, LoadSample, append, total


def sample(until: float, load: float, arrived: float = 0.0, seconds: float = 0.25) -> LoadSample:
    return LoadSample(until=until, seconds=seconds, load_s=load * seconds, arrived=arrived)


def test_the_mean_is_weighted_by_the_time_that_each_sample_covers() -> None:
    samples = append(append((), sample(1.0, load=10, seconds=0.25)), sample(1.75, load=2, seconds=0.75))

    assert total(samples, 1.75, 6).mean_load == 4.0


def test_a_window_ends_with_what_is_older() -> None:
    samples: tuple[LoadSample, ...] = ()
    for number in range(1, 41):
        samples = append(samples, sample(number / 4, load=100 if number <= 36 else 0, arrived=1))

    assert total(samples, 10.0, 1).mean_load == 0
    assert total(samples, 10.0, 1).rate == 4
    assert total(samples, 10.0, WINDOW_S).seconds == WINDOW_S


def test_what_covers_less_than_a_second_is_no_high_rate() -> None:
    assert total([sample(1.0, load=3, arrived=3, seconds=0.01)], 1.0, 6).rate == 3


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(-1, 10), st.floats(0.01, 6)), max_size=200))
def test_never_more_samples_are_kept_than_fit(steps: list[tuple[float, float]]) -> None:
    samples: tuple[LoadSample, ...] = ()
    now = 0.0
    for step, seconds in steps:
        now += step
        samples = append(samples, sample(now, load=1, seconds=seconds))

        assert len(samples) <= MAX_SAMPLES
        assert all(now - WINDOW_S < kept.until <= now for kept in samples)
