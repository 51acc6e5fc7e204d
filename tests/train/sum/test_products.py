"""Sums of products come to the same bits as the sums of computed products, whoever has how many of them."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pliant.train.sum import products, tree
from pliant.train.sum.partial_sums import PartialSums
from pliant.train.sum.products import Product, sum_products


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "BLOCK_ROWS", 16)
        patch.setattr(products, "BLOCK_ELEMENTS", 256)
        yield


def some_products(num_rows: list[int], shape: tuple[int, int]) -> list[Product]:
    chance = torch.Generator().manual_seed(sum(num_rows) + shape[0])
    return [
        Product(torch.randn(rows, shape[0], generator=chance), torch.randn(rows, shape[1], generator=chance))
        for rows in num_rows
    ]


def sum_of_one_task(leaves: list[Product]) -> torch.Tensor:
    target = leaves[0].new_target()
    sum_products(leaves, tree.local_sum(len(leaves), 1, 0).additions, [target])
    return target


def sum_over_tasks(leaves: list[Product], size: int) -> torch.Tensor:
    """What `size` tasks send each other, added as the exchange does."""
    partial_sums = []
    for rank in range(size):
        share = tree.local_sum(len(leaves), size, rank)
        targets = [leaves[0].new_target() for _ in range(share.num_partials)]
        mine = leaves[: len(share.additions)]
        leaves_left = leaves[len(share.additions) :]
        sum_products(mine, share.additions, targets)
        partial_sums += targets
        leaves = leaves_left + leaves[: len(share.additions)]
    for into, source in tree.global_sum(len(leaves), size).merges:
        partial_sums[into].add_(partial_sums[source])
    return partial_sums[0]


@settings(max_examples=60)
@given(
    num_rows=st.lists(st.integers(1, 9), min_size=2, max_size=9),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 70)),
    size=st.integers(2, 9),
)
@example(num_rows=[1, 7], shape=(2, 1), size=2)  # two elements that agree by chance say nothing of the library
def test_any_number_of_tasks_comes_to_the_same_bits(num_rows: list[int], shape: tuple[int, int], size: int) -> None:
    leaves = some_products(num_rows, shape)

    assert torch.equal(sum_over_tasks(leaves, min(size, len(leaves))), sum_of_one_task(leaves))


@pytest.mark.parametrize("shape", [(513, 513), (128, 2304), (1030, 521)])
@pytest.mark.parametrize("num_rows", [1, 8, 64])
def test_so_it_does_with_blocks_of_the_usual_size(
    shape: tuple[int, int], num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    leaves = some_products([num_rows] * 5, shape)

    assert torch.equal(sum_over_tasks(leaves, 3), sum_of_one_task(leaves))


def test_it_is_the_sum_of_the_products() -> None:
    leaves = some_products([3, 2, 2], (33, 50))

    expected = sum(leaf.outputs.t() @ leaf.inputs for leaf in leaves)

    torch.testing.assert_close(sum_of_one_task(leaves), expected)
    torch.testing.assert_close(leaves[0].compute(), leaves[0].outputs.t() @ leaves[0].inputs)


def test_a_library_that_adds_while_it_multiplies_is_asked_for_the_product_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaves = some_products([4] * 4, (20, 30))
    at_once = sum_of_one_task(leaves)
    monkeypatch.setattr(products, "_is_fused_sum_exact", lambda *_: False)

    def refuse(*_: object) -> None:
        raise AssertionError("asked for both in one call")

    monkeypatch.setattr(torch.Tensor, "addmm_", refuse)

    assert torch.equal(sum_of_one_task(leaves), at_once)


def test_whether_it_does_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = torch.Tensor.addmm_

    def add_sample_by_sample(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        for sample in range(left.shape[1]):
            plain(total, left[:, sample : sample + 1], right[sample : sample + 1])
        return total

    products._is_fused_sum_exact.cache_clear()
    monkeypatch.setattr(torch.Tensor, "addmm_", add_sample_by_sample)
    leaves = some_products([7] * 4, (20, 30))
    found = sum_over_tasks(leaves, 2), sum_of_one_task(leaves)
    products._is_fused_sum_exact.cache_clear()

    assert torch.equal(*found)


def test_products_and_values_of_one_place_are_added_in_their_order() -> None:
    one, two, three, four = some_products([2, 3, 2, 3], (18, 20))
    dense = [leaf.compute() for leaf in (one, two, three, four)]
    expected = (dense[0] + dense[1]) + (dense[2] + dense[3])
    for computed in range(4):
        sums = PartialSums(1)
        sums.begin()
        for place, leaf in enumerate((one, two, three, four)):
            sums.push(0, leaf.compute() if place == computed else leaf, [0, 1, 0, 2][place])

        total = sums.total(0)
        assert total is not None
        assert torch.equal(total, expected), computed


def test_the_sum_of_one_task_lies_in_memory_that_is_used_again() -> None:
    sums = PartialSums(1)
    found = []
    for _ in range(2):
        sums.begin()
        for leaf, num_additions in zip(some_products([2, 3], (18, 20)), (0, 1), strict=True):
            sums.push(0, leaf, num_additions)
        [total] = sums.totals()
        assert total is not None
        found.append(total.data_ptr())
        sums.clear()

    assert found[0] == found[1]
    sums.begin(are_whole=False)
    assert not sums._kept  # with other tasks the sums lie in buffers that are sent
