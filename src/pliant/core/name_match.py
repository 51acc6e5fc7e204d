"""How well names fit a text that somebody has typed to find something."""

from typing import Final

SAME: Final = 0
BEGINS: Final = 1
HOLDS: Final = 2


def rank(text: str, *names: str) -> int | None:
    """Return how well the best of some names fits: it is the text, begins with it, or holds it; None: not at all.

    Capital letters make no difference, and no sign stands for another.
    """
    wanted = text.casefold()
    given = [name.casefold() for name in names]
    if wanted in given:
        return SAME
    if any(name.startswith(wanted) for name in given):
        return BEGINS
    return HOLDS if any(wanted in name for name in given) else None
