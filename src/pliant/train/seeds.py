"""Seeds derived from what they are for, so that random numbers do not depend on who computes what.

The mixing function is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
"""

from typing import Final

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
