"""The autoscaler with kernels, a queue and reports: what becomes of decisions when they act on what is decided next."""

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.policy.autoscale.simulation import SimulatedVersion

from pliant.core.serving_profile import ServingProfile

PROFILE = ServingProfile()


def alone(seconds: float) -> Callable[[int], float]:
    """Return the time of batches of which every request takes so long."""
    return lambda size: seconds * size


def steps(*parts: tuple[float, float]) -> Callable[[float], float]:
    """Return the rate that lasts until these times."""
    return lambda now: next((rate for until, rate in parts if now < until), 0.0)


@settings(max_examples=8)
@given(
    rate=st.sampled_from([0.5, 3.0, 20.0, 60.0]),
    request_s=st.floats(0.002, 4),
    fixed=st.floats(0, 1),
    start_s=st.floats(0, 20),
    delay_s=st.sampled_from([15.0, 60.0]),
)
@example(rate=20.0, request_s=0.1, fixed=0.0, start_s=2.0, delay_s=60.0)
@example(rate=3.0, request_s=2.0, fixed=1.0, start_s=15.0, delay_s=15.0)
def test_a_constant_load_comes_to_rest(
    rate: float, request_s: float, fixed: float, start_s: float, delay_s: float
) -> None:
    assume(rate * request_s < 20)
    version = SimulatedVersion(
        profile=ServingProfile(release_delay_s=delay_s),
        rate=lambda now: rate,
        batch_s=lambda size: request_s * (fixed + (1 - fixed) * size),
        start_s=start_s,
    ).run(300)

    assert len(version.numbers(since=220)) == 1
    assert version.mean_wait(since=220) < max(0.5, 2.5 * request_s)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_load_as_chance_has_it_comes_to_rest(seed: int) -> None:
    version = SimulatedVersion(profile=PROFILE, rate=lambda now: 20, batch_s=alone(0.1), seed=seed).run(400)

    assert len(version.numbers(since=150)) <= 2
    assert set(version.numbers(since=150)) <= {3, 4, 5}
    assert version.mean_wait(since=150) < 0.2


@pytest.mark.parametrize("rate", [50.0, 200.0])
@pytest.mark.parametrize("at", [20.0, 20.3, 20.6, 20.9])
def test_a_step_is_answered_within_one_schedule_interval(rate: float, at: float) -> None:
    version = SimulatedVersion(profile=PROFILE, rate=steps((at, 5), (99, rate)), batch_s=alone(0.1)).run(at + 1.3)

    before = [demand.num_kernels for when, demand in version.history if when <= at]
    assert version.history[-1][1].num_kernels > before[-1]


def test_a_step_from_nothing_is_answered_at_the_next_decision() -> None:
    version = SimulatedVersion(profile=PROFILE, rate=steps((10.5, 0), (99, 4))).run(11.2)

    assert version.numbers() == [0, 1]


@pytest.mark.parametrize("start_s", [0.5, 5.0, 30.0])
@pytest.mark.parametrize("request_s", [0.01, 0.1])
def test_kernels_that_start_slowly_do_not_ask_for_more_than_the_load_needs(start_s: float, request_s: float) -> None:
    rate = 60
    version = SimulatedVersion(profile=PROFILE, rate=lambda now: rate, batch_s=alone(request_s), start_s=start_s).run(
        320 if start_s > 5 else 120
    )

    # Before anything is measured, a kernel of 16 is presumed to keep 11 requests at once within the objective.
    presumed = math.ceil(rate * PROFILE.latency_objective_s / (0.7 * 16))
    needed = math.ceil(rate * request_s / 0.7)
    assert version.most_kernels <= max(presumed, needed + 1)
    assert version.num_requests < 20


def test_clients_that_wait_for_their_answers_get_them_in_time() -> None:
    version = SimulatedVersion(profile=PROFILE, clients=lambda now: 60, batch_s=alone(0.1)).run(120)

    assert len(version.numbers(since=80)) == 1
    assert version.mean_wait(since=80) <= PROFILE.latency_objective_s
    assert version.most_kernels <= 30


@settings(max_examples=4)
@given(half_s=st.integers(2, 25), start_s=st.floats(0, 5))
def test_a_load_that_swings_within_the_release_delay_does_not_move_the_number(half_s: int, start_s: float) -> None:
    version = SimulatedVersion(
        profile=PROFILE,
        rate=lambda now: 60 if now % (2 * half_s) < half_s else 2,
        batch_s=alone(0.05),
        start_s=start_s,
    ).run(260)

    assert len(version.numbers(since=160)) == 1


def test_a_load_that_swings_more_slowly_is_learned() -> None:
    version = SimulatedVersion(
        profile=ServingProfile(release_delay_s=6), rate=lambda now: 60 if now % 30 < 15 else 2, batch_s=alone(0.05)
    ).run(300)

    early, late = version.numbers(), version.numbers(since=200)
    assert len(early) > 3
    assert len(late) == 1


@pytest.mark.parametrize("delay_s", [10.0, 60.0])
def test_when_the_load_ends_all_is_given_back_after_the_release_delay_and_not_before(delay_s: float) -> None:
    profile = ServingProfile(release_delay_s=delay_s, kernel_min=1)
    version = SimulatedVersion(profile=profile, rate=steps((60, 60)), batch_s=alone(0.1)).run(60)
    there = len(version.kernels)

    version.run(delay_s)
    before = [demand.num_kernels for at, demand in version.history if 60 < at < 60 + delay_s]
    version.run(6)

    assert there > 4
    assert set(before) == {there}
    assert version.history[-1][1].num_kernels == 1


def test_a_gateway_that_is_gone_for_a_while_changes_nothing() -> None:
    version = SimulatedVersion(profile=PROFILE, rate=lambda now: 40, batch_s=alone(0.1)).run(100)
    there = len(version.kernels)

    version.reports = False
    version.run(50)
    version.reports = True
    version.run(50)

    assert version.numbers(since=100) == [there]


def test_a_pool_that_is_full_is_asked_for_what_is_missing_and_no_more() -> None:
    version = SimulatedVersion(profile=PROFILE, rate=steps((60, 40)), batch_s=alone(0.1), pool=2).run(60)

    assert version.history[-1][1].num_kernels == 5
    version.pool = 100
    version.run(1)
    assert len(version.kernels) >= 2


def test_a_minimum_above_the_load_is_held() -> None:
    profile = ServingProfile(kernel_min=4, release_delay_s=5)
    version = SimulatedVersion(profile=profile, rate=steps((30, 10)), batch_s=alone(0.05)).run(60)

    assert version.numbers() == [4]


def test_the_example_of_the_docstring_is_what_happens() -> None:
    rate = steps((5, 5), (60, 100), (300, 5))
    version = SimulatedVersion(profile=PROFILE, rate=rate, batch_s=alone(0.1), start_s=2).run(368)

    numbers = {round(at): demand.num_kernels for at, demand in version.history}
    assert [version.numbers()[0], version.numbers()[1]] == [0, 1]
    assert numbers[20] == numbers[60] == numbers[118] == 15
    assert numbers[130] == numbers[300] == numbers[358] == 1
    assert numbers[363] == 0
