"""The name that somebody meant who wrote one that does not exist."""

from collections.abc import Sequence
from difflib import get_close_matches


def near_name(given: str, names: Sequence[str]) -> str | None:
    """Return the name that somebody may have meant; None if none is near."""
    return next(iter(get_close_matches(given, names, n=1)), None)
