"""What became of one try to send a message, and when the next one is."""

from dataclasses import dataclass
from typing import Final

MAX_TRIES: Final = 8
MAX_REFUSED: Final = 3
"""Tries at a receiver that answers, and does not take it."""
_FIRST_DELAY_S: Final = 10.0
_FACTOR: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOutcome:
    """What became of a try."""

    words: str = ""
    """What went wrong, in words that follow who was called; empty if nothing did."""
    max_tries: int = MAX_TRIES
    """Tries that such a fault is worth."""

    @property
    def sent(self) -> bool:
        """Whether it was taken."""
        return not self.words


SENT: Final = TryOutcome()


def delay_s(num_tries: int) -> float:
    """Return how long to wait after so many tries: 10 s, 30 s, 90 s, … eight tries take three hours."""
    return _FIRST_DELAY_S * _FACTOR ** (num_tries - 1)
