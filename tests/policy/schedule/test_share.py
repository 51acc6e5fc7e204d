"""Shares against the oracle that tries every allocation, and the laws of sharing."""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.schedule import oracle
from tests.policy.schedule.world import job

from pliant.core.workload import Workload
from pliant.policy.schedule.share import Demand, fill, serve_in_order


def demand(view: Workload) -> Demand:
    return Demand(view.priority, view.slots_per_task, view.min_tasks, view.max_tasks)


def test_the_example_of_share() -> None:
    a, b = Demand(1, 1, 1, 8), Demand(2, 1, 1, 8)

    shares = fill([a, b], 8)
    assert [Fraction(slots, shares.denominator) for slots in (shares.level, *shares.deserved)] == [
        Fraction(8, 3), Fraction(8, 3), Fraction(16, 3),
    ]  # fmt: skip
    assert shares.tasks == [3, 5]

    shares = fill([a._replace(low=4), b], 8)
    assert [Fraction(slots, shares.denominator) for slots in (shares.level, *shares.deserved)] == [2, 4, 4]


def small_cases() -> Iterator[tuple[list[Workload], int]]:
    """Yield every mix of two or three jobs out of a few kinds, on 3 to 8 slots that cover the minimums."""
    kinds = [(1, 1, 8), (1, 2, 3), (2, 1, 8), (2, 1, 2), (3, 1, 5), (3, 3, 3)]
    for num_jobs in (2, 3):
        for chosen in product(kinds, repeat=num_jobs):
            views = [job("j", n, priority=w, bounds=(low, high)) for n, (w, low, high) in enumerate(chosen)]
            for num_slots in range(3, 9):
                if sum(view.min_tasks for view in views) <= num_slots:
                    yield views, num_slots


def test_whole_shares_are_the_nearest_to_the_ideal_of_all_allocations() -> None:
    num_cases = 0
    for views, num_slots in small_cases():
        ideal = oracle.ideals(views, num_slots)
        shares = fill([demand(view) for view in views], num_slots)
        assert tuple(shares.tasks) == oracle.nearest_whole(views, ideal, num_slots), (views, num_slots)
        num_cases += 1
    assert num_cases > 1000


def test_shares_of_several_slots_per_task_are_filled_in_where_they_mend_most() -> None:
    random_ = random.Random(7)
    for _ in range(2000):
        views = []
        for n in range(random_.randint(1, 5)):
            low = random_.randint(1, 2)
            bounds = (low, low + random_.randint(0, 6))
            views.append(job("j", n, priority=random_.randint(1, 9), bounds=bounds, size=random_.randint(1, 4)))
        least = sum(view.min_tasks * view.slots_per_task for view in views)
        num_slots = least + random_.randint(0, 16)
        shares = fill([demand(view) for view in views], num_slots)
        ideal = oracle.ideals(views, num_slots)
        assert [n / shares.denominator for n in shares.deserved] == [float(slots) for slots in ideal]
        assert list(shares.tasks) == oracle.fill_in(views, ideal, num_slots), (views, num_slots)


DEMANDS = st.lists(
    st.builds(
        lambda weight, size, low, more: Demand(weight, size, low, low + more),
        st.integers(1, 10_000),
        st.sampled_from([1, 1, 2, 4, 8]),
        st.integers(0, 4),
        st.integers(0, 40),
    ),
    max_size=40,
)


@settings(max_examples=150)
@given(demands=DEMANDS, more=st.integers(0, 300), fair=st.booleans())
def test_shares_keep_their_bounds_and_leave_no_slot_that_somebody_could_use(
    demands: list[Demand], more: int, fair: bool
) -> None:
    total = sum(d.low * d.size for d in demands) + more

    shares = (fill if fair else serve_in_order)(demands, total)

    left = total - sum(n * d.size for n, d in zip(shares.tasks, demands, strict=True))
    assert left >= 0
    for n, d in zip(shares.tasks, demands, strict=True):
        assert d.low <= n <= d.high
        assert n == d.high or d.size > left


@settings(max_examples=150)
@given(demands=DEMANDS, more=st.integers(0, 300))
def test_nobody_gets_less_than_the_whole_tasks_in_what_it_deserves(demands: list[Demand], more: int) -> None:
    total = sum(d.low * d.size for d in demands) + more

    shares = fill(demands, total)

    for n, d, deserved in zip(shares.tasks, demands, shares.deserved, strict=True):
        assert n >= deserved // (d.size * shares.denominator)
    assert sum(shares.deserved) == min(total, sum(d.high * d.size for d in demands)) * shares.denominator


def test_serving_in_order_gives_to_the_first_up_to_its_maximum_before_the_next() -> None:
    assert serve_in_order([Demand(1, 1, 1, 5), Demand(9, 1, 1, 5), Demand(9, 1, 1, 5)], 8).tasks == [5, 2, 1]
    assert serve_in_order([Demand(1, 4, 1, 2), Demand(1, 3, 1, 2), Demand(1, 1, 1, 9)], 11).tasks == [1, 2, 1]
    assert serve_in_order([Demand(1, 1, 1, 5), Demand(9, 1, 2, 5)], 2).tasks == [1, 2], "minimums are granted"
