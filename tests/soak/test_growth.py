"""A leak is told from noise, and from what a process takes once."""

import math
import random

from tests.soak.growth import LONG_SPAN_S, MAX_RISE, MIN_SPAN_S, WARM_UP_S, Sample, find_rise

MB = 1e6


def samples(
    rise_per_hour: float, *, seconds: float = WARM_UP_S + 300.0, steps: tuple[float, ...] = (), seed: int = 1
) -> list[Sample]:
    """Return what is seen of 80 MB that rise so, with noise, and by 5 MB at each of these times."""
    dice = random.Random(seed)
    return [
        (at, 80 * MB + rise_per_hour * at / 3600 + 5 * MB * sum(at > step for step in steps) + dice.gauss(0, 0.05 * MB))
        for at in map(float, range(0, int(seconds), 2))
    ]


def test_a_leak_is_seen_whatever_the_noise() -> None:
    for seed in range(20):
        rise = find_rise(samples(40 * MB, seed=seed))
        assert rise is not None
        assert rise.steadily > MAX_RISE
        assert rise.is_leak


def test_noise_and_what_is_taken_once_or_twice_are_no_leak() -> None:
    for seed in range(20):
        for after in ((), (150.0,), (10.0, 120.0, 220.0)):
            steps = tuple(WARM_UP_S + at for at in after)
            rise = find_rise(samples(0.0, steps=steps, seed=seed))
            assert rise is not None
            assert rise.steadily < MAX_RISE / 2
            assert not rise.is_leak


def test_what_a_process_takes_more_and_more_slowly_is_no_leak() -> None:
    seen = [(float(at), 134 * MB + 7 * MB * (1 - math.exp(-at / 300))) for at in range(0, 1100, 2)]
    rise = find_rise(seen)
    assert rise is not None
    assert 0 < rise.steadily < MAX_RISE / 2
    assert not rise.is_leak


def test_a_slow_leak_that_falls_for_a_while_is_seen_in_a_long_time() -> None:
    seconds = WARM_UP_S + LONG_SPAN_S
    fell_at = WARM_UP_S + LONG_SPAN_S / 2
    for seed in range(20):
        seen = [(at, v - 3 * MB * (at > fell_at)) for at, v in samples(30 * MB, seconds=seconds + 10, seed=seed)]
        rise = find_rise(seen)
        assert rise is not None
        assert rise.steadily < 0
        assert rise.is_leak


def test_what_is_taken_once_or_twice_in_a_long_time_is_no_leak() -> None:
    for seed in range(20):
        for after in ((), (500.0,), (150.0, 900.0)):
            steps = tuple(WARM_UP_S + at for at in after)
            rise = find_rise(samples(0.0, seconds=WARM_UP_S + LONG_SPAN_S + 10, steps=steps, seed=seed))
            assert rise is not None
            assert rise.mostly is not None
            assert not rise.is_leak


def test_a_short_look_says_nothing() -> None:
    assert find_rise([]) is None
    assert find_rise(samples(40 * MB, seconds=WARM_UP_S + MIN_SPAN_S)) is None
