"""V of a job that asks for none: laws that hold whatever a part is measured to cost, and what they come to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import MAX_VIRTUAL_WORKERS
from pliant.core.virtual_workers import CHEAP_PART, GRADIENT, choose, slot_time

FEW = st.integers(1, 12)
BATCHES = st.integers(1, 40 * CHEAP_PART)


@given(max_tasks=st.integers(1, 64), batch_size=BATCHES)
def test_every_task_has_a_part_and_every_part_a_sample(max_tasks: int, batch_size: int) -> None:
    assert min(max_tasks, batch_size) <= choose(max_tasks, batch_size) <= min(batch_size, MAX_VIRTUAL_WORKERS)


@given(max_tasks=st.integers(1, 64), batch_size=BATCHES)
def test_adding_a_part_that_nobody_needs_costs_less_than_three_percent(max_tasks: int, batch_size: int) -> None:
    parts = choose(max_tasks, batch_size)

    if parts > max_tasks:
        assert 3 * (batch_size // parts) >= 100 * GRADIENT


@given(max_tasks=FEW, batch_size=BATCHES)
def test_no_other_number_within_these_bounds_takes_less_time(max_tasks: int, batch_size: int) -> None:
    chosen, sizes = choose(max_tasks, batch_size), range(1, min(max_tasks, batch_size) + 1)
    best = slot_time(chosen, sizes, batch_size)

    for parts in range(len(sizes), min(batch_size // CHEAP_PART, 12 * len(sizes)) + 1):
        assert (slot_time(parts, sizes, batch_size), parts) >= (best, chosen)


@pytest.mark.parametrize("batch_size", [1, 8, 64, 1024, 1 << 20])
def test_a_job_of_one_task_is_a_plain_loop(batch_size: int) -> None:
    assert choose(1, batch_size) == 1


@pytest.mark.parametrize(("max_tasks", "batch_size", "parts"), [(4, 64, 4), (8, 64, 8), (8, 4, 4), (4, 0, 1)])
def test_small_batches_have_a_part_for_each_task(max_tasks: int, batch_size: int, parts: int) -> None:
    assert choose(max_tasks, batch_size) == parts


def test_a_large_batch_has_parts_that_divide_over_more_sizes() -> None:
    parts = choose(8, 1000 * CHEAP_PART)

    assert [size for size in range(1, 9) if parts % size == 0] == [1, 2, 3, 4, 6, 8]


def test_the_largest_jobs_are_planned_at_once() -> None:
    assert 1 << 10 <= choose(1 << 10, 1 << 31) <= MAX_VIRTUAL_WORKERS
    assert choose(MAX_VIRTUAL_WORKERS, 1 << 31) == MAX_VIRTUAL_WORKERS
