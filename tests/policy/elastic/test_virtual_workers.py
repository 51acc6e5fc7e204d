"""How V divides: as the trainings themselves cut and sum, and the advice is as good as it says."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.virtual_workers import GRADIENT
from pliant.core.virtual_workers import slot_time as time_without_sums
from pliant.policy.elastic.virtual_workers import WORTH, advise, divide
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


def slot_time(virtual_workers: int, sizes: Sequence[int], batch_size: int) -> float:
    """Return what the tasks take for a step on all these numbers of them, worked out part by part."""
    num_parts = min(virtual_workers, batch_size)
    samples = [len(cut(range(batch_size), num_parts, part)) for part in range(num_parts)]
    time = 0.0
    for size in sizes:
        ranges = [cut(range(num_parts), size, rank) for rank in range(size)]
        sent = max(tree.global_sum(num_parts, size).num_partials) if size > 1 else 0
        time += size * (max(sum(samples[part] + GRADIENT for part in own) for own in ranges) + GRADIENT * sent)
    return time


@pytest.mark.parametrize(
    ("virtual_workers", "highest", "batch_size", "advised"),
    [
        (8, 8, 64, None),
        (8, 8, 256, None),
        (8, 8, 1 << 14, 24),
        (48, 8, 64, 8),
        (8, 3, 64, 3),
        (8, 2, 4096, None),
        (12, 12, 64, None),
    ],
)
def test_small_parts_are_not_advised_however_well_they_divide(
    virtual_workers: int, highest: int, batch_size: int, advised: int | None
) -> None:
    found = advise(virtual_workers, range(1, highest + 1), batch_size)

    assert (found and found.virtual_workers) == advised


@given(virtual_workers=st.integers(1, 60), lowest=st.integers(1, 8), more=st.integers(0, 8), spare=st.integers(0, 5000))
def test_advice_saves_the_time_that_it_says(virtual_workers: int, lowest: int, more: int, spare: int) -> None:
    sizes = range(lowest, lowest + more + 1)
    virtual_workers, batch_size = max(virtual_workers, sizes[-1]), sizes[-1] + spare

    found = advise(virtual_workers, sizes, batch_size)

    if found is not None:
        before, after = (slot_time(v, sizes, batch_size) for v in (virtual_workers, found.virtual_workers))
        assert found.saved == pytest.approx(1 - after / before)
        assert found.saved >= WORTH
        assert sizes[-1] <= found.virtual_workers <= batch_size


@given(
    virtual_workers=st.integers(1, 60),
    first=st.integers(1, 12),
    more=st.integers(0, 12),
    batch_size=st.integers(1, 500),
)
def test_slot_time_counts_every_size_by_its_busiest_task(
    virtual_workers: int, first: int, more: int, batch_size: int
) -> None:
    sizes, num_parts = range(first, first + more + 1), min(virtual_workers, batch_size)
    samples = [len(cut(range(batch_size), num_parts, part)) for part in range(num_parts)]
    total = 0
    for size in sizes:
        own = [samples[part] for part in cut(range(num_parts), size, 0)]
        total += size * (sum(own) + GRADIENT * len(own))

    assert time_without_sums(virtual_workers, sizes, batch_size) == total
