"""The order in which the gradients of virtual workers are summed: one fixed binary tree, whoever computes them.

Floating-point addition is commutative but not associative, so a sum is bitwise the same for any number of workers if,
and only if, the same pairs are added. A node over the leaves `lo..hi` is split where its left half is the largest power
of two below its size (as in RFC 6962, section 2.1), so that the share of a worker is a single node wherever V/N is a
power of two. Pure arithmetic; knows no tensors.

Example: 8 virtual workers with the gradients g0 to g7. The sum is always

    ((g0 + g1) + (g2 + g3)) + ((g4 + g5) + (g6 + g7))

Three workers compute 3, 3 and 2 of the gradients. None of the first two has a whole half of the tree, so each of them
is left with two partial sums that it cannot add up, because the tree never adds that pair:

    worker 0   g0 + g1 (number 0)   g2 (number 1)
    worker 1   g3 (number 2)        g4 + g5 (number 3)
    worker 2   g6 + g7 (number 4)

Worker 0 comes to its two like a stack machine: push g0; push g1 and add once; push g2 (`additions` is 0, 1, 0). The
five partial sums are then merged in the order 1 += 2, 0 += 1, 3 += 4, 0 += 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pliant.train.data.sharding import Worker

Merge = tuple[int, int]
"""(into, from): into += from."""


@dataclass(frozen=True, slots=True)
class LocalSum:
    """How one worker sums its own leaves, as a stack machine."""

    additions: tuple[int, ...]
    """For every leaf: how often, after it is pushed, the top two values are replaced by their sum."""
    num_partials: int
    """Values that are left on the stack in the end."""


@dataclass(frozen=True, slots=True)
class GlobalSum:
    """How the partial sums of all workers become one. They are numbered worker by worker; the result is in number 0."""

    num_partials: tuple[int, ...]
    """Of every worker."""
    merges: tuple[Merge, ...]


@lru_cache(maxsize=1024)
def local_sum(num_leaves: int, size: int, rank: int, shares: tuple[int, ...] = ()) -> LocalSum:
    """Return what worker `rank` of `size` does with its part of `num_leaves` leaves; `shares` are those of `Worker`."""
    mine = Worker(size, rank, shares).share(num_leaves)
    nodes = list(_nodes((0, num_leaves), (mine.start, mine.stop)))
    return LocalSum(tuple(number for node in nodes for number in _additions(node)), len(nodes))


@lru_cache(maxsize=1024)
def global_sum(num_leaves: int, size: int, shares: tuple[int, ...] = ()) -> GlobalSum:
    """Return how the partial sums of `size` workers become the sum of all leaves; `shares` are those of `Worker`."""
    ranges = [Worker(size, rank, shares).share(num_leaves) for rank in range(size)]
    nodes = [list(_nodes((0, num_leaves), (mine.start, mine.stop))) for mine in ranges]
    numbers = {node: number for number, node in enumerate(node for of_one in nodes for node in of_one)}
    merges: list[Merge] = []

    def add_up(node: tuple[int, int]) -> int:
        if node in numbers:
            return numbers[node]
        left, right = _halves(node)
        into, source = add_up(left), add_up(right)
        merges.append((into, source))
        return into

    add_up((0, num_leaves))
    return GlobalSum(tuple(len(of_one) for of_one in nodes), tuple(merges))


def _halves(node: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    lo, hi = node
    middle = lo + (1 << ((hi - lo - 1).bit_length() - 1))
    return (lo, middle), (middle, hi)


def _nodes(node: tuple[int, int], wanted: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the largest nodes inside `wanted`, in order."""
    lo, hi = node
    if wanted[0] <= lo and hi <= wanted[1]:
        if lo < hi:
            yield node
    elif lo < wanted[1] and wanted[0] < hi:
        for half in _halves(node):
            yield from _nodes(half, wanted)


def _additions(node: tuple[int, int]) -> list[int]:
    """Return how many additions follow every leaf of a node."""
    if node[1] - node[0] == 1:
        return [0]
    left, right = _halves(node)
    additions = [*_additions(left), *_additions(right)]
    additions[-1] += 1
    return additions
