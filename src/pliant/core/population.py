"""A population (`Population`): trials that train side by side, where the worst go on from the state of the best.

Example: 8 members, every 3 epochs to 27, a fraction of a quarter. All eight train 3 epochs and pause. The two worst
end; in the place of each a new trial begins, from the state that one of the two best had at epoch 3, with its values, a
little changed. All eight train to epoch 6, and so on; after epoch 24 nobody is replaced, and all train to their end.
"""

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Gt, Le

from pliant.core.input import FINITE, NUMBER, Input

MAX_GENERATIONS: Final = 1000

_Epochs = Annotated[int, Input(Ge(1), Le(2**31 - 1))]


@dataclass(frozen=True, kw_only=True)
class Population:
    """Trials that train side by side; now and then the worst go on from the state of the best, with other values."""

    size: Annotated[int, Input(Ge(2), Le(1000))]
    """Trials that train side by side."""
    every: _Epochs
    """Epochs between two decisions."""
    max: _Epochs
    """Epochs that a training has in the end; there and after it nobody is replaced."""
    fraction: Annotated[float, Input(Gt(0), Le(0.5), NUMBER)] = 0.25
    """So large a part is replaced by the best part of the same size, one at least."""
    factor: Annotated[float, Input(Gt(1), Le(1000), FINITE, NUMBER)] = 1.2
    """Numbers of a parent are multiplied by this, or divided."""
    resample: Annotated[float, Input(Ge(0), Le(1), NUMBER)] = 0.25
    """How probable it is that a value is drawn anew instead; choices change in no other way."""

    @property
    def ends(self) -> tuple[int, ...]:
        """The epochs at whose ends it is decided."""
        return tuple(range(self.every, self.max, self.every))
