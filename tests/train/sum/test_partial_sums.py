"""The stacks of partial sums: the example of the reducer, and zeros."""

import torch

from pliant.train.sum import tree
from pliant.train.sum.partial_sums import PartialSums


def test_task_0_of_3_is_left_with_two_partial_sums_of_its_three_leaves() -> None:
    share = tree.local_sum(8, 3, 0)
    sums, targets = PartialSums(1), [torch.empty(1), torch.empty(1)]
    sums.begin()

    sums.push(0, torch.tensor([1.0]), share.additions[0])
    assert sums.total(0) == torch.tensor([1.0])
    sums.push(0, torch.tensor([2.0]), share.additions[1])
    assert sums.totals() == [torch.tensor([3.0])]
    sums.push_last(0, torch.tensor([4.0]), share.additions[2], targets)

    assert [target.item() for target in targets] == [3.0, 4.0]


def test_zeros_are_added_so_that_no_negative_zero_is_left() -> None:
    sums, target = PartialSums(1), torch.empty(1)
    sums.begin()
    sums.push(0, torch.tensor([-0.0]), 0)
    sums.push_last(0, None, 1, [target])

    assert not torch.signbit(target)
