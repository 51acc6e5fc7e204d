"""What a kernel can do follows from the time of its batches, by their size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.core.serving_profile import ServingProfile
from pliant.policy.autoscale.speed import KernelPace, KernelSpeed

PROFILE = ServingProfile(latency_objective_s=0.5, batch_size=8)


def measured(*batches: tuple[int, float], times: int = 20) -> KernelSpeed:
    """Return the speed after batches of these sizes that took these seconds."""
    speed = KernelSpeed()
    for size, batch_s in batches:
        for _ in range(times):
            speed = speed.measure(requests=size, batches=1, busy_s=batch_s)
    return speed


def pace(speed: KernelSpeed, profile: ServingProfile = PROFILE) -> KernelPace:
    found = speed.pace(profile)
    assert found is not None
    return found


def test_nothing_is_known_before_a_batch_is_done() -> None:
    assert KernelSpeed().measure(requests=0, batches=0, busy_s=3.0).pace(PROFILE) is None


def test_the_best_size_within_the_objective_counts() -> None:
    found = pace(measured((1, 0.1), (4, 0.12), (8, 0.6)))

    assert found.batch == pytest.approx(4)
    assert found.per_second == pytest.approx(4 / 0.12)


def test_what_was_seen_of_large_batches_is_known_when_only_single_requests_come() -> None:
    speed = measured((8, 0.1))

    for _ in range(100):
        speed = speed.measure(requests=1, batches=1, busy_s=0.1)

    assert pace(speed).per_second == pytest.approx(80, rel=0.1)


def test_a_model_that_is_slower_than_the_objective_does_what_it_can() -> None:
    assert pace(measured((1, 2.0), (8, 16.0))).per_second == pytest.approx(0.5)
    assert pace(measured((1, 2.0), (8, 2.1))).per_second == pytest.approx(8 / 2.1)


def test_small_batches_are_presumed_to_be_quick_until_they_are_seen() -> None:
    assert pace(measured((8, 4.0))) == KernelPace(batch=1.0, batch_s=pytest.approx(0.5))  # type: ignore[arg-type]


def test_a_kernel_that_becomes_slower_is_seen_to() -> None:
    speed = measured((1, 0.01), times=3000)

    for _ in range(1000):
        speed = speed.measure(requests=1, batches=1, busy_s=0.1)

    assert pace(speed).per_second < 20


def test_a_batch_of_the_largest_size_counts() -> None:
    large = ServingProfile(batch_size=4096, latency_objective_s=10)

    assert pace(measured((4096, 1.0)), large).per_second == pytest.approx(4096)


@settings(max_examples=40)
@given(st.integers(1, 8), st.floats(0.001, 30))
def test_one_size_alone_gives_its_own_rate(size: int, batch_s: float) -> None:
    assert pace(measured((size, batch_s), times=3)).per_second == pytest.approx(size / batch_s)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 5000), st.floats(0, 100), st.floats(0, 100)), max_size=50))
def test_any_measurement_gives_a_pace_or_none(steps: list[tuple[float, float, float]]) -> None:
    speed = KernelSpeed()
    for requests, batches, busy_s in steps:
        speed = speed.measure(requests=requests, batches=batches, busy_s=busy_s)

    found = speed.pace(PROFILE)

    assert found is None or (found.per_second > 0 and 1 <= found.batch <= PROFILE.batch_size)
    assert len(speed.classes) == len(KernelSpeed().classes)
