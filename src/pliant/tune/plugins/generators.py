"""The generators that Python and numpy share between all code of a process: people's code takes numbers from them."""

import random
from typing import Any

import numpy as np

from pliant.tune.plugins.encoding import decode, encode


def seed_shared(seed: int) -> None:
    """Begin the shared generators anew."""
    random.seed(seed)
    np.random.seed(seed)


def dump_shared() -> Any:
    """Return where the shared generators are, as JSON has it."""
    return [dump_python(random), encode(np.random.get_state())]


def load_shared(kept: Any) -> None:
    """Bring the shared generators to where they were.

    Raises:
        ValueError: it is no such state.
    """
    python, numpy = kept
    load_python(random, python)
    np.random.set_state(decode(numpy))


def dump_python(generator: Any) -> Any:
    """Return where a generator of Python is; the module `random` is one, too."""
    version, words, gauss = generator.getstate()
    return encode((version, np.array(words, dtype="<u4"), gauss))


def load_python(generator: Any, kept: Any) -> None:
    """Bring a generator of Python to where it was.

    Raises:
        ValueError: it is no such state.
    """
    version, words, gauss = decode(kept)
    generator.setstate((version, tuple(words.tolist()), gauss))
