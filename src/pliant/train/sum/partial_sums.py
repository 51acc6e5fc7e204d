"""The partial sums that one task computes over its virtual workers, for every parameter and for the tail.

A stack per place (see `pliant.train.sum.tree`): the value of a virtual worker is pushed, and the top two are added as
often as the tree says. None stands for zeros. Zeros are added, not skipped: -0.0 + 0.0 is 0.0, so a skipped addition
could leave a negative zero where another number of tasks has a positive one.

Products that are not computed yet wait beside the stack as long as nothing else came for their place, and are computed
and added together at the end.
"""

from collections.abc import Sequence

import torch

from pliant.train.sum.products import Product, sum_products

Value = torch.Tensor | None


class PartialSums:
    """One stack for each of `num_places` places."""

    def __init__(self, num_places: int) -> None:
        self._num_places = num_places
        self._stacks: list[list[Value]] = []
        self._waiting: list[list[tuple[Product, int]]] = []
        self._kept: dict[int, torch.Tensor] = {}
        """Memory for whole sums of products, used again at every step: fresh pages cost as much as the sum."""

    def begin(self, *, are_whole: bool = True) -> None:
        """Start anew with empty stacks; memory for whole sums goes where the sums are those of several tasks."""
        if not are_whole:
            self._kept.clear()
        self._stacks = [[] for _ in range(self._num_places)]
        self._waiting = [[] for _ in range(self._num_places)]

    def clear(self) -> None:
        """Drop all values."""
        self._stacks.clear()
        self._waiting.clear()

    def forget(self) -> None:
        """Drop all values, and the memory."""
        self.clear()
        self._kept.clear()

    def push(self, place: int, value: Value | Product, num_additions: int) -> None:
        """Push a value, then add the top two so often. The tensors may be overwritten."""
        if isinstance(value, Product) and not self._stacks[place]:
            self._waiting[place].append((value, num_additions))
        else:
            self._push(place, self._settle(place, value), num_additions)

    def _push(self, place: int, value: Value, num_additions: int) -> None:
        stack = self._stacks[place]
        for _ in range(num_additions):
            value = _add(stack.pop(), value)
        stack.append(value)

    def _settle(self, place: int, value: Value | Product) -> Value:
        """Push what waits, since a value comes that does not; return the value, computed."""
        for product, num_additions in self._waiting[place]:
            self._push(place, product.compute(), num_additions)
        self._waiting[place].clear()
        return value.compute() if isinstance(value, Product) else value

    def push_last(
        self, place: int, value: Value | Product, num_additions: int, targets: Sequence[torch.Tensor]
    ) -> None:
        """Push the last value of a place and put the partial sums into the targets, the last addition directly."""
        if isinstance(value, Product) and not self._stacks[place]:
            self._waiting[place].append((value, num_additions))
            self._compute(place, targets)
            return
        value = self._settle(place, value)
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

    def _compute(self, place: int, targets: Sequence[torch.Tensor]) -> None:
        products, additions = zip(*self._waiting[place], strict=True)
        sum_products(products, additions, targets)
        self._waiting[place].clear()

    def totals(self) -> list[Value]:
        """Return the bottom value of every stack: the whole sum, if one task computes all virtual workers.

        Sums of products lie in memory that the next step uses again.
        """
        return [self.total(place) for place in range(self._num_places)]

    def total(self, place: int) -> Value:
        """Return the bottom value of one stack."""
        if self._waiting[place]:
            target = self._kept.get(place)
            if target is None:
                target = self._kept[place] = self._waiting[place][0][0].new_target()
            self._compute(place, [target])
            self._stacks[place].append(target)
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
