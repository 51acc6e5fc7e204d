"""What a generation's first step needs is there before it; what a training has is kept for other numbers of members."""

import mmap
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from pliant.train.sum import memory
from pliant.train.sum.buckets import BucketLayout
from pliant.train.sum.memory import SumMemory

NUM_ELEMENTS = 100
NUM_PAGED = 1 << 20
PAGE = mmap.PAGESIZE // 4
"""Elements of a page."""


@contextmanager
def no_new_tensors() -> Iterator[None]:
    """Let it be an error to make a tensor."""

    def fail(*_args: object, **_options: object) -> torch.Tensor:
        raise AssertionError("a tensor is made")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "empty", fail)
        yield


@pytest.fixture
def layout() -> BucketLayout:
    return BucketLayout([torch.nn.Parameter(torch.zeros(NUM_ELEMENTS))], num_tail=0, bytes_at_most=400)


@pytest.fixture
def large_layout() -> BucketLayout:
    """One bucket of 1,024 pages."""
    return BucketLayout([torch.nn.Parameter(torch.zeros(NUM_PAGED))], num_tail=0, bytes_at_most=4 * NUM_PAGED)


def test_a_newcomer_makes_nothing_in_its_first_step(layout: BucketLayout) -> None:
    of_newcomer = SumMemory(layout)

    of_newcomer.prepare(num_sets=2, num_turns=2)

    with no_new_tensors():
        of_newcomer.begin(2)
        buffers = [of_newcomer.received(0, turn, 102) for turn in range(2)]
    assert [len(buffer) for buffer in buffers] == [102, 102]
    addresses = {buffer.data_ptr() for buffer in (*buffers, *(one.buffers[0] for one in of_newcomer.sets))}
    assert len(addresses) == 4, "each has memory of its own"


def test_who_trains_already_makes_only_what_it_never_had(layout: BucketLayout) -> None:
    of_survivor = SumMemory(layout)
    of_survivor.begin(1)
    buffer = of_survivor.sets[0].buffers[0]

    of_survivor.prepare(num_sets=1, num_turns=1)
    with no_new_tensors():
        of_survivor.prepare(num_sets=1, num_turns=1)  # as for a generation after that one
        of_survivor.begin(1)
        of_survivor.received(0, 0, NUM_ELEMENTS)

    assert of_survivor.sets[0].buffers[0] is buffer


def test_what_receives_does_so_for_any_number_of_members(layout: BucketLayout) -> None:
    kept = SumMemory(layout)
    kept.begin(1)
    first = kept.received(0, 0, 100)

    with no_new_tensors():
        others = [kept.received(0, 0, num_elements) for num_elements in (102, 100, 99, 50, 104)]

    assert {buffer.data_ptr() for buffer in others} == {first.data_ptr()}


def test_a_step_in_which_newcomers_rest_leaves_the_next_one_what_was_prepared(layout: BucketLayout) -> None:
    """In it little is received; that little must not count as what a whole step needs."""
    kept = SumMemory(layout)
    kept.begin(1)
    kept.received(0, 0, NUM_ELEMENTS // 2)

    kept.prepare(num_sets=1, num_turns=1)

    with no_new_tensors():
        assert len(kept.received(0, 0, NUM_ELEMENTS)) == NUM_ELEMENTS


def test_memory_of_a_lost_generation_that_goes_on_is_not_used(layout: BucketLayout) -> None:
    kept = SumMemory(layout)
    kept.begin(1)
    old = [kept.sets[0].buffers[0], kept.received(0, 0, NUM_ELEMENTS)]

    kept.put_aside(SimpleNamespace(has_ended=False))
    kept.begin(1)

    new = [kept.sets[0].buffers[0], kept.received(0, 0, NUM_ELEMENTS)]
    assert not {one.data_ptr() for one in old} & {one.data_ptr() for one in new}


def sum_of_a_lost_generation(kept: SumMemory) -> list[torch.Tensor]:
    """Let a step of it have written ones to all of its buffers; gloo refers to them for hours."""
    kept.begin(1)
    held = [kept.sets[0].buffers[0], kept.received(0, 0, NUM_PAGED)]
    for buffer in held:
        buffer.fill_(1)
    kept.put_aside(SimpleNamespace(has_ended=False))
    return held


def test_pages_of_a_lost_generation_that_goes_on_are_used_at_other_addresses(large_layout: BucketLayout) -> None:
    kept = SumMemory(large_layout)
    neighbours = [torch.ones(NUM_PAGED) for _ in range(2)]
    held = sum_of_a_lost_generation(kept)

    with no_new_tensors():
        kept.begin(1)
        used = [kept.sets[0].buffers[0], kept.received(0, 0, NUM_PAGED)]
    assert all(buffer[PAGE:-PAGE].min() == 1 for buffer in used), "they are the pages that were written to"
    assert kept.sets[0].views[0].data_ptr() == used[0].data_ptr()
    for buffer in held:
        assert not buffer[PAGE:-PAGE].any(), "a page that is not there is read as zeros"
        buffer.fill_(2)  # as who still writes to it
    assert all(buffer[PAGE:-PAGE].min() == 1 for buffer in used)
    for buffer in used:
        buffer.fill_(3)
    assert all(buffer.min() == 2 for buffer in held)
    assert all(neighbour.min() == 1 for neighbour in neighbours)


def test_pages_are_moved_as_often_as_generations_are_lost(large_layout: BucketLayout) -> None:
    kept = SumMemory(large_layout)
    held = [buffer for _ in range(3) for buffer in sum_of_a_lost_generation(kept)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    kept.begin(1)
    for buffer in (kept.sets[0].buffers[0], kept.received(0, 0, NUM_PAGED)):
        buffer.fill_(3)

    num_new = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert num_new < 200, "two buffers have 2,048 pages"
    assert len({buffer.data_ptr() for buffer in held}) == len(held)


@pytest.fixture
def unmapped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Addresses that were given back. Others may have them at once, so that the process does not show it."""
    addresses: list[int] = []
    unmap = memory._unmap

    def note_and_unmap(address: int, length: int) -> None:
        addresses.append(address)
        unmap(address, length)

    monkeypatch.setattr(memory, "_unmap", note_and_unmap)
    return addresses


def test_pages_that_were_moved_go_with_the_last_who_uses_them(large_layout: BucketLayout, unmapped: list[int]) -> None:
    kept = SumMemory(large_layout)
    sum_of_a_lost_generation(kept)
    kept.begin(1)
    gradient = kept.sets[0].views[0].fill_(5)
    address = gradient.data_ptr()

    kept.close()

    assert address not in unmapped
    assert gradient.min() == 5
    del gradient
    assert address in unmapped


def test_where_pages_cannot_be_moved_they_are_given_back(
    large_layout: BucketLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = SumMemory(large_layout)
    held = sum_of_a_lost_generation(kept)
    monkeypatch.setattr(memory, "_MREMAP_DONTUNMAP", 1 << 30)

    kept.begin(1)

    assert len(kept.received(0, 0, NUM_PAGED)) == NUM_PAGED
    assert all(not buffer[PAGE:-PAGE].any() for buffer in held)
    kept.sets[0].buffers[0].fill_(3)
    assert all(not buffer[PAGE:-PAGE].any() for buffer in held)


def test_where_there_is_no_room_beside_moved_pages_they_are_given_back(
    large_layout: BucketLayout, unmapped: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[int] = []
    remap = memory._remap

    def remap_once(address: int, length: int, new_length: int, flags: int) -> int | None:
        if not flags & memory._MREMAP_DONTUNMAP:
            return None
        moved.append(remap(address, length, new_length, flags) or 0)
        return moved[-1]

    monkeypatch.setattr(memory, "_remap", remap_once)
    kept = SumMemory(large_layout)
    held = sum_of_a_lost_generation(kept)

    kept.begin(1)

    assert unmapped == moved
    assert len(moved) == len(held)
    assert all(not buffer[PAGE:-PAGE].any() for buffer in held)
    kept.sets[0].buffers[0].fill_(3)
    assert all(not buffer[PAGE:-PAGE].any() for buffer in held)


def test_very_much_is_left_to_the_first_step(layout: BucketLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_PREPARED_BYTES", 3 * 4 * NUM_ELEMENTS)
    kept = SumMemory(layout)

    with no_new_tensors():
        kept.prepare(num_sets=2, num_turns=2)

    kept.begin(2)
    assert len(kept.sets) == 2


def test_where_there_is_no_memory_the_first_step_says_so(layout: BucketLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> torch.Tensor:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    kept = SumMemory(layout)
    monkeypatch.setattr(torch, "empty", refuse)

    kept.prepare(num_sets=1, num_turns=1)

    with pytest.raises(RuntimeError, match="can't allocate"):
        kept.begin(1)


def test_at_the_end_nothing_is_kept(layout: BucketLayout) -> None:
    kept = SumMemory(layout)
    kept.prepare(num_sets=1, num_turns=1)
    kept.close()

    with no_new_tensors(), pytest.raises(AssertionError, match="a tensor is made"):
        kept.begin(1)
