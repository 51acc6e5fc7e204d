"""Seeds depend on what they are for and on nothing else."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pliant.train.seeds import mix

values = st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=4)


@given(values)
def test_seed_is_one_that_torch_takes(numbers: list[int]) -> None:
    seed = mix(*numbers)

    assert 0 <= seed < 2**63
    assert torch.Generator().manual_seed(seed).initial_seed() == seed
    assert seed == mix(*numbers)


def test_seeds_of_neighbours_are_all_different() -> None:
    seeds = {mix(seed, step, worker) for seed in range(4) for step in range(300) for worker in range(16)}

    assert len(seeds) == 4 * 300 * 16


def test_order_and_number_of_values_matter() -> None:
    assert len({mix(1, 2), mix(2, 1), mix(1), mix(1, 2, 0), mix(0, 1, 2)}) == 5


def test_every_bit_is_as_often_set_as_not() -> None:
    seeds = [mix(0, step) for step in range(2000)]

    for bit in range(63):
        assert 800 < sum(seed >> bit & 1 for seed in seeds) < 1200


def test_seeds_never_change_between_versions() -> None:
    """A checkpoint that is resumed by another version must go on with the same order of samples."""
    assert [mix(0), mix(0, 1), mix(7, 3, 2)] == [8147104208329303767, 313702574736366215, 334283646672543036]
