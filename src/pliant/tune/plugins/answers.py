"""Values that a stranger's code answers with, as plain Python has them: what else they are is not asked.

A number of numpy is the number that it is. A subclass of a number or a text is that number or text, whatever its
methods say. All else is refused.
"""

from typing import Any

import numpy as np

from pliant.core.space import Scalar
from pliant.tune.plugins.failures import shown


class NoScalar(ValueError):
    """It is no scalar; says what it is."""


def scalar_of(answered: object) -> Scalar:
    """Return what was answered as a number, a text, a truth value or None.

    Raises:
        NoScalar: it is something else.
    """
    if answered is None or type(answered) in (bool, int, float, str):
        return answered  # type: ignore[return-value]
    if isinstance(answered, np.ndarray) and np.ndarray.ndim.__get__(answered) == 0:
        return scalar_of(np.ndarray.item(answered))
    if isinstance(answered, np.bool_ | np.integer | np.floating):
        return scalar_of(np.generic.item(answered))
    if isinstance(answered, str):
        return str.__str__(answered)
    if isinstance(answered, int):
        return int.__int__(answered)
    if isinstance(answered, float):
        return float.__float__(answered)
    raise NoScalar(f"it is a {shown(type(answered).__name__, 80)}, and no number or text")


def pairs_of(answered: object) -> list[tuple[str, Any]]:
    """Return the entries of a dict by their names.

    Raises:
        NoScalar: it is no dict, or a name is no text.
    """
    if not isinstance(answered, dict):
        raise NoScalar(f"a {shown(type(answered).__name__, 80)} is there instead of a dict of values by name")
    pairs = list(dict.items(answered))
    for name, _ in pairs:
        if not isinstance(name, str):
            raise NoScalar(f"a name is a {shown(type(name).__name__, 80)}; give the names of parameters")
    return [(str.__str__(name), value) for name, value in pairs]


def items_of(answered: object, limit: int) -> list[Any]:
    """Return the items of a list or tuple.

    Raises:
        NoScalar: it is neither, or has more than a limit.
    """
    if isinstance(answered, list):
        num = list.__len__(answered)
    elif isinstance(answered, tuple):
        num = tuple.__len__(answered)
    else:
        raise NoScalar(f"a {shown(type(answered).__name__, 80)} is there instead of a list")
    if num > limit:
        raise NoScalar(f"a list of {num:,} is there; {limit:,} are the most")
    return list(list.__iter__(answered) if isinstance(answered, list) else tuple.__iter__(answered))
