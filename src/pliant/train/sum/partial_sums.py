"""The partial sums that one task computes over its virtual workers, for every parameter and for the tail.

A stack per place (see `pliant.train.sum.tree`): the value of a virtual worker is pushed, and the top two are added as
often as the tree says. None stands for zeros. Zeros are added, not skipped: -0.0 + 0.0 is 0.0, so a skipped addition
could leave a negative zero where another number of tasks has a positive one.
"""

from collections.abc import Sequence

import torch

Value = torch.Tensor | None


class PartialSums:
    """One stack for each of `num_places` places."""

    def __init__(self, num_places: int) -> None:
        self._num_places = num_places
        self._stacks: list[list[Value]] = []

    def begin(self) -> None:
        """Start anew with empty stacks."""
        self._stacks = [[] for _ in range(self._num_places)]

    def clear(self) -> None:
        """Drop all values."""
        self._stacks.clear()

    def push(self, place: int, value: Value, num_additions: int) -> None:
        """Push a value, then add the top two so often. The tensors may be overwritten."""
        stack = self._stacks[place]
        for _ in range(num_additions):
            value = _add(stack.pop(), value)
        stack.append(value)

    def push_last(self, place: int, value: Value, num_additions: int, targets: Sequence[torch.Tensor]) -> None:
        """Push the last value of a place and put the partial sums into the targets, the last addition directly."""
        stack = self._stacks[place]
        for _ in range(num_additions - 1):
            value = _add(stack.pop(), value)
        left = stack.pop() if num_additions else None
        *others, target = targets
        for other, partial_sum in zip(others, stack, strict=True):
            _put(other, partial_sum)
        if left is not None and value is not None:
            torch.add(left, value, out=target)
        else:
            _put(target, _add(left, value) if num_additions else value)
        stack.clear()

    def totals(self) -> list[Value]:
        """Return the bottom value of every stack: the whole sum, if one task computes all virtual workers."""
        return [stack[0] for stack in self._stacks]

    def total(self, place: int) -> Value:
        """Return the bottom value of one stack."""
        return self._stacks[place][0]


def _add(left: Value, right: Value) -> Value:
    if left is None or right is None:
        value = right if left is None else left
        return None if value is None else value.add_(0.0)
    return left.add_(right)


def _put(target: torch.Tensor, value: Value) -> None:
    if value is None:
        target.zero_()
    else:
        target.copy_(value)
