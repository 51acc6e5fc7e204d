"""A slot, and parts of one: how many slots a task holds, as people say it and as the scheduler counts it.

A slot is one GPU, or a share of the CPU. Parts are counted in thousandths, so that sums are exact. Example: 0.25 is 250
thousandths of one slot; 2 is two whole slots.
"""

from typing import Annotated, Final

from annotated_types import Gt, Le

from pliant.core.errors import InvalidInput
from pliant.core.input import FINITE, Check, Input

WHOLE_SLOT: Final = 1000
"""A slot in thousandths."""
MAX_SLOTS_PER_TASK: Final = 64
LEAST_SHARE: Final = 10
"""Thousandths; no more than a hundred tasks share a slot, whatever somebody asks for."""
_ROUNDING: Final = 1e-6


def _refuse_odd(number: float) -> None:
    """Raise InvalidInput unless a number of slots is whole, or a part of one in thousandths."""
    thousandths = number * WHOLE_SLOT
    exact = abs(thousandths - round(thousandths)) < _ROUNDING and round(thousandths) >= LEAST_SHARE
    if not exact or (number > 1 and number != round(number)):
        message = f"{number:g} is neither a whole number of slots nor a part of one; say 1, 2, 3, … or 0.01 to 0.999"
        raise InvalidInput.at("", message)


Slots = Annotated[float, Input(Gt(0), Le(MAX_SLOTS_PER_TASK), FINITE, Check(_refuse_odd))]
"""Whole slots, or a part of one: a hundredth at the least, in thousandths at the finest."""


def whole_slots(slots: float) -> int:
    """Return how many slots a task is on: one, if it holds a part only."""
    return max(1, round(slots))


def share_of_slot(slots: float) -> int:
    """Return how many thousandths of each of its slots a task holds."""
    return min(WHOLE_SLOT, round(slots * WHOLE_SLOT))
