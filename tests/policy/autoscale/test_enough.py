"""How many kernels a rate needs."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.core.serving_profile import MAX_KERNELS
from pliant.policy.autoscale.enough import kernels_for, wait_s
from pliant.policy.autoscale.speed import KernelPace

TENTH = KernelPace(batch=1.0, batch_s=0.1)


def test_each_kernel_is_to_be_busy_for_most_of_the_time() -> None:
    assert kernels_for(100, TENTH, 0.5) == 15


def test_few_kernels_may_be_less_busy_than_many() -> None:
    assert kernels_for(5, TENTH, 0.5) == 1
    assert kernels_for(5, TENTH, 0.2) == 2


def test_no_load_needs_one_and_no_load_is_too_much_for_all() -> None:
    assert kernels_for(0, TENTH, 0.5) == 1
    assert kernels_for(1e12, TENTH, 0.5) == MAX_KERNELS


@given(st.floats(0, 500), st.floats(0.001, 20), st.floats(0.01, 60))
def test_the_kernels_keep_up_and_one_less_would_not_do(rate: float, batch_s: float, objective_s: float) -> None:
    pace = KernelPace(batch=1.0, batch_s=batch_s)

    num = kernels_for(rate, pace, objective_s)

    assert num == MAX_KERNELS or rate * batch_s < num
    if 1 < num < MAX_KERNELS:
        patience_s = max(0.7 * objective_s - batch_s, batch_s / 2)
        assert rate * batch_s > 0.7 * (num - 1) * 0.999 or wait_s(rate, pace, num - 1) > patience_s


@given(st.floats(0, 500), st.floats(0, 100), st.floats(0.001, 1))
def test_more_requests_never_need_fewer_kernels(rate: float, more: float, batch_s: float) -> None:
    pace = KernelPace(batch=1.0, batch_s=batch_s)

    assert kernels_for(rate + more, pace, 0.5) >= kernels_for(rate, pace, 0.5)
