"""How V divides: as the trainings themselves cut and sum, and the advice is as good as it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.policy.elastic.virtual_workers import GOOD, advise, divide, worst
from pliant.train.data.sharding import cut
from pliant.train.sum import tree


@given(virtual_workers=st.integers(1, 200), num_tasks=st.integers(1, 64))
def test_parts_and_partial_sums_are_those_of_a_training(virtual_workers: int, num_tasks: int) -> None:
    if num_tasks > virtual_workers:
        with pytest.raises(ValueError, match="cannot be divided"):
            divide(virtual_workers, num_tasks)
        return
    division = divide(virtual_workers, num_tasks)

    ranges = [cut(range(virtual_workers), num_tasks, rank) for rank in range(num_tasks)]
    assert division.parts == tuple(map(len, ranges))
    assert division.partials == tree.global_sum(virtual_workers, num_tasks).num_partials
    assert division.efficiency == virtual_workers / (num_tasks * max(division.parts))


@given(virtual_workers=st.integers(1, 64), num_tasks=st.integers(1, 16), batch_size=st.integers(1, 300))
def test_with_a_batch_size_work_is_counted_in_samples(virtual_workers: int, num_tasks: int, batch_size: int) -> None:
    num_parts = min(virtual_workers, batch_size)
    if num_tasks > num_parts:
        return
    samples = [len(cut(range(batch_size), num_parts, part)) for part in range(num_parts)]
    work = [sum(samples[part] for part in cut(range(num_parts), num_tasks, rank)) for rank in range(num_tasks)]

    assert divide(virtual_workers, num_tasks, batch_size).efficiency == batch_size / (num_tasks * max(work))


@pytest.mark.parametrize(
    ("virtual_workers", "num_tasks", "efficiency", "wire"),
    [
        (8, 1, 1.0, 1.0),
        (8, 2, 1.0, 1.0),
        (8, 3, 8 / 9, 1.5),
        (8, 8, 1.0, 1.0),
        (24, 3, 1.0, 1.0),
        (24, 2, 1.0, 1.5),
        (24, 5, 24 / 25, 2.0),
    ],
)
def test_known_divisions(virtual_workers: int, num_tasks: int, efficiency: float, wire: float) -> None:
    division = divide(virtual_workers, num_tasks)

    assert (division.efficiency, division.wire) == (efficiency, wire)


@pytest.mark.parametrize(
    ("lowest", "highest", "advised"), [(1, 1, 1), (1, 2, 2), (1, 3, 6), (1, 4, 12), (1, 6, 24), (1, 8, 48), (4, 4, 4)]
)
def test_advice_is_few_parts_that_divide(lowest: int, highest: int, advised: int) -> None:
    assert advise(range(lowest, highest + 1)) == advised


@given(lowest=st.integers(1, 24), more=st.integers(0, 24), batch_size=st.none() | st.integers(1, 500))
def test_advice_leaves_no_size_bad(lowest: int, more: int, batch_size: int | None) -> None:
    sizes = range(lowest, lowest + more + 1)

    advised = advise(sizes, batch_size)

    if advised is None:
        assert batch_size is not None
        tried = range(sizes[-1], batch_size + 1)
        assert all(worst(parts, sizes, batch_size)[0] < GOOD for parts in tried)
    else:
        assert worst(advised, sizes, batch_size)[0] >= GOOD
        assert advised <= (batch_size or advised)
