"""Which colour a new workload gets: one that nobody has who is there, and not the one that was seen last.

Colours are numbers: 0 to 7 are plain, 8 to 15 the same eight hatched, 16 to 23 dotted. What they look like is the
console's business. An example: 0, 1 and 2 were given in this order, and only the workload of 1 is still there. Then 3
comes next, since no one has had it; after 7 it is 0's turn, which has been free for the longest.
"""

from collections.abc import Mapping, Sequence
from typing import Final

NUM_PLAIN: Final = 8
NUM_COLOURS: Final = 3 * NUM_PLAIN


def choose_colour(num_users: Mapping[int, int], given: Sequence[int]) -> int:
    """Return the colour of a new workload.

    Of the colours that the fewest have who are there: a plain one before a hatched one before a dotted one; of these
    the one that was given the longest ago, or never; of these the smallest.

    Args:
        num_users: how many workloads that hold slots, or wait, have each colour.
        given: the colours in the order in which they were given, the newest last.
    """
    newest = {colour: place for place, colour in enumerate(given)}

    def rank(colour: int) -> tuple[int, int, int, int]:
        return num_users.get(colour, 0), colour // NUM_PLAIN, newest.get(colour, -1), colour

    return min(range(NUM_COLOURS), key=rank)
