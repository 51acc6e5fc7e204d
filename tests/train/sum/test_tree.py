"""The sum over virtual workers is one expression, whatever the number of workers."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.train.data.sharding import Worker
from pliant.train.sum.tree import GlobalSum, LocalSum, global_sum, local_sum

leaf_counts = st.integers(1, 70)


def expression(num_leaves: int, size: int, shares: tuple[int, ...] = ()) -> str:
    """Return the sum as `size` workers compute it, as text."""
    partials: list[str] = []
    for rank in range(size):
        mine, program = Worker(size, rank, shares).share(num_leaves), local_sum(num_leaves, size, rank, shares)
        stack: list[str] = []
        for virtual_worker, num_additions in zip(mine, program.additions, strict=True):
            stack.append(str(virtual_worker))
            for _ in range(num_additions):
                right = stack.pop()
                stack.append(f"({stack.pop()}+{right})")
        assert len(stack) == program.num_partials
        partials += stack
    for into, source in global_sum(num_leaves, size, shares).merges:
        partials[into] = f"({partials[into]}+{partials[source]})"
    return partials[0]


@given(leaf_counts, st.integers(1, 80))
def test_every_number_of_workers_computes_the_same_expression(num_leaves: int, size: int) -> None:
    assert expression(num_leaves, size) == expression(num_leaves, 1)


@given(leaf_counts, st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_so_do_uneven_shares_of_them(num_leaves: int, shares: list[int]) -> None:
    assert expression(num_leaves, len(shares), tuple(shares)) == expression(num_leaves, 1)


@given(leaf_counts)
def test_every_leaf_is_in_the_sum_once_in_order(num_leaves: int) -> None:
    flat = expression(num_leaves, 1).replace("(", "").replace(")", "")

    assert flat.split("+") == [str(leaf) for leaf in range(num_leaves)]


@given(leaf_counts, st.integers(1, 80), st.data())
def test_memory_grows_with_the_logarithm_of_a_share(num_leaves: int, size: int, data: st.DataObject) -> None:
    additions = local_sum(num_leaves, size, data.draw(st.integers(0, size - 1))).additions

    depths = [number + 1 - sum(additions[:number]) for number in range(len(additions))]
    assert max(depths, default=0) <= 2 * len(additions).bit_length()


def test_shares_that_are_powers_of_two_are_single_nodes() -> None:
    aligned = {8: (1, 2, 4, 8), 24: (1, 3, 6, 12, 24), 12: (1, 3, 6, 12)}

    for num_leaves, sizes in aligned.items():
        for size in sizes:
            assert global_sum(num_leaves, size).num_partials == (1,) * size, (num_leaves, size)


def test_the_tree_of_five() -> None:
    assert expression(5, 1) == "(((0+1)+(2+3))+4)"


def test_workers_without_a_leaf_have_no_partial_sum() -> None:
    assert local_sum(2, 3, 2).additions == ()
    assert global_sum(2, 3).num_partials == (1, 1, 0)


def test_three_workers_share_eight_leaves_as_the_module_says() -> None:
    assert [local_sum(8, 3, rank) for rank in range(3)] == [
        LocalSum((0, 1, 0), 2),
        LocalSum((0, 0, 1), 2),
        LocalSum((0, 1), 1),
    ]
    assert global_sum(8, 3) == GlobalSum((2, 2, 1), ((1, 2), (0, 1), (3, 4), (0, 3)))
