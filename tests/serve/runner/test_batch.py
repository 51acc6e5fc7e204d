"""How large a batch may be: what was learned from batches decides, within the endpoint's limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.serve.runner.batch import BatchCap, LatencyFit


def learned(cost: tuple[float, float], sizes: list[int], objective_s: float = 0.4) -> BatchCap:
    """Return a cap that has seen batches of these sizes, after the first, of a model that costs a + b·n."""
    cap = BatchCap()
    for num in [1, *sizes]:
        cap.observe(num, cost[0] + cost[1] * num, objective_s=objective_s)
    return cap


def test_before_anything_is_known_a_batch_may_be_full() -> None:
    assert BatchCap().limit(32, 0.001) == 32


def test_cap_is_what_fits_into_half_of_the_objective() -> None:
    cap = learned((0.040, 0.020), [1, 2, 4, 6, 3, 5, 7, 2, 4, 8] * 4)

    assert cap.limit(64, 0.4) in (7, 8)  # 40 ms + 8 · 20 ms = 200 ms
    assert cap.limit(4, 0.4) == 4


def test_first_batch_does_not_count() -> None:
    cap = BatchCap()
    cap.observe(8, 30.0, objective_s=0.4)

    assert cap.limit(8, 0.4) == 8


def test_one_slow_batch_lowers_the_cap_at_once() -> None:
    assert learned((0.0, 1.0), [8]).limit(8, 0.4) == 1


def test_cap_recovers_from_a_batch_that_was_slow_by_chance() -> None:
    cap = learned((0.0, 0.010), [4, 4, 4])
    cap.observe(8, 9.0, objective_s=0.3)
    after = cap.limit(8, 0.3)
    for _ in range(40):
        num = cap.limit(8, 0.3)
        cap.observe(num, 0.010 * num, objective_s=0.3, was_cut=True)

    assert after < 8
    assert cap.limit(8, 0.3) == 8


def test_model_that_has_become_slow_is_believed_after_a_few_batches() -> None:
    cap = learned((0.0, 0.001), [8, 4, 8, 4])
    for _ in range(12):
        num = cap.limit(8, 0.4)
        cap.observe(num, 1.0 * num, objective_s=0.4)

    assert cap.limit(8, 0.4) == 1


def test_model_that_is_slow_alone_and_no_slower_in_batches_gets_large_ones() -> None:
    cap = learned((0.5, 0.001), [1, 8, 4, 2, 6, 8, 8] * 5)

    assert cap.limit(32, 0.4) == 32


def test_size_that_was_never_tried_is_tried_after_a_while() -> None:
    cap = learned((0.5, 0.001), [1] * 40)
    stuck = cap.limit(32, 0.4)
    for _ in range(400):
        num = cap.limit(32, 0.4)
        cap.observe(num, 0.5 + 0.001 * num, objective_s=0.4, was_cut=True)

    assert stuck == 1
    assert cap.limit(32, 0.4) > 4


def test_misses_lower_the_cap_below_what_is_predicted() -> None:
    predicted = learned((0.0, 0.010), [4, 8, 12, 16] * 5)
    before = predicted.limit(64, 0.4)
    for _ in range(10):
        predicted.observe(before, 0.9, objective_s=0.4)

    assert predicted.limit(64, 0.4) < before / 2


@given(
    st.lists(st.tuples(st.integers(1, 4096), st.floats(0, 1e6)), max_size=60),
    st.integers(1, 4096),
    st.floats(1e-6, 86_400),
    st.booleans(),
)
def test_cap_is_within_its_limits_whatever_happens(
    seen: list[tuple[int, float]], batch_size: int, objective_s: float, was_cut: bool
) -> None:
    cap = BatchCap()
    for num, seconds in seen:
        cap.observe(num, seconds, objective_s=objective_s, was_cut=was_cut)
        assert 1 <= cap.limit(batch_size, objective_s) <= batch_size


@given(st.floats(0, 10), st.floats(1e-3, 10), st.lists(st.integers(1, 64), min_size=30, max_size=60))
def test_fit_lies_between_a_line_through_the_batches_and_cost_in_proportion(
    fixed: float, slope: float, sizes: list[int]
) -> None:
    fit = LatencyFit()
    for num in sizes:
        fit.add(num, fixed + slope * num)
    a, b = fit.line()

    alike = fit.mean_s / fit.mean_n
    assert slope - 1e-6 <= b <= alike + 1e-6
    assert a + b * fit.mean_n == pytest.approx(fit.mean_s)
