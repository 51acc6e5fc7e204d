"""The gradient of a linear layer's weight as a product that is not computed yet, and sums of such products.

Theory of operation
-------------------
Of b samples it is the product of two thin matrices, (out, b) and (b, in). A layer of 4096 x 4096 has 64 MB of weights,
but for 16 samples these two have 0.5 MB. To compute the product of every part, and to add one to the other, writes and
reads those 64 MB about four times for each part, and that is most of what a small part costs. So the thin matrices are
kept until the task's last part, and then the sum is computed block by block: all parts of a block are multiplied and
added while it lies in the processor's cache, and memory sees the result alone.

The order of the additions is that of the tree (`pliant.train.sum.tree`), as for other gradients. What is multiplied is
always one part's block of one fixed shape, so the bits do not depend on how many parts a task has.

    4 parts, additions 0 1 0 2, for each block:

    part 0   a = product                       stack  a
    part 1   a += product                             a
    part 2   b = product                              a b
    part 3   b += product, then a += b                a

`a += product` is one call where that gives the same bits as the product, rounded, and then the sum: a library for
matrices may do both in one pass. Whether it does is found out once for every shape (`_is_fused_sum_exact`); where it
does not, they are two calls. Another task, which has part 1 alone, adds its product to `a` in any case.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import torch

BLOCK_ROWS: Final = 512
BLOCK_ELEMENTS: Final = 1 << 18
"""1 MB of float32: small enough for a cache, large enough that a call costs little (256 KB to 1 MB were measured)."""
_LEAST_FUSED: Final = 64
"""Of blocks with fewer elements nothing can be found out soon, and there is nothing to gain."""
_NUM_COMPARED: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Product:
    """One part's gradient of a weight of the shape (out, in)."""

    outputs: torch.Tensor
    """Derivatives of the loss by what the layer gave, (b, out)."""
    inputs: torch.Tensor
    """(b, in)."""

    def compute(self) -> torch.Tensor:
        """Return the gradient, the same bits as in a sum."""
        target = self.new_target()
        sum_products([self], [0], [target])
        return target

    def new_target(self) -> torch.Tensor:
        """Return memory for the gradient."""
        return self.outputs.new_empty(self.outputs.shape[1], self.inputs.shape[1])


def sum_products(products: Sequence[Product], additions: Sequence[int], targets: Sequence[torch.Tensor]) -> None:
    """Put the partial sums of consecutive parts into the targets, of the shape (out, in) each.

    Args:
        products: of one weight, in the order of the parts.
        additions: how often the top two values are added after each of them.
        targets: one for each value that is left.
    """
    num_rows, num_columns = products[0].outputs.shape[1], products[0].inputs.shape[1]
    memory: list[torch.Tensor] = []
    for rows, columns in _blocks(num_rows, num_columns):
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        stack: list[torch.Tensor] = []
        for product, count in zip(products, additions, strict=True):
            left, right = product.outputs[:, rows].t(), product.inputs[:, columns]
            if count == 0:
                if len(stack) == len(memory):
                    memory.append(left.new_empty(min(BLOCK_ELEMENTS, num_rows * num_columns)))
                block = memory[len(stack)][: shape[0] * shape[1]].view(shape)
                stack.append(torch.mm(left, right, out=block))
                continue
            _add_product(stack[-1], left, right)
            for _ in range(count - 1):
                top = stack.pop()
                stack[-1].add_(top)
        for target, partial_sum in zip(targets, stack, strict=True):
            target[rows, columns].copy_(partial_sum)


def _blocks(num_rows: int, num_columns: int) -> Iterator[tuple[slice, slice]]:
    height = min(num_rows, BLOCK_ROWS)
    width = max(1, BLOCK_ELEMENTS // height)
    for top in range(0, num_rows, height):
        for left in range(0, num_columns, width):
            yield slice(top, min(top + height, num_rows)), slice(left, min(left + width, num_columns))


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    threads = torch.get_num_threads()
    if _is_fused_sum_exact(left.shape[0], right.shape[1], left.shape[1], left.stride(1), right.stride(0), threads):
        total.addmm_(left, right)
    else:
        total.add_(torch.mm(left, right))


@lru_cache(maxsize=4096)
def _is_fused_sum_exact(
    num_rows: int, num_columns: int, depth: int, left_stride: int, right_stride: int, _num_threads: int
) -> bool:
    """Tell whether adding a product in one call gives the bits of two calls, for matrices of one shape in memory.

    Where it does not, about one element in three differs: a few could agree by chance, so many are looked at.
    """
    num_elements = num_rows * num_columns
    if num_elements < _LEAST_FUSED:
        return False
    chance = torch.Generator().manual_seed(depth)
    for _ in range(-(-_NUM_COMPARED // num_elements)):
        left = torch.randn(depth, left_stride, generator=chance)[:, :num_rows].t()
        right = torch.randn(depth, right_stride, generator=chance)[:, :num_columns]
        total = torch.randn(num_rows, num_columns, generator=chance)
        separately = total + torch.mm(left, right)
        if not torch.equal(total.addmm_(left, right), separately):
            return False
    return True
