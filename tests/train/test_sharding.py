"""Every sample exactly once an epoch, whatever happens to the number of workers."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.train.sharding import batch, chunks, cut, num_steps

sizes = st.integers(1, 40)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 60))
def test_cut_is_consecutive_whole_and_even(start: int, length: int, num_parts: int) -> None:
    whole = range(start, start + length)

    parts = [cut(whole, num_parts, part) for part in range(num_parts)]

    assert [position for part in parts for position in part] == list(whole)
    lengths = [len(part) for part in parts]
    assert max(lengths) - min(lengths) <= 1
    assert lengths == sorted(lengths, reverse=True)


@given(st.integers(1, 400), st.integers(1, 90), st.integers(1, 24), st.data())
def test_every_sample_is_used_once_an_epoch_for_any_history_of_sizes(
    num_samples: int, batch_size: int, virtual_workers: int, data: st.DataObject
) -> None:
    used: list[int] = []
    for step in range(num_steps(num_samples, batch_size)):
        size = data.draw(st.integers(1, virtual_workers + 2), label=f"size at step {step}")
        whole = batch(num_samples, batch_size, step)
        for rank in range(size):
            for _, positions in chunks(whole, virtual_workers=virtual_workers, size=size, rank=rank):
                used += positions

    assert used == list(range(num_samples))


@given(st.integers(0, 200), st.integers(1, 30), sizes)
def test_chunks_do_not_depend_on_the_number_of_workers(length: int, virtual_workers: int, size: int) -> None:
    whole = range(100, 100 + length)

    merged = [
        chunk for rank in range(size) for chunk in chunks(whole, virtual_workers=virtual_workers, size=size, rank=rank)
    ]

    assert tuple(merged) == chunks(whole, virtual_workers=virtual_workers, size=1, rank=0)


@given(st.integers(0, 200), st.integers(1, 30), sizes)
def test_empty_parts_are_left_out_and_the_others_differ_by_one_at_most(
    length: int, virtual_workers: int, size: int
) -> None:
    lengths = [
        len(positions)
        for rank in range(size)
        for _, positions in chunks(range(length), virtual_workers=virtual_workers, size=size, rank=rank)
    ]

    assert len(lengths) == min(length, virtual_workers)
    assert all(lengths)
    assert not lengths or max(lengths) - min(lengths) <= 1


@given(st.integers(1, 64), st.integers(1, 64))
def test_no_worker_has_more_than_one_part_more_than_another(virtual_workers: int, size: int) -> None:
    whole = range(virtual_workers * 3)
    shares = [len(chunks(whole, virtual_workers=virtual_workers, size=size, rank=rank)) for rank in range(size)]

    assert max(shares) - min(shares) <= 1


def test_last_batch_of_an_epoch_is_what_is_left() -> None:
    assert num_steps(10, 4) == 3
    assert [batch(10, 4, step) for step in range(3)] == [range(4), range(4, 8), range(8, 10)]
    assert chunks(range(8, 10), virtual_workers=4, size=2, rank=0) == ((0, range(8, 9)), (1, range(9, 10)))
    assert chunks(range(8, 10), virtual_workers=4, size=2, rank=1) == ()
