"""Seeds derived from what they are for, so that random numbers do not depend on which task draws them.

The mixing function is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
"""

import random
from typing import Final

import numpy
import torch

_MASK: Final = (1 << 64) - 1


def mix(*values: int) -> int:
    """Return a 63-bit seed that depends on every value and on their order."""
    state = 0
    for value in values:
        state = (state ^ (value & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state >> 1


def seed_forward(seed: int) -> None:
    """Seed the generators that a forward pass draws from.

    `torch.manual_seed` would format and keep a stack trace at every call where CUDA is not in use.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def seed_loading(seed: int) -> None:
    """Seed the generators that data sets draw from: torch's default one, Python's and numpy's global one.

    Takes about 15 µs. No device is seeded: data sets draw on the CPU.
    """
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed & 0xFFFFFFFF)
